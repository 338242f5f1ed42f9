"""Signatures that others made: from providers' documents and libraries, or by `openssl dgst`."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime

import pytest
import standardwebhooks
import stripe
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.hooks.providers.senders import arrival

from crossdock.hooks.rules.providers.model import RefusalReason
from crossdock.hooks.rules.providers.recipes import recipe_of

SLACK_BODY = (
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V"
    b"&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text="
    b"&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554"
    b"%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
)
SENDGRID_BODY = (
    b'[{"email":"hello@world.com","event":"dropped","reason":"Bounced Address",'
    b'"sg_event_id":"ZHJvcC0xMDk5NDkxOS1MUnpYbF9OSFN0T0doUTRrb2ZTbV9BLTA",'
    b'"sg_message_id":"LRzXl_NHStOGhQ4kofSm_A.filterdrecv-p3mdw1-756b745b58-kmzbl-18-5F5FC76C-9.0",'
    b'"smtp-id":"<LRzXl_NHStOGhQ4kofSm_A@ismtpd0039p1iad1.sendgrid.net>","timestamp":1600112492}]\r\n'
)
ADYEN_ITEM = {
    "pspReference": "7914073381342284",
    "merchantAccountCode": "TestMerchant",
    "merchantReference": "TestPayment-1407325143704",
    "amount": {"value": 1130, "currency": "EUR"},
    "eventCode": "AUTHORISATION",
    "success": "true",
    "additionalData": {"hmacSignature": "coqCmt/IZ4E3CzPvMY8zTjQVL5hYJUiBRg8UU+iCWo0="},
}

VECTORS = {
    "github": (
        "It's a Secret to Everybody",
        b"Hello, World!",
        {
            "X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
        },
        "https://hooks.example.org/in/src_1",
        0,
    ),
    "standard-webhooks": (
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        b'{"test": 2432232314}',
        {
            "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "webhook-timestamp": "1614265330",
            "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        },
        "https://hooks.example.org/in/src_1",
        1_614_265_330_000,
    ),
    "slack": (
        "8f742231b10e8888abcd99yyyzzz85a5",
        SLACK_BODY,
        {
            "X-Slack-Request-Timestamp": "1531420618",
            "X-Slack-Signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
        },
        "https://hooks.example.org/in/src_1",
        1_531_420_618_000,
    ),
    "hubspot": (
        "yyyyyyyy-yyyy-yyyy-yyyy-yyyyyyyyyyyy",
        b"{'example_field':'example_value'}",
        {
            "X-HubSpot-Request-Timestamp": "1693657560000",
            "X-HubSpot-Signature-v3": "K36dawei4A+QBNolUOqo7s91KQDWQ5MXZ/QufNYuk/Y=",
        },
        "https://www.example.com/webhook_uri",
        1_693_657_560_000,
    ),
    "sendgrid": (
        "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaIN"
        "XvVpiglSI8eNEc6wEA3F+g==",
        SENDGRID_BODY,
        {
            "X-Twilio-Email-Event-Webhook-Timestamp": "1600112502",
            "X-Twilio-Email-Event-Webhook-Signature": (
                "MEUCIGHQVtGj+Y3LkG9fLcxf3qfI10QysgDWmMOVmxG0u6ZUAiEA"
                "yBiXDWzM+uOe5W0JuG+luQAbPIqHh89M15TluLtEZtM="
            ),
        },
        "https://hooks.example.org/in/src_1",
        1_600_112_502_000,
    ),
    "adyen": (
        "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056",
        json.dumps({"notificationItems": [{"NotificationRequestItem": ADYEN_ITEM}]}).encode(),
        {},
        "https://hooks.example.org/in/src_1",
        0,
    ),
}


@pytest.mark.parametrize("provider", VECTORS)
def test_a_published_signature_is_taken_and_no_other(provider: str) -> None:
    secret, body, headers, url, received_at_ms = VECTORS[provider]
    recipe = recipe_of(provider, None)
    assert recipe.verify(arrival(body, headers, url=url, received_at_ms=received_at_ms), [secret]) is None
    other = arrival(body.replace(b"e", b"i"), headers, url=url, received_at_ms=received_at_ms)
    refusal = recipe.verify(other, [secret])
    assert refusal is not None
    assert refusal.reason in (RefusalReason.SIGNATURE_MISMATCH, RefusalReason.BODY_MALFORMED)


bodies = st.text(max_size=60).map(lambda text: json.dumps({"text": text}, ensure_ascii=False))
seconds = st.integers(1_000_000_000, 4_000_000_000)
secret_texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40).filter(str.strip)


@settings(deadline=None)
@given(bodies, secret_texts, secret_texts, seconds)
def test_stripes_own_library_signs_what_is_taken(body: str, secret: str, other: str, now: int) -> None:
    header = stripe.WebhookSignature.generate_signature_header(body, secret, now)
    assert stripe.WebhookSignature.verify_header(body, header, secret)
    sent = arrival(body.encode(), {"Stripe-Signature": header}, received_at_ms=now * 1000)
    recipe = recipe_of("stripe", None)
    assert recipe.verify(sent, [secret]) is None
    assert (recipe.verify(sent, [other]) is None) == (other == secret)


@settings(deadline=None)
@given(bodies, st.binary(min_size=24, max_size=64), st.from_regex(r"\A[A-Za-z0-9_]{1,40}\Z"), seconds)
def test_the_standard_webhooks_library_signs_what_is_taken(
    body: str, key: bytes, message_id: str, now: int
) -> None:
    secret = "whsec_" + base64.b64encode(key).decode()
    library = standardwebhooks.Webhook(secret)
    # The library reads a naive time as UTC.
    moment = datetime.fromtimestamp(now, UTC).replace(tzinfo=None)
    headers = {
        "webhook-id": message_id,
        "webhook-timestamp": str(now),
        "webhook-signature": library.sign(message_id, moment, body),
    }
    sent = arrival(body.encode(), headers, received_at_ms=now * 1000)
    recipe = recipe_of("standard-webhooks", None)
    assert recipe.verify(sent, [secret]) is None
    assert recipe.verify(sent, [secret.removeprefix("whsec_")]) is None
    assert recipe.verify(sent, ["whsec_" + base64.b64encode(key + b"x").decode()]) is not None


def test_the_standard_webhooks_library_takes_what_our_sender_signs() -> None:
    """The other way round: the sender of the other tests is not only in agreement with us."""
    secret = "whsec_" + base64.b64encode(bytes(32)).decode()
    library = standardwebhooks.Webhook(secret)
    now = datetime.now(tz=UTC)
    signature = library.sign("msg_1", now.replace(tzinfo=None), "{}")
    stamp = str(int(now.timestamp()))
    headers = {"webhook-id": "msg_1", "webhook-timestamp": stamp, "webhook-signature": signature}
    assert library.verify(b"{}", headers) == {}
    sent = arrival(b"{}", headers, received_at_ms=int(now.timestamp() * 1000))
    assert recipe_of("standard-webhooks", None).verify(sent, [secret]) is None
