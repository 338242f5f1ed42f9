from __future__ import annotations

import json

import pytest
from tests.unit.hooks.providers.senders import NOW_MS, SENDERS, Sender, arrival, mac, with_body

from crossdock.hooks.rules.providers.model import Arrival, Reply
from crossdock.hooks.rules.providers.recipes import PROVIDERS

SLACK = {"type": "url_verification", "token": "x", "challenge": "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkv"}
ZOOM = {"event": "endpoint.url_validation", "payload": {"plainToken": "qgg8vlvZRS6UYooatFL8Aw"}}
PING, EVENTS_PING = {"id": "1", "type": 1}, {"version": 1, "application_id": "1", "type": 0}
CHALLENGES = {"slack": SLACK, "zoom": ZOOM, "discord": PING}


def signed(name: str, document: object, secret: int = 0) -> Arrival:
    sender, body = SENDERS[name], json.dumps(document).encode()
    return arrival(body, sender.sign(sender.secrets[secret].signing, body, NOW_MS))


def answer(name: str, sent: Arrival, *secrets: int) -> object:
    sender: Sender = SENDERS[name]
    reply = sender.recipe.challenge(sent, [sender.secrets[number].configured for number in secrets])
    assert reply is None or reply.content_type == "application/json"
    return None if reply is None else (reply.status, json.loads(reply.body) if reply.body else None)


def test_slack_gets_its_challenge_back() -> None:
    assert answer("slack", signed("slack", SLACK), 0) == (200, {"challenge": SLACK["challenge"]})


def test_discord_gets_a_pong_for_either_kind_of_url() -> None:
    assert answer("discord", signed("discord", PING), 0) == (200, {"type": 1})
    assert answer("discord", signed("discord", EVENTS_PING), 0) == (204, None)


def test_zoom_gets_its_token_signed_by_the_secret_it_signed_with() -> None:
    sender = SENDERS["zoom"]
    for number in (0, 1):
        secret = sender.secrets[number].configured
        expected = mac(secret, b"qgg8vlvZRS6UYooatFL8Aw").hex()
        for order in [(0, 1), (1, 0)]:
            reply = answer("zoom", signed("zoom", ZOOM, number), *order)
            assert reply == (200, {"plainToken": "qgg8vlvZRS6UYooatFL8Aw", "encryptedToken": expected})


@pytest.mark.parametrize("name", CHALLENGES)
def test_who_did_not_sign_gets_no_answer(name: str) -> None:
    sent = signed(name, CHALLENGES[name])
    assert SENDERS[name].recipe.challenge_needs_verified
    assert answer(name, sent, 1) is None
    assert answer(name, arrival(sent.body), 0) is None
    assert answer(name, with_body(sent, sent.body + b" "), 0) is None


def test_where_no_secret_is_set_only_zoom_stays_without_an_answer() -> None:
    """Its answer is made with the secret; the others are the same for everybody."""
    assert answer("slack", arrival(json.dumps(SLACK).encode())) is not None
    assert answer("discord", arrival(json.dumps(PING).encode())) is not None
    assert answer("zoom", arrival(json.dumps(ZOOM).encode())) is None


@pytest.mark.parametrize(
    "token", ["v0:1735732800:{}", "a:b", "", "x" * 257, "ü", 7, None, ["x"], "a b", "a\n"]
)
def test_zoom_is_given_no_signature_that_could_pass_for_an_events(token: object) -> None:
    challenge = {"event": "endpoint.url_validation", "payload": {"plainToken": token}}
    assert answer("zoom", signed("zoom", challenge), 0) is None


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("slack", {"type": "event_callback", "challenge": "x"}),
        ("slack", {"type": "url_verification", "challenge": 7}),
        ("slack", {"type": "url_verification"}),
        ("slack", ["url_verification"]),
        ("zoom", {"event": "meeting.started", "payload": {"plainToken": "x"}}),
        ("zoom", {"event": "endpoint.url_validation"}),
        ("discord", {"version": 1, "type": 1, "event": {"type": "APPLICATION_AUTHORIZED"}}),
        ("discord", {"id": "1", "type": 2}),
        ("discord", {"id": "1", "type": True}),
        ("discord", {"id": "1", "type": 1.0}),
        ("discord", {"id": "1"}),
        ("discord", 1),
    ],
)
def test_an_event_is_not_taken_for_a_challenge(name: str, document: object) -> None:
    assert answer(name, signed(name, document), 0) is None


@pytest.mark.parametrize("body", [b"webhook_id=1", b"webhook_id=12345678901234567890"])
def test_woocommerces_unsigned_ping_gets_its_200(body: bytes) -> None:
    recipe = SENDERS["woocommerce"].recipe
    assert not recipe.challenge_needs_verified
    assert recipe.challenge(arrival(body), ["secret"]) == Reply(200, "text/plain", b"")


@pytest.mark.parametrize(
    "body", [b"webhook_id=", b"webhook_id=1&a=b", b"webhook_id=1\n", b"{}", b"xwebhook_id=1"]
)
def test_anything_more_than_the_ping_must_be_signed(body: bytes) -> None:
    assert SENDERS["woocommerce"].recipe.challenge(arrival(body), ["secret"]) is None


@pytest.mark.parametrize("name", PROVIDERS)
def test_an_ordinary_request_is_no_challenge(name: str) -> None:
    sender = SENDERS[name]
    assert sender.recipe.challenge(sender.send(), [sender.secrets[0].configured]) is None


@pytest.mark.parametrize("name", sorted({*PROVIDERS} - {*CHALLENGES, "woocommerce"}))
def test_other_providers_have_no_challenge(name: str) -> None:
    for document in [*CHALLENGES.values(), EVENTS_PING]:
        assert answer(name, arrival(json.dumps(document).encode())) is None
    assert answer(name, arrival(b"webhook_id=1")) is None
