"""Adyen: every notification item in the body carries a signature of eight of its fields, and no others.

The fields are joined by `:` as they are; the key is hex, the signature base64 HMAC-SHA256. A request is
Adyen's if all of its items are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crossdock.hooks.rules.providers.claims import Encoding, decoded
from crossdock.hooks.rules.providers.keys import HmacKeys, hex_key, judged
from crossdock.hooks.rules.providers.model import Arrival, Refusal, RefusalReason

_NO_ITEMS = Refusal(
    RefusalReason.BODY_MALFORMED, "The body is no Adyen notification: notificationItems is missing or empty."
)
_NO_SIGNATURE = Refusal(
    RefusalReason.SIGNATURE_MISSING,
    "An item has no additionalData.hmacSignature: generate an HMAC key for the webhook at Adyen.",
)
_NO_BASE64 = Refusal(
    RefusalReason.SIGNATURE_MALFORMED, "An item's additionalData.hmacSignature is not in base64."
)
_NO_TEXT = Refusal(
    RefusalReason.BODY_MALFORMED, "A signed field of an item is neither text nor whole number."
)

_KEYS = HmacKeys("sha256", hex_key)


class AdyenScheme:
    def algorithm(self, _: str) -> str:
        return _KEYS.name

    def check(self, secret: str) -> None:
        _KEYS.check(secret)

    def verify(self, arrival: Arrival, secrets: Sequence[str]) -> Refusal | None:
        items = notification_items(arrival.document)
        if not items:
            return _NO_ITEMS
        refusals = (self._verify_item(item, secrets) for item in items)
        return next((refusal for refusal in refusals if refusal is not None), None)

    def _verify_item(self, item: Mapping[str, Any], secrets: Sequence[str]) -> Refusal | None:
        additional = item.get("additionalData")
        given = additional.get("hmacSignature") if isinstance(additional, dict) else None
        if not isinstance(given, str) or not given:
            return _NO_SIGNATURE
        signature = decoded(given, Encoding.BASE64)
        if not signature:
            return _NO_BASE64
        signed = _signed_text(item)
        if signed is None:
            return _NO_TEXT
        return judged(secrets, lambda secret: _KEYS.fits(secret, signed.encode(), [signature]))


def notification_items(document: object) -> list[dict[str, Any]] | None:
    """The items, or None for a body that is not of Adyen's form throughout."""
    wrapped = document.get("notificationItems") if isinstance(document, dict) else None
    if not isinstance(wrapped, list):
        return None
    items = [each.get("NotificationRequestItem") if isinstance(each, dict) else None for each in wrapped]
    found = [item for item in items if isinstance(item, dict)]
    return found if len(found) == len(items) else None


def _signed_text(item: Mapping[str, Any]) -> str | None:
    amount = item.get("amount")
    amount = amount if isinstance(amount, dict) else {}
    texts = [
        text_of(item.get("pspReference")),
        text_of(item.get("originalReference")),
        text_of(item.get("merchantAccountCode")),
        text_of(item.get("merchantReference")),
        text_of(amount.get("value")),
        text_of(amount.get("currency")),
        text_of(item.get("eventCode")),
        text_of(item.get("success")),
    ]
    known = [text for text in texts if text is not None]
    return ":".join(known) if len(known) == len(texts) else None


def text_of(value: object) -> str | None:
    """A field as it is signed; None if it is of no kind that is."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return value if isinstance(value, str) else None
