"""Signing in: what is asked of a provider, and whom its answers name."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.hooks.accounts_model import OAuthProvider
from crossdock.hooks.rules.oauth import (
    Identity,
    NotAnIdentity,
    authorization_url,
    challenge_of,
    github_identity,
    google_identity,
)

ISSUER, CLIENT, NONCE, NOW_S = "https://accounts.google.com", "client", "nonce", 1_700_000_000


def test_a_challenge_is_that_of_the_standards_example() -> None:
    """RFC 7636, appendix B."""
    verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    assert challenge_of(verifier) == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_whatever_is_in_a_parameter_comes_out_as_it_was(text: str) -> None:
    url = authorization_url(
        "https://example.com/a", client_id=text, redirect_uri=text, scope="a b", state=text, challenge="c"
    )
    parts = urlsplit(url)
    assert (parts.scheme, parts.netloc, parts.path) == ("https", "example.com", "/a")
    asked = parse_qs(parts.query, keep_blank_values=True)
    assert asked["client_id"] == asked["redirect_uri"] == asked["state"] == [text]
    assert (asked["scope"], asked["code_challenge_method"]) == (["a b"], ["S256"])


# --- GitHub ----------------------------------------------------------------------------------------


def github(emails: list[dict[str, Any]], **person: Any) -> Identity:
    user = {"id": 7, "login": "grace", "name": "Grace", **person}
    return github_identity(msgspec.json.encode(user), msgspec.json.encode(emails))


def address(email: str, *, verified: bool = True, primary: bool = False) -> dict[str, Any]:
    return {"email": email, "verified": verified, "primary": primary, "visibility": "private"}


@pytest.mark.parametrize(
    ("emails", "email"),
    [
        ([], None),
        ([address("a@x.com", primary=True)], "a@x.com"),
        ([address("a@x.com"), address("b@x.com", primary=True)], "b@x.com"),
        ([address("a@x.com"), address("b@x.com", primary=True, verified=False)], "a@x.com"),
        ([address("a@x.com", verified=False)], None),
        ([address("\u212a@x.com", primary=True)], None),
        ([address("no address")], None),
    ],
)
def test_githubs_verified_address_is_the_primary_one_or_the_first(
    emails: list[dict[str, Any]], email: str | None
) -> None:
    assert github(emails) == Identity(OAuthProvider.GITHUB, "7", email, "Grace")


@pytest.mark.parametrize(
    ("user", "emails"),
    [
        (b"", b"[]"),
        (b"{}", b"[]"),
        (b'{"id": "7", "login": "x"}', b"[]"),
        (b'{"id": 7, "login": "x"}', b""),
        (b'{"id": 7, "login": "x"}', b'{"message": "no"}'),
        (b'{"id": 7, "login": "x"}', b'[{"email": "a@x.com", "verified": "true"}]'),
        (b"\xff", b"[]"),
        (b"[" * 5000, b"[]"),
    ],
)
def test_an_answer_that_is_not_githubs_is_no_identity(user: bytes, emails: bytes) -> None:
    with pytest.raises(NotAnIdentity):
        github_identity(user, emails)


@pytest.mark.parametrize(
    ("name", "emails", "shown"),
    [
        ("Grace", [], "Grace"),
        (None, [], "grace"),
        ("  ", [], "user"),
        ("\x00\x1f", [address("ann@x.com")], "ann"),
        ("x" * 200, [], "x" * 128),
    ],
)
def test_there_is_always_a_name_that_can_be_shown(
    name: str | None, emails: list[dict[str, Any]], shown: str
) -> None:
    assert github(emails, name=name).name == shown


# --- Google ----------------------------------------------------------------------------------------


def id_token(**changed: Any) -> str:
    claims = {
        "iss": ISSUER,
        "aud": CLIENT,
        "sub": "108",
        "exp": NOW_S + 3600,
        "nonce": NONCE,
        "email": "a@x.com",
        "email_verified": True,
        "name": "Grace",
        **changed,
    }
    return f"e30.{base64.urlsafe_b64encode(msgspec.json.encode(claims)).rstrip(b'=').decode()}.c2ln"


def google(token: str) -> Identity:
    return google_identity(token, issuer=ISSUER, client_id=CLIENT, nonce=NONCE, now_ms=NOW_S * 1000)


@pytest.mark.parametrize(
    ("changed", "email"),
    [
        ({}, "a@x.com"),
        ({"iss": "accounts.google.com"}, "a@x.com"),
        ({"exp": NOW_S - 59}, "a@x.com"),
        ({"email_verified": False}, None),
        ({"email": None}, None),
        ({"email": "\u212a@x.com"}, None),
    ],
)
def test_an_id_token_names_its_subject_and_a_verified_address(
    changed: dict[str, Any], email: str | None
) -> None:
    assert google(id_token(**changed)) == Identity(OAuthProvider.GOOGLE, "108", email, "Grace")


@pytest.mark.parametrize(
    "token",
    [
        "",
        "abc",
        "a.b",
        "a.é.c",
        "e30.e30.e30",
        "e30.!!!!.e30",
        id_token(iss="https://accounts.google.com.evil.example"),
        id_token(iss=""),
        id_token(aud="another"),
        id_token(aud=[CLIENT, "another"]),
        id_token(nonce="another"),
        id_token(nonce=None),
        id_token(exp=NOW_S - 60),
        id_token(email_verified="true"),
        id_token(sub=108),
    ],
)
def test_a_token_that_is_not_for_this_login_is_no_identity(token: str) -> None:
    with pytest.raises(NotAnIdentity):
        google(token)


@given(
    st.text(max_size=100) | st.binary(max_size=60).map(lambda raw: f"e30.{base64.b64encode(raw).decode()}.x")
)
def test_any_text_is_a_token_or_none(text: str) -> None:
    with pytest.raises(NotAnIdentity):
        google(text)
