"""How providers say hello: requests that want a certain answer before, or while, events are sent."""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from crossdock.hooks.rules.providers.dedup import at_path
from crossdock.hooks.rules.providers.keys import text_key
from crossdock.hooks.rules.providers.model import Arrival, Reply

_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Challenge:
    """`answer` is given the secrets that verify the request; none if the source has none."""

    is_asked: Callable[[Arrival], bool]
    answer: Callable[[Arrival, Sequence[str]], Reply | None]
    needs_verified: bool = True


def _has(path: str, value: object) -> Callable[[Arrival], bool]:
    return lambda arrival: at_path(arrival.document, path) == value


def _json(document: object) -> Reply:
    return Reply(200, _JSON, msgspec.json.encode(document))


def _slack_answer(arrival: Arrival, _: Sequence[str]) -> Reply | None:
    challenge = at_path(arrival.document, "challenge")
    return _json({"challenge": challenge}) if isinstance(challenge, str) else None


SLACK = Challenge(_has("type", "url_verification"), _slack_answer)


# Zoom's answer is a signature of what was sent. Of a text like "v0:<time>:<body>" it would be the one of an
# event, ready to be sent to us: so nothing with a colon is signed, and nothing that Zoom did not sign itself.
_ZOOM_TOKEN = re.compile(r"[A-Za-z0-9_+/=-]{1,256}")


def _zoom_answer(arrival: Arrival, secrets: Sequence[str]) -> Reply | None:
    token = at_path(arrival.document, "payload.plainToken")
    if not secrets or not isinstance(token, str) or not _ZOOM_TOKEN.fullmatch(token):
        return None
    encrypted = hmac.digest(text_key(secrets[0]), token.encode(), "sha256").hex()
    return _json({"plainToken": token, "encryptedToken": encrypted})


ZOOM = Challenge(_has("event", "endpoint.url_validation"), _zoom_answer)


# Discord calls two kinds of URL. For interactions 1 is a ping and wants {"type": 1}; for webhook events 0 is
# one and wants nothing, and 1 is an event, told by its `event`.
def _discord_is_asked(arrival: Arrival) -> bool:
    document = arrival.document
    if not isinstance(document, dict) or "event" in document:
        return False
    kind = document.get("type")
    return type(kind) is int and kind in (0, 1)


def _discord_answer(arrival: Arrival, _: Sequence[str]) -> Reply | None:
    return _json({"type": 1}) if at_path(arrival.document, "type") == 1 else Reply(204, _JSON, b"")


DISCORD = Challenge(_discord_is_asked, _discord_answer)


# WooCommerce tries the URL when a webhook is saved, unsigned, and wants a 200.
_WOOCOMMERCE_PING = re.compile(rb"webhook_id=[0-9]{1,20}")

WOOCOMMERCE = Challenge(
    lambda arrival: _WOOCOMMERCE_PING.fullmatch(arrival.body) is not None,
    lambda _, __: Reply(200, "text/plain", b""),
    needs_verified=False,
)
