"""What holds for every provider. The cases come from `PROVIDERS`: one without a sender fails here."""

from __future__ import annotations

import pytest
from tests.unit.hooks.providers.senders import (
    NOW_MS,
    SENDERS,
    URL,
    Sender,
    arrival,
    with_body,
    with_headers,
)

from crossdock.hooks.rules.providers.model import Arrival, RefusalReason
from crossdock.hooks.rules.providers.recipes import PROVIDERS, check_secret, parse_signing, recipe_of
from crossdock.kit.errors import InvalidInput

YEAR_MS = 366 * 86_400_000

HOSTILE_VALUES = [
    "",
    " ",
    "\x00",
    "\x85\xff",
    "é" * 40,
    "=",
    "====",
    "0" * 64,
    "0" * 30_000,
    "9" * 5000,
    "-1",
    "1e9",
    "١٢٣",
    "²",
    "sha256=",
    "v0=",
    "v0=zz",
    "v1,",
    "v1," * 10_000,
    "t=1,v1=",
    "t=,v1=00",
    "ts=1;h1=00",
    "," * 10_000,
    "Basic",
    "Basic !",
    "Basic " + "=" * 100,
    "\ud800",
    "\u2603",
]


def test_every_provider_has_a_sender_and_every_sender_a_provider() -> None:
    assert sorted(SENDERS) == sorted(PROVIDERS)
    assert len(set(PROVIDERS)) == len(PROVIDERS)


def reason_of(sender: Sender, sent: Arrival, *secrets: int) -> RefusalReason | None:
    """The outcome with the sender's secrets of these numbers."""
    refusal = sender.recipe.verify(sent, [sender.secrets[number].configured for number in secrets])
    if refusal is not None:
        assert refusal.detail.endswith(".")
    return None if refusal is None else refusal.reason


def renamed(sent: Arrival, change: str) -> Arrival:
    return with_headers(sent, tuple((getattr(name, change)(), value) for name, value in sent.headers))


def replaced(sent: Arrival, header: str, value: str | None) -> Arrival:
    others = tuple(pair for pair in sent.headers if pair[0] != header)
    assert len(others) == len(sent.headers) - 1
    return with_headers(sent, others if value is None else (*others, (header, value)))


@pytest.fixture(params=PROVIDERS)
def sender(request: pytest.FixtureRequest) -> Sender:
    return SENDERS[request.param]


def test_a_genuine_request_is_taken(sender: Sender) -> None:
    assert reason_of(sender, sender.send(), 0) is None


def test_during_a_rotation_either_secret_is_good_and_no_third(sender: Sender) -> None:
    old, new, other = (sender.send(secret) for secret in sender.secrets)
    for order in [(0, 1), (1, 0)]:
        assert reason_of(sender, old, *order) is None
        assert reason_of(sender, new, *order) is None
        assert reason_of(sender, other, *order) is RefusalReason.SIGNATURE_MISMATCH


def test_another_secret_is_refused(sender: Sender) -> None:
    assert reason_of(sender, sender.send(), 1) is RefusalReason.SIGNATURE_MISMATCH


def test_another_body_is_refused_unless_only_the_sender_is_proven(sender: Sender) -> None:
    sent = sender.send()
    if sender.tampered is None:
        assert reason_of(sender, with_body(sent, b"anything"), 0) is None
        return
    tampered = with_body(sent, sender.tampered(sent.body))
    assert tampered.body != sent.body
    assert reason_of(sender, tampered, 0) is RefusalReason.SIGNATURE_MISMATCH


def test_a_missing_header_is_named(sender: Sender) -> None:
    sent = sender.send()
    assert sender.signed_headers or sender.sign_body is not None
    for header in sender.signed_headers:
        refusal = sender.recipe.verify(replaced(sent, header, None), [sender.secrets[0].configured])
        assert refusal is not None
        assert refusal.reason.endswith("_missing")
        assert header.lower() in refusal.detail.lower()


@pytest.mark.parametrize("value", HOSTILE_VALUES)
def test_a_hostile_header_is_refused_and_nothing_worse(sender: Sender, value: str) -> None:
    sent = sender.send()
    for header in sender.signed_headers:
        assert reason_of(sender, replaced(sent, header, value), 0, 1) is not None


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"[]", b"{", b"\xff\x00", b"[" * 100_000, b'{"a":' * 5000, b'{"notificationItems":[1]}'],
)
def test_a_hostile_body_is_refused_unless_only_the_sender_is_proven(sender: Sender, body: bytes) -> None:
    refused = reason_of(sender, with_body(sender.send(), body), 0, 1) is not None
    assert refused == (sender.tampered is not None)


def test_the_first_of_two_headers_counts(sender: Sender) -> None:
    sent = sender.send()
    for header in sender.signed_headers:
        after = with_headers(sent, (*sent.headers, (header, "x")))
        before = with_headers(sent, ((header, "x"), *sent.headers))
        assert reason_of(sender, after, 0) is None
        assert reason_of(sender, before, 0) is not None


@pytest.mark.parametrize("change", ["upper", "lower", "title"])
def test_header_names_are_taken_in_any_case(sender: Sender, change: str) -> None:
    assert reason_of(sender, renamed(sender.send(), change), 0) is None


def test_a_time_counts_on_both_sides_up_to_the_tolerance(sender: Sender) -> None:
    if sender.tolerance_seconds is None:
        for late_ms in (-YEAR_MS, YEAR_MS):
            assert reason_of(sender, sender.send(at_ms=NOW_MS - late_ms), 0) is None
        return
    for side, word in ((-1, " after "), (1, " before ")):
        edge_ms = NOW_MS + side * sender.tolerance_seconds * 1000
        assert reason_of(sender, sender.send(received_at_ms=edge_ms), 0) is None
        late = sender.send(received_at_ms=edge_ms + side)
        refusal = sender.recipe.verify(late, [sender.secrets[0].configured])
        assert refusal is not None
        assert refusal.reason is RefusalReason.TIMESTAMP_OUT_OF_TOLERANCE
        assert word in refusal.detail
        assert f" {sender.tolerance_seconds} s " in refusal.detail


def test_an_old_request_cannot_be_given_a_new_time(sender: Sender) -> None:
    if sender.tolerance_seconds is None:
        return
    old_ms = NOW_MS - YEAR_MS
    old, now = sender.send(at_ms=old_ms), str(NOW_MS // 1000)
    headers = tuple((name, value.replace(str(old_ms // 1000), now)) for name, value in old.headers)
    body = old.body.replace(str(old_ms // 1000).encode(), now.encode())
    renewed = with_body(with_headers(old, headers), body)
    assert renewed != old
    assert reason_of(sender, renewed, 0) is RefusalReason.SIGNATURE_MISMATCH


def test_without_a_secret_nothing_is_verified(sender: Sender) -> None:
    assert reason_of(sender, sender.send()) is RefusalReason.SECRET_UNUSABLE


def test_a_secret_that_became_unusable_harms_no_other(sender: Sender) -> None:
    good = sender.secrets[0].configured
    for secrets in (["", good], [good, ""], ["\ud800", good]):
        assert sender.recipe.verify(sender.send(), secrets) is None
    refusal = sender.recipe.verify(sender.send(), ["", "\ud800"])
    assert refusal is not None
    assert refusal.reason is RefusalReason.SECRET_UNUSABLE


def test_a_mismatch_says_to_look_at_the_url_where_that_can_be_why(sender: Sender) -> None:
    refusal = sender.recipe.verify(sender.send(), [sender.secrets[1].configured])
    assert refusal is not None
    assert ("PUBLIC_URL" in refusal.detail) == sender.recipe.signs_url


def test_the_url_counts_where_the_recipe_says_so(sender: Sender) -> None:
    sent = sender.send()
    same_host = (URL + "?", URL + "/", URL + "{", URL + "\u2603", URL + "?bodySHA256=" + "0" * 64)
    for url in (URL.replace("hooks.", "www."), URL.replace("https:", "http:"), "", *same_host):
        moved = arrival(sent.body, dict(sent.headers), url=url)
        assert (reason_of(sender, moved, 0) is not None) == sender.recipe.signs_url


def test_a_header_is_a_credential_where_nothing_else_is_proven(sender: Sender) -> None:
    tokens = sender.signed_headers if sender.tampered is None else ()
    assert sender.recipe.credential_headers == {header.lower() for header in tokens}


def test_its_secrets_pass_the_check_of_settings(sender: Sender) -> None:
    for secret in sender.secrets:
        check_secret(sender.name, secret.configured)


@pytest.mark.parametrize("secret", ["", " ", "x" * 4097, "\ud800"])
def test_a_secret_that_fits_no_provider_is_refused(sender: Sender, secret: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_secret(sender.name, secret, "secret_field")
    assert [(problem.field, problem.code) for problem in caught.value.fields] == [
        ("secret_field", "unusable_secret")
    ]


@pytest.mark.parametrize("end", ["\n", " ", "\r\n", "\t"])
def test_a_secret_copied_with_white_space_is_refused(sender: Sender, end: str) -> None:
    for secret in (sender.secrets[0].configured + end, end + sender.secrets[0].configured):
        with pytest.raises(InvalidInput):
            check_secret(sender.name, secret)


def test_its_settings_survive_being_stored(sender: Sender) -> None:
    stored = parse_signing(sender.name, sender.settings)
    recipe = recipe_of(sender.name, stored)
    assert recipe.provider == sender.name
    assert recipe.verify(sender.send(), [sender.secrets[0].configured]) is None
    assert parse_signing(sender.name, stored) == stored
