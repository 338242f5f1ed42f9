"""Every provider as the one who sends: signed by what its documents say, with none of our own code.

A sender lacks nothing that `test_every_provider.py` asks for, since no field of `Sender` has a default.
"""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, derive_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from crossdock.hooks.rules.providers.model import Arrival
from crossdock.hooks.rules.providers.recipe import Recipe
from crossdock.hooks.rules.providers.recipes import recipe_of

NOW_MS = 1_735_732_800_000
PATH = "/in/src_0123456789abcdef"
URL = f"https://hooks.example.org{PATH}"

Headers = dict[str, str]


@dataclass(frozen=True)
class Secret:
    """What the provider signs with, and what a source is given to verify by: often the same."""

    signing: Any
    configured: str


@dataclass(frozen=True)
class Sender:
    name: str
    settings: Mapping[str, Any] | None
    secrets: tuple[Secret, Secret, Secret]
    body: Callable[[int], bytes]
    """What is sent at that time (ms), before it is signed."""
    sign: Callable[[Any, bytes, int], Headers]
    """The headers for a key, a body and a time (ms)."""
    sign_body: Callable[[Any, bytes], bytes] | None
    """For a provider whose signature is in the body."""
    signed_headers: tuple[str, ...]
    """Without any one of these nothing is accepted."""
    tampered: Callable[[bytes], bytes] | None
    """Another body, which must be refused; None: the body is not signed at all."""
    tolerance_seconds: int | None
    """None: the provider sends no time."""

    @property
    def recipe(self) -> Recipe:
        return recipe_of(self.name, self.settings)

    def send(
        self, secret: Secret | None = None, at_ms: int = NOW_MS, received_at_ms: int = NOW_MS
    ) -> Arrival:
        signing = (secret or self.secrets[0]).signing
        body = self.body(at_ms)
        if self.sign_body is not None:
            body = self.sign_body(signing, body)
        return arrival(body, self.sign(signing, body, at_ms), received_at_ms=received_at_ms)


def arrival(
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    *,
    method: str = "POST",
    url: str = URL,
    received_at_ms: int = NOW_MS,
) -> Arrival:
    path_and_query = url.split("://", 1)[-1].partition("/")
    path, _, query = (path_and_query[1] + path_and_query[2]).partition("?")
    pairs = (("Host", "hooks.example.org"), *(headers or {}).items())
    return Arrival(method, url, path, query, pairs, body, received_at_ms)


def with_body(sent: Arrival, body: bytes) -> Arrival:
    return Arrival(sent.method, sent.url, sent.path, sent.query, sent.headers, body, sent.received_at_ms)


def with_headers(sent: Arrival, headers: tuple[tuple[str, str], ...]) -> Arrival:
    return Arrival(sent.method, sent.url, sent.path, sent.query, headers, sent.body, sent.received_at_ms)


# --- the ways of signing ---------------------------------------------------------------------------


def mac(secret: str | bytes, message: bytes, algorithm: str = "sha256") -> bytes:
    return hmac.new(secret.encode() if isinstance(secret, str) else secret, message, algorithm).digest()


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def seconds(at_ms: int) -> bytes:
    return str(at_ms // 1000).encode()


def over_body(header: str, form: Callable[[bytes], str]) -> Callable[[str, bytes, int], Headers]:
    return lambda secret, body, _: {header: form(mac(secret, body))}


def _stripe(secret: str, body: bytes, at_ms: int) -> Headers:
    stamp = seconds(at_ms)
    return {"Stripe-Signature": f"t={stamp.decode()},v1={mac(secret, stamp + b'.' + body).hex()},v0=00"}


def _paddle(secret: str, body: bytes, at_ms: int) -> Headers:
    stamp = seconds(at_ms)
    return {"Paddle-Signature": f"ts={stamp.decode()};h1={mac(secret, stamp + b':' + body).hex()}"}


def _v0(signature: str, timestamp: str) -> Callable[[str, bytes, int], Headers]:
    def sign(secret: str, body: bytes, at_ms: int) -> Headers:
        stamp = seconds(at_ms)
        return {timestamp: stamp.decode(), signature: "v0=" + mac(secret, b"v0:" + stamp + b":" + body).hex()}

    return sign


def _standard_webhooks(secret: bytes, body: bytes, at_ms: int) -> Headers:
    stamp = seconds(at_ms)
    signature = b64(mac(secret, b"msg_2KWPBgLlAfxdpx2AI54pPJ85f4W." + stamp + b"." + body))
    return {
        "webhook-id": "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W",
        "webhook-timestamp": stamp.decode(),
        "webhook-signature": f"v1,{signature}",
    }


def _twilio(secret: str, body: bytes, _: int) -> Headers:
    pairs = sorted(tuple(part.split("=", 1)) for part in body.decode().split("&"))
    text = URL + "".join(name + value for name, value in pairs)
    return {"X-Twilio-Signature": b64(mac(secret, text.encode(), "sha1"))}


def _square(secret: str, body: bytes, _: int) -> Headers:
    return {"x-square-hmacsha256-signature": b64(mac(secret, URL.encode() + body))}


def _hubspot(secret: str, body: bytes, at_ms: int) -> Headers:
    stamp = str(at_ms)
    signature = b64(mac(secret, b"POST" + URL.encode() + body + stamp.encode()))
    return {"X-HubSpot-Request-Timestamp": stamp, "X-HubSpot-Signature-v3": signature}


def _discord(key: Ed25519PrivateKey, body: bytes, at_ms: int) -> Headers:
    stamp = seconds(at_ms)
    return {
        "X-Signature-Timestamp": stamp.decode(),
        "X-Signature-Ed25519": key.sign(stamp + body).hex(),
    }


def _sendgrid(key: Any, body: bytes, at_ms: int) -> Headers:
    stamp = seconds(at_ms)
    return {
        "X-Twilio-Email-Event-Webhook-Timestamp": stamp.decode(),
        "X-Twilio-Email-Event-Webhook-Signature": b64(key.sign(stamp + body, ECDSA(SHA256()))),
    }


def _adyen(secret: bytes, body: bytes) -> bytes:
    document = json.loads(body)
    for wrapped in document["notificationItems"]:
        item = wrapped["NotificationRequestItem"]
        fields = (
            item["pspReference"],
            item.get("originalReference", ""),
            item["merchantAccountCode"],
            item["merchantReference"],
            str(item["amount"]["value"]),
            item["amount"]["currency"],
            item["eventCode"],
            item["success"],
        )
        item["additionalData"] = {"hmacSignature": b64(mac(secret, ":".join(fields).encode()))}
    return json.dumps(document).encode()


def _custom(secret: str, body: bytes, at_ms: int) -> Headers:
    stamp = seconds(at_ms)
    signed = b"42|" + stamp + b"|POST|" + PATH.encode() + b"|" + URL.encode() + b"\n" + body
    return {"X-Id": "42", "X-Time": stamp.decode(), "X-Sig": "sig " + b64(mac(secret, signed, "sha512"))}


def latin(text: str) -> str:
    """UTF-8 as a server hands it on: a header is decoded as latin-1."""
    return text.encode().decode("latin-1")


# --- secrets ---------------------------------------------------------------------------------------


def _texts(form: Callable[[str], str] = str) -> tuple[Secret, Secret, Secret]:
    first, second, third = (Secret(form(text), form(text)) for text in ("It's a Secret", "zwölf", "other"))
    return first, second, third


def _of_bytes(form: Callable[[bytes], str]) -> tuple[Secret, Secret, Secret]:
    first, second, third = (Secret(bytes([n]) * 32, form(bytes([n]) * 32)) for n in (1, 2, 3))
    return first, second, third


def _ed25519() -> tuple[Secret, Secret, Secret]:
    keys = [Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32) for n in (1, 2, 3)]
    first, second, third = (Secret(key, key.public_key().public_bytes_raw().hex()) for key in keys)
    return first, second, third


def _p256() -> tuple[Secret, Secret, Secret]:
    keys = [derive_private_key(n, SECP256R1()) for n in (1001, 1002, 1003)]
    spki = [key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) for key in keys]
    first, second, third = (Secret(key, b64(der)) for key, der in zip(keys, spki, strict=True))
    return first, second, third


# --- bodies ----------------------------------------------------------------------------------------

EVENT = '{"id": "evt_1", "event_id": "Ev1", "text": "grüße", "amount": 10}'.encode()
FORM = b"CallSid=CA1234567890ABCDE&From=14158675309&Digits=1234&Body="
ITEM = {
    "pspReference": "7914073381342284",
    "merchantAccountCode": "TestMerchant",
    "merchantReference": "TestPayment-1407325143704",
    "amount": {"value": 1130, "currency": "EUR"},
    "eventCode": "AUTHORISATION",
    "success": "true",
}


def _event(_: int) -> bytes:
    return EVENT


def _linear_event(at_ms: int) -> bytes:
    return json.dumps({"action": "update", "webhookTimestamp": at_ms}).encode()


def adyen_body(*items: Mapping[str, Any]) -> bytes:
    wrapped = [{"NotificationRequestItem": dict(item)} for item in items]
    return json.dumps({"live": "false", "notificationItems": wrapped}).encode()


def _changed(body: bytes) -> bytes:
    return body.replace(b"10", b"99") + b" "


def _sender(
    name: str,
    sign: Callable[[Any, bytes, int], Headers],
    signed_headers: tuple[str, ...],
    tolerance_seconds: int | None = None,
    *,
    secrets: tuple[Secret, Secret, Secret] | None = None,
    body: Callable[[int], bytes] = _event,
    tampered: Callable[[bytes], bytes] | None = _changed,
    settings: Mapping[str, Any] | None = None,
) -> Sender:
    return Sender(
        name, settings, secrets or _texts(), body, sign, None, signed_headers, tampered, tolerance_seconds
    )


_ADYEN = Sender(
    name="adyen",
    settings=None,
    secrets=_of_bytes(bytes.hex),
    body=lambda _: adyen_body(ITEM, ITEM | {"pspReference": "8814073381342284", "success": "false"}),
    sign=lambda _, __, ___: {},
    sign_body=_adyen,
    signed_headers=(),
    tampered=lambda body: body.replace(b"1130", b"1"),
    tolerance_seconds=None,
)

_ALL = (
    _sender("stripe", _stripe, ("Stripe-Signature",), 300),
    _sender(
        "github",
        over_body("X-Hub-Signature-256", lambda raw: "sha256=" + raw.hex()),
        ("X-Hub-Signature-256",),
    ),
    _sender("shopify", over_body("X-Shopify-Hmac-Sha256", b64), ("X-Shopify-Hmac-Sha256",)),
    _sender(
        "standard-webhooks",
        _standard_webhooks,
        ("webhook-id", "webhook-timestamp", "webhook-signature"),
        300,
        secrets=_of_bytes(lambda key: "whsec_" + b64(key)),
    ),
    _sender(
        "slack",
        _v0("X-Slack-Signature", "X-Slack-Request-Timestamp"),
        ("X-Slack-Signature", "X-Slack-Request-Timestamp"),
        300,
    ),
    _sender(
        "twilio", _twilio, ("X-Twilio-Signature",), body=lambda _: FORM, tampered=lambda body: body + b"x"
    ),
    _sender("square", _square, ("x-square-hmacsha256-signature",)),
    _sender("paddle", _paddle, ("Paddle-Signature",), 300),
    _sender("hubspot", _hubspot, ("X-HubSpot-Signature-v3", "X-HubSpot-Request-Timestamp"), 300),
    _sender(
        "zoom",
        _v0("x-zm-signature", "x-zm-request-timestamp"),
        ("x-zm-signature", "x-zm-request-timestamp"),
        300,
    ),
    _sender("discord", _discord, ("X-Signature-Ed25519", "X-Signature-Timestamp"), 300, secrets=_ed25519()),
    _sender(
        "gitlab", lambda secret, _, __: {"X-Gitlab-Token": latin(secret)}, ("X-Gitlab-Token",), tampered=None
    ),
    _sender(
        "sendgrid",
        _sendgrid,
        ("X-Twilio-Email-Event-Webhook-Signature", "X-Twilio-Email-Event-Webhook-Timestamp"),
        300,
        secrets=_p256(),
    ),
    _sender(
        "linear",
        over_body("Linear-Signature", bytes.hex),
        ("Linear-Signature",),
        60,
        body=_linear_event,
        tampered=lambda body: body.replace(b"update", b"remove"),
    ),
    _ADYEN,
    _sender("line", over_body("x-line-signature", b64), ("x-line-signature",)),
    _sender("razorpay", over_body("X-Razorpay-Signature", bytes.hex), ("X-Razorpay-Signature",)),
    _sender("woocommerce", over_body("X-WC-Webhook-Signature", b64), ("X-WC-Webhook-Signature",)),
    _sender(
        "basic-auth",
        lambda secret, _, __: {"Authorization": "Basic " + b64(secret.encode())},
        ("Authorization",),
        secrets=_texts("user:{}".format),
        tampered=None,
    ),
    _sender(
        "custom",
        _custom,
        ("X-Id", "X-Time", "X-Sig"),
        30,
        settings={
            "header": "X-Sig",
            "algorithm": "sha512",
            "encoding": "base64",
            "prefix": "sig ",
            "signed": "{id}|{timestamp}|{method}|{path}|{url}\n{body}",
            "timestamp_header": "X-Time",
            "tolerance_seconds": 30,
            "id_header": "X-Id",
        },
    ),
    _sender("api-key", lambda secret, _, __: {"X-API-Key": latin(secret)}, ("X-API-Key",), tampered=None),
)


SENDERS = {sender.name: sender for sender in _ALL}
