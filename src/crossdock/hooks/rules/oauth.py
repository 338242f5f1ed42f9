"""Signing in with GitHub or Google: what is asked of them, and who their answers say it is. Pure.

Google's id token is read without checking its signature: it comes from Google itself, over a connection that
we opened (OpenID Connect Core, 3.1.3.7). GitHub has none; its API is asked.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

import msgspec

from crossdock.hooks.accounts_model import EMAIL_PATTERN, OAuthProvider

NAME_CHARACTERS_MAX = 128
CLOCKS_APART_SECONDS = 60

_EMAIL = re.compile(EMAIL_PATTERN)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class NotAnIdentity(ValueError):
    """A provider's answer that says nothing of who it is; the text is for the log."""


@dataclass(frozen=True, slots=True)
class Identity:
    """`email`: only one that the provider has verified."""

    provider: OAuthProvider
    id: str
    email: str | None
    name: str


def challenge_of(verifier: str) -> str:
    """PKCE, method S256 (RFC 7636)."""
    digest = hashlib.sha256(verifier.encode("ascii")).digest()
    return base64.urlsafe_b64encode(digest).decode("ascii").rstrip("=")


def authorization_url(
    endpoint: str, *, client_id: str, redirect_uri: str, scope: str, state: str, challenge: str
) -> str:
    """The challenge is the nonce as well: it is bound to the same browser, and new each time."""
    return f"{endpoint}?" + urlencode(
        {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": redirect_uri,
            "scope": scope,
            "state": state,
            "nonce": challenge,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
    )


# --- GitHub ----------------------------------------------------------------------------------------


class _GithubUser(msgspec.Struct):
    id: int
    login: str
    name: str | None = None


class _GithubEmail(msgspec.Struct):
    email: str
    verified: bool
    primary: bool = False


_github_user = msgspec.json.Decoder(_GithubUser)
_github_emails = msgspec.json.Decoder(list[_GithubEmail])


def github_identity(user: bytes, emails: bytes) -> Identity:
    """Of `/user` and `/user/emails`. Raises NotAnIdentity."""
    try:
        person, addresses = _github_user.decode(user), _github_emails.decode(emails)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotAnIdentity(str(error)) from error
    email = _github_address(addresses)
    return Identity(
        OAuthProvider.GITHUB, str(person.id), email, _shown_name(person.name or person.login, email)
    )


def _github_address(addresses: Sequence[_GithubEmail]) -> str | None:
    good = [each for each in addresses if each.verified and _EMAIL.match(each.email)]
    good.sort(key=lambda each: not each.primary)
    return good[0].email if good else None


# --- Google ----------------------------------------------------------------------------------------


class _IdToken(msgspec.Struct):
    iss: str
    aud: str
    sub: str
    exp: int
    nonce: str | None = None
    email: str | None = None
    email_verified: bool = False
    name: str | None = None


_id_token = msgspec.json.Decoder(_IdToken)


def google_identity(id_token: str, *, issuer: str, client_id: str, nonce: str, now_ms: int) -> Identity:
    """Raises NotAnIdentity for a token that is not for us, not for this login, or too old."""
    parts = id_token.split(".")
    try:
        payload = parts[1].encode("ascii")
        claims = _id_token.decode(base64.urlsafe_b64decode(payload + b"=" * (-len(payload) % 4)))
    except (IndexError, ValueError, RecursionError) as error:
        raise NotAnIdentity(f"no id token: {error}") from error
    if claims.iss not in (issuer, issuer.partition("://")[2]):
        raise NotAnIdentity(f"the id token was issued by {claims.iss}")
    if claims.aud != client_id:
        raise NotAnIdentity("the id token is for another client")
    if claims.nonce != nonce:
        raise NotAnIdentity("the id token is of another login")
    if claims.exp + CLOCKS_APART_SECONDS <= now_ms // 1000:
        raise NotAnIdentity("the id token has expired")
    is_good = claims.email is not None and claims.email_verified and _EMAIL.match(claims.email)
    email = claims.email if is_good else None
    return Identity(OAuthProvider.GOOGLE, claims.sub, email, _shown_name(claims.name or "", email))


def _shown_name(name: str, email: str | None) -> str:
    cleaned = _CONTROL.sub("", name).strip()[:NAME_CHARACTERS_MAX]
    return cleaned or (email or "user").partition("@")[0]
