"""Webhooks made up to try a source with, signed as their providers sign them. Pure."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from crossdock.kit.clock import rfc3339
from crossdock.kit.ids import Random, uuid4_text
from crossdock.kit.signing import sign

Headers: TypeAlias = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Moment:
    """When it is sent, and what makes it another than any before."""

    now_ms: int
    chance: bytes
    """16 random bytes."""

    @property
    def tag(self) -> str:
        return self.chance[:8].hex()

    @property
    def seconds(self) -> int:
        return self.now_ms // 1000


@dataclass(frozen=True, slots=True)
class SampleWebhook:
    headers: Headers
    body: bytes


@dataclass(frozen=True, slots=True)
class _Provider:
    document: Callable[[Moment], dict[str, Any]]
    told: Callable[[Moment], Headers]
    """What it sends besides, signed or not: which event it is, and which delivery."""
    signed: Callable[[str, Moment, bytes], Headers]


def sample_webhook(
    provider: str, secret: str | None, body: bytes | None, now_ms: int, random: Random
) -> SampleWebhook:
    """`provider` is one of `SAMPLE_PROVIDERS`. Without a secret it has no signature, without a body one that
    is made up. Raises ValueError for a secret that can't be the provider's."""
    made, moment = _PROVIDERS[provider], Moment(now_ms, random(16))
    content = msgspec.json.encode(made.document(moment)) if body is None else body
    headers = [("content-type", "application/json"), ("user-agent", "crossdock-cli"), *made.told(moment)]
    if secret is not None:
        headers += made.signed(secret, moment, content)
    return SampleWebhook(headers, content)


# --- providers -------------------------------------------------------------------------------------


def _stripe_event(moment: Moment) -> dict[str, Any]:
    charge = {"id": f"ch_{moment.tag}", "object": "charge", "amount": 2000, "currency": "eur", "paid": True}
    return {
        "id": f"evt_{moment.tag}",
        "object": "event",
        "type": "charge.succeeded",
        "created": moment.seconds,
        "livemode": False,
        "data": {"object": charge},
    }


def _stripe_signature(secret: str, moment: Moment, body: bytes) -> Headers:
    digest = _mac(secret, b"%d." % moment.seconds + body).hex()
    return [("stripe-signature", f"t={moment.seconds},v1={digest}")]


def _github_push(moment: Moment) -> dict[str, Any]:
    commit = {"id": moment.tag, "message": "Mend the fence", "timestamp": rfc3339(moment.now_ms)}
    return {
        "ref": "refs/heads/main",
        "repository": {"id": 1, "full_name": "octocat/hello-world"},
        "pusher": {"name": "octocat"},
        "commits": [commit],
    }


def _github_delivery(moment: Moment) -> Headers:
    return [("x-github-event", "push"), ("x-github-delivery", uuid4_text(lambda _: moment.chance))]


def _github_signature(secret: str, moment: Moment, body: bytes) -> Headers:
    return [("x-hub-signature-256", f"sha256={_mac(secret, body).hex()}")]


def _shopify_order(moment: Moment) -> dict[str, Any]:
    return {
        "id": int(moment.tag, 16) % 10**12,
        "email": "ann@example.com",
        "created_at": rfc3339(moment.now_ms),
        "currency": "EUR",
        "total_price": "49.00",
        "line_items": [{"title": "A crate", "quantity": 1, "price": "49.00"}],
    }


def _shopify_delivery(moment: Moment) -> Headers:
    return [
        ("x-shopify-topic", "orders/create"),
        ("x-shopify-shop-domain", "sample.myshopify.com"),
        ("x-shopify-webhook-id", moment.tag),
    ]


def _shopify_signature(secret: str, moment: Moment, body: bytes) -> Headers:
    return [("x-shopify-hmac-sha256", base64.b64encode(_mac(secret, body)).decode())]


def _plain_event(moment: Moment) -> dict[str, Any]:
    return {
        "type": "sample.created",
        "timestamp": rfc3339(moment.now_ms),
        "data": {"id": moment.tag, "amount": 42, "currency": "EUR"},
    }


def _standard_delivery(moment: Moment) -> Headers:
    return [("webhook-id", f"msg_{moment.tag}"), ("webhook-timestamp", str(moment.seconds))]


def _standard_signature(secret: str, moment: Moment, body: bytes) -> Headers:
    return [("webhook-signature", sign([secret], f"msg_{moment.tag}", moment.seconds, body))]


def _nothing(*_: object) -> Headers:
    return []


def _mac(secret: str, message: bytes) -> bytes:
    return hmac.digest(secret.encode(), message, "sha256")


_PROVIDERS = {
    "stripe": _Provider(_stripe_event, _nothing, _stripe_signature),
    "github": _Provider(_github_push, _github_delivery, _github_signature),
    "shopify": _Provider(_shopify_order, _shopify_delivery, _shopify_signature),
    "standard-webhooks": _Provider(_plain_event, _standard_delivery, _standard_signature),
    "unsigned": _Provider(_plain_event, _nothing, _nothing),
}
SAMPLE_PROVIDERS = tuple(_PROVIDERS)
