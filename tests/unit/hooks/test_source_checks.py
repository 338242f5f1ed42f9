from __future__ import annotations

from typing import Any

import pytest

from crossdock.hooks.rules.providers.recipes import PROVIDERS
from crossdock.hooks.service.source_checks import SigningSettings, check_source
from crossdock.kit.errors import InvalidInput

CUSTOM: dict[str, Any] = {"header": "X-Signature", "algorithm": "sha512"}

ALGORITHMS = {
    "stripe": "hmac-sha256",
    "github": "hmac-sha256",
    "shopify": "hmac-sha256",
    "standard-webhooks": "hmac-sha256",
    "slack": "hmac-sha256",
    "twilio": "hmac-sha1",
    "square": "hmac-sha256",
    "paddle": "hmac-sha256",
    "hubspot": "hmac-sha256",
    "zoom": "hmac-sha256",
    "discord": "ed25519",
    "gitlab": "token",
    "sendgrid": "ecdsa-p256",
    "linear": "hmac-sha256",
    "adyen": "hmac-sha256",
    "line": "hmac-sha256",
    "razorpay": "hmac-sha256",
    "woocommerce": "hmac-sha256",
    "basic-auth": "basic",
    "custom": "hmac-sha512",
    "api-key": "token",
}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_provider_has_a_name_for_how_it_signs(provider: str) -> None:
    signing = CUSTOM if provider == "custom" else None
    assert SigningSettings(provider, signing, None).algorithm == ALGORITHMS[provider]


def test_standard_webhooks_sign_as_their_secret_says() -> None:
    assert SigningSettings("standard-webhooks", None, "whpk_AAAA").algorithm == "ed25519"
    assert SigningSettings("standard-webhooks", None, "whsec_AAAA").algorithm == "hmac-sha256"


def problems(given: dict[str, Any], before: SigningSettings) -> list[tuple[str, str]]:
    with pytest.raises(InvalidInput) as refused:
        check_source(given, before)
    return [(each.field, each.code) for each in refused.value.fields]


STRIPE = SigningSettings("stripe", None, "whsec_x")
BY_CUSTOM = SigningSettings("custom", CUSTOM, "a secret")


@pytest.mark.parametrize(
    ("before", "given", "expected"),
    [
        (BY_CUSTOM, {"provider": "stripe"}, [("signing", "not_taken")]),
        (STRIPE, {"provider": "custom"}, [("signing.header", "required")]),
        (STRIPE, {"provider": "discord"}, [("signing_secret", "unusable_secret")]),
        (STRIPE, {"provider": "fax"}, [("provider", "not_a_choice")]),
        (BY_CUSTOM, {"signing": None}, [("signing.header", "required")]),
    ],
)
def test_what_is_changed_must_go_with_what_stays(
    before: SigningSettings, given: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert problems(given, before) == expected


@pytest.mark.parametrize(
    ("before", "given", "provider"),
    [
        (BY_CUSTOM, {"provider": "stripe", "signing": None}, "stripe"),
        (STRIPE, {"provider": "custom", "signing": CUSTOM}, "custom"),
        (STRIPE, {"provider": "discord", "signing_secret": "ab" * 32}, "discord"),
        (STRIPE, {"provider": "discord", "signing_secret": None}, "discord"),
    ],
)
def test_a_provider_changes_along_with_what_it_needs(
    before: SigningSettings, given: dict[str, Any], provider: str
) -> None:
    assert check_source(given, before).provider == provider


def test_what_does_not_concern_how_it_is_signed_is_not_held_up_by_it() -> None:
    unusable = SigningSettings("discord", None, "no key")
    assert check_source({"name": "Other", "dedup": {"path": "id"}}, unusable) == unusable


def test_all_that_is_wrong_is_said_at_once() -> None:
    given = {
        "provider": "discord",
        "signing": {"header": "X"},
        "signing_secret": "no key",
        "dedup": {"path": "a..b"},
        "response": {"status": 500},
    }
    assert problems(given, STRIPE) == [
        ("signing", "not_taken"),
        ("signing_secret", "unusable_secret"),
        ("dedup.path", "wrong_format"),
        ("response.status", "out_of_range"),
    ]


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ({}, ("response.status", "required")),
        ({"status": 199}, ("response.status", "out_of_range")),
        ({"status": 300}, ("response.status", "out_of_range")),
        ({"status": 200, "body": "ü" * 513}, ("response.body", "too_large")),
        ({"status": 204, "body": "x"}, ("response.body", "not_together")),
        ({"status": 200, "content_type": "text/plain\r\nX-A: b"}, ("response.content_type", "wrong_format")),
        ({"status": 200, "content_type": "text"}, ("response.content_type", "wrong_format")),
        ({"status": 200, "headers": {}}, ("response.headers", "unknown_field")),
    ],
)
def test_a_response_that_can_not_be_given_is_refused(
    response: dict[str, Any], expected: tuple[str, str]
) -> None:
    assert problems({"response": response}, STRIPE) == [expected]


@pytest.mark.parametrize(
    "response",
    [
        {"status": 200},
        {"status": 204},
        {"status": 299, "body": "ü" * 512, "content_type": "text/plain; charset=utf-8"},
    ],
)
def test_a_response_that_can_be_given_is_accepted(response: dict[str, Any]) -> None:
    check_source({"response": response}, STRIPE)
