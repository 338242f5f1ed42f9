"""Signatures of outgoing webhooks, as Standard Webhooks (v1) has them.

    webhook-signature: v1,<base64 of HMAC-SHA256(key, "{id}.{timestamp}.{body}")>

One entry for every secret that is valid, so that a receiver may change to a new one at its own pace. A secret
is `whsec_` and the base64 of its key.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Sequence
from functools import lru_cache

from crossdock.kit.ids import Random

PREFIX = "whsec_"
KEY_BYTES = 32


def make_secret(random: Random) -> str:
    return PREFIX + base64.b64encode(random(KEY_BYTES)).decode()


def sign(secrets: Sequence[str], message_id: str, timestamp_s: int, body: bytes) -> str:
    """The value of `webhook-signature`. Raises ValueError for a secret that is none."""
    signed = f"{message_id}.{timestamp_s}.".encode() + body
    return " ".join([_entry(secret, signed) for secret in secrets])


def key_of_secret(secret: str) -> bytes:
    """The key inside; its prefix and padding may be missing. Raises ValueError."""
    encoded = secret.removeprefix(PREFIX)
    try:
        key = base64.b64decode((encoded + "=" * (-len(encoded) % 4)).encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        key = b""
    if not key:
        raise ValueError(f"a signing secret is {PREFIX} and base64") from None
    return key


def _entry(secret: str, signed: bytes) -> str:
    mac = _begun(secret).copy()
    mac.update(signed)
    return "v1," + binascii.b2a_base64(mac.digest(), newline=False).decode("ascii")


@lru_cache(maxsize=4096)
def _begun(secret: str) -> hmac.HMAC:
    """Reading a secret and setting up its MAC takes longer than the MAC of a usual message."""
    return hmac.new(key_of_secret(secret), digestmod="sha256")
