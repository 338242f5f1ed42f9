"""Sample webhooks: each is accepted as its provider's, and no two are one delivery."""

from __future__ import annotations

import os

import msgspec
import pytest
from tests.unit.hooks.providers.senders import NOW_MS, arrival

from crossdock.hooks.rules.providers.model import Arrival, RefusalReason
from crossdock.hooks.rules.providers.recipes import recipe_of
from crossdock.hooks.rules.samples import SAMPLE_PROVIDERS, SampleWebhook, sample_webhook

SECRETS = {
    "stripe": "whsec_stripe",
    "github": "It's a Secret to Everybody",
    "shopify": "grüße",
    "standard-webhooks": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
}
SIGNED = pytest.mark.parametrize("provider", SECRETS)


def arrived(webhook: SampleWebhook) -> Arrival:
    return arrival(webhook.body, dict(webhook.headers))


def sample(provider: str, secret: str | None, body: bytes | None = None) -> SampleWebhook:
    return sample_webhook(provider, secret, body, NOW_MS, os.urandom)


def test_every_signed_sample_is_tried_here() -> None:
    assert set(SAMPLE_PROVIDERS) == {*SECRETS, "unsigned"}


@SIGNED
@pytest.mark.parametrize("body", [None, b"", b"\xff\x00 no text", '{"own": "grüße"}'.encode()])
def test_a_sample_is_accepted_by_its_providers_recipe(provider: str, body: bytes | None) -> None:
    webhook = sample(provider, SECRETS[provider], body)
    assert recipe_of(provider, None).verify(arrived(webhook), [SECRETS[provider]]) is None
    assert body is None or webhook.body == body


@SIGNED
def test_one_that_is_signed_with_another_secret_is_refused(provider: str) -> None:
    other = "whsec_" + "A" * 32
    refusal = recipe_of(provider, None).verify(arrived(sample(provider, other)), [SECRETS[provider]])
    assert refusal is not None
    assert refusal.reason is RefusalReason.SIGNATURE_MISMATCH


@SIGNED
def test_one_without_a_signature_is_refused_where_there_is_a_secret(provider: str) -> None:
    assert recipe_of(provider, None).verify(arrived(sample(provider, None)), [SECRETS[provider]]) is not None


@SIGNED
def test_every_sample_is_a_delivery_of_its_own(provider: str) -> None:
    recipe = recipe_of(provider, None)
    ids = {recipe.delivery_id(arrived(sample(provider, SECRETS[provider]))) for _ in range(20)}
    assert None not in ids
    assert len(ids) == 20


@pytest.mark.parametrize("provider", SAMPLE_PROVIDERS)
def test_a_made_up_body_is_an_object_in_json(provider: str) -> None:
    webhook = sample(provider, None)
    assert isinstance(msgspec.json.decode(webhook.body), dict)
    assert ("content-type", "application/json") in webhook.headers


def test_a_secret_that_can_not_be_the_providers_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="whsec_"):
        sample("standard-webhooks", "nonsense!")
