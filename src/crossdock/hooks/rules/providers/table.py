"""The table of providers. A new one is an entry here; nothing anywhere else knows a provider by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from crossdock.hooks.rules.providers import challenges
from crossdock.hooks.rules.providers.adyen import AdyenScheme
from crossdock.hooks.rules.providers.claims import Encoding, Reader, in_headers, in_pairs, in_versions
from crossdock.hooks.rules.providers.dedup import (
    by_header,
    by_header_and_body,
    by_only_adyen_item,
    by_only_event,
    by_path,
    by_signed_header,
    first_of,
    nowhere,
)
from crossdock.hooks.rules.providers.keys import (
    HmacKeys,
    Keys,
    PublicKeys,
    hex_ed25519,
    spki_p256,
    text_key,
    webhook_ed25519,
    webhook_key,
)
from crossdock.hooks.rules.providers.payloads import payload
from crossdock.hooks.rules.providers.recipe import Recipe
from crossdock.hooks.rules.providers.schemes import (
    ByPrefix,
    Freshness,
    Password,
    Signed,
    Token,
    moment_in_body,
)
from crossdock.hooks.rules.providers.settings import ApiKeySigning, CustomSigning, check_custom
from crossdock.hooks.rules.providers.twilio import TwilioScheme

_HEX, _BASE64 = Encoding.HEX, Encoding.BASE64
_SHA256 = HmacKeys("sha256", text_key)
_SECONDS = Freshness()
_MILLISECONDS = Freshness(unit_ms=1)
_WEBHOOK_PREFIXES = ("webhook", "svix")


def _hmac(read: Reader, signed: str = "{body}", freshness: Freshness | None = None) -> Signed:
    return Signed(read, payload(signed), _SHA256, freshness)


def _webhook(version: str, keys: Keys) -> Signed:
    return Signed(in_versions(_WEBHOOK_PREFIXES, version), payload("{id}.{timestamp}.{body}"), keys, _SECONDS)


FIXED: tuple[Recipe, ...] = (
    Recipe(
        "stripe",
        _hmac(in_pairs("Stripe-Signature", ",", "t", "v1"), "{timestamp}.{body}", _SECONDS),
        by_path("id"),
    ),
    Recipe(
        "github",
        _hmac(in_headers("X-Hub-Signature-256", _HEX, prefix="sha256=")),
        by_header("X-GitHub-Delivery"),
    ),
    Recipe("shopify", _hmac(in_headers("X-Shopify-Hmac-Sha256", _BASE64)), by_header("X-Shopify-Webhook-Id")),
    Recipe(
        "standard-webhooks",
        ByPrefix(
            "whpk_",
            prefixed=_webhook("v1a", PublicKeys("ed25519", webhook_ed25519)),
            others=_webhook("v1", HmacKeys("sha256", webhook_key)),
        ),
        by_signed_header(_WEBHOOK_PREFIXES),
    ),
    Recipe(
        "slack",
        _hmac(
            in_headers("X-Slack-Signature", _HEX, prefix="v0=", timestamp="X-Slack-Request-Timestamp"),
            "v0:{timestamp}:{body}",
            _SECONDS,
        ),
        by_path("event_id"),
        hello=challenges.SLACK,
    ),
    Recipe("twilio", TwilioScheme(), by_header("I-Twilio-Idempotency-Token"), signs_url=True),
    Recipe(
        "square",
        _hmac(in_headers("X-Square-HmacSha256-Signature", _BASE64), "{url}{body}"),
        by_path("event_id"),
        signs_url=True,
    ),
    # Paddle's libraries allow 5 s by default, its documents set no limit. 5 s would refuse good requests as
    # soon as a clock is a little wrong, and repeats are told by their id.
    Recipe(
        "paddle",
        _hmac(in_pairs("Paddle-Signature", ";", "ts", "h1"), "{timestamp}:{body}", _SECONDS),
        by_path("event_id", "notification_id"),
    ),
    Recipe(
        "hubspot",
        _hmac(
            in_headers("X-HubSpot-Signature-v3", _BASE64, timestamp="X-HubSpot-Request-Timestamp"),
            "{method}{url_with_marks}{body}{timestamp}",
            _MILLISECONDS,
        ),
        nowhere,  # a request is a batch, and HubSpot does not promise that its eventIds are unique
        signs_url=True,
    ),
    Recipe(
        "zoom",
        _hmac(
            in_headers("X-Zm-Signature", _HEX, prefix="v0=", timestamp="X-Zm-Request-Timestamp"),
            "v0:{timestamp}:{body}",
            _SECONDS,
        ),
        nowhere,
        hello=challenges.ZOOM,
    ),
    Recipe(
        "discord",
        Signed(
            in_headers("X-Signature-Ed25519", _HEX, timestamp="X-Signature-Timestamp"),
            payload("{timestamp}{body}"),
            PublicKeys("ed25519", hex_ed25519),
            _SECONDS,
        ),
        by_path("id"),
        hello=challenges.DISCORD,
    ),
    Recipe(
        "gitlab",
        Token("X-Gitlab-Token"),
        # Webhooks that set off one another share their X-Gitlab-Event-UUID; GitLab before 17.4 has no other.
        first_of(by_header("Idempotency-Key"), by_header_and_body("X-Gitlab-Event-UUID")),
        credential_headers=frozenset({"x-gitlab-token"}),
    ),
    Recipe(
        "sendgrid",
        Signed(
            in_headers(
                "X-Twilio-Email-Event-Webhook-Signature",
                _BASE64,
                timestamp="X-Twilio-Email-Event-Webhook-Timestamp",
            ),
            payload("{timestamp}{body}"),
            PublicKeys("ecdsa-p256", spki_p256),
            _SECONDS,
        ),
        by_only_event(None, "sg_event_id"),
    ),
    Recipe(
        "linear",
        _hmac(
            in_headers("Linear-Signature", _HEX),
            freshness=Freshness(60, unit_ms=1, moment=moment_in_body("webhookTimestamp")),
        ),
        by_header("Linear-Delivery"),
    ),
    Recipe("adyen", AdyenScheme(), by_only_adyen_item),
    Recipe("line", _hmac(in_headers("X-Line-Signature", _BASE64)), by_only_event("events", "webhookEventId")),
    Recipe("razorpay", _hmac(in_headers("X-Razorpay-Signature", _HEX)), by_header("X-Razorpay-Event-Id")),
    Recipe(
        "woocommerce",
        _hmac(in_headers("X-WC-Webhook-Signature", _BASE64)),
        # The header is made of the webhook's id and the second: of one second all deliveries have the same.
        by_header_and_body("X-WC-Webhook-Delivery-ID"),
        hello=challenges.WOOCOMMERCE,
    ),
    Recipe("basic-auth", Password(), credential_headers=frozenset({"authorization"})),
)


def _custom(signing: CustomSigning) -> Recipe:
    unit_ms = 1000 if signing.timestamp_unit == "seconds" else 1
    signed = payload(signing.signed)
    scheme = Signed(
        in_headers(
            signing.header,
            Encoding(signing.encoding),
            prefix=signing.prefix,
            timestamp=signing.timestamp_header,
            # Only an id that is signed must be there.
            message_id=signing.id_header if "{id}" in signing.signed else None,
        ),
        signed,
        HmacKeys(signing.algorithm, text_key),
        Freshness(signing.tolerance_seconds, unit_ms) if signing.timestamp_header else None,
    )
    source = nowhere if signing.id_header is None else by_header(signing.id_header)
    return Recipe("custom", scheme, source, signs_url=signed.signs_url)


def _api_key(signing: ApiKeySigning) -> Recipe:
    header = signing.header
    return Recipe("api-key", Token(header, signing.prefix), credential_headers=frozenset({header.lower()}))


@dataclass(frozen=True, slots=True)
class Configured:
    """A provider that has no ways of its own: the form of its settings, and the recipe they make."""

    settings: type[Any]
    make: Callable[[Any], Recipe]
    check: Callable[[Any, str], None] = lambda _, __: None
    """What the form can't say: called with the settings and the name of their field. Raises InvalidInput."""
    check_secret: Callable[[str], object] = text_key


CONFIGURED: dict[str, Configured] = {
    "custom": Configured(CustomSigning, _custom, check_custom),
    "api-key": Configured(ApiKeySigning, _api_key),
}
