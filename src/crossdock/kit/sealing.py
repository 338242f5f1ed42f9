"""Secrets sealed at rest: AES-256-GCM under a key that lives outside the database.

    sealed = "v1." + key id + "." + base64url(nonce, ciphertext, tag)

- What was sealed for one context (`hooks.source:src_1:secret`) opens in no other, so a sealed value copied
  into another row or column is refused, not used.
- New values are sealed under the current key. Those of previous keys open as long as these are given;
  `is_current` tells which are left to seal anew.
- The nonce is random: a key is good for 2**32 values (chance of a repeat under 2**-32), about a century at
  one a second.

Nothing here needs an engine. A value whose key is gone is lost; the error names the key's id.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from crossdock.kit.errors import CrossdockError
from crossdock.kit.ids import Random

KEY_BYTES = 32
KEY_BYTES_MIN = 16
_NONCE_BYTES = 12
_TAG_BYTES = 16
_VERSION = "v1"

_HEX = re.compile(r"(?:[0-9a-fA-F]{2})+")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")


class SealError(CrossdockError):
    """A sealed value that can't be opened. Codes: `seal_malformed`, `seal_key_unknown`, `seal_broken`."""


def parse_secret_key(text: str) -> bytes:
    """The 32 bytes of a `SECRET_KEY` setting: hex or base64 of 32 random bytes are those bytes.

    Anything else is stretched to 32 (HKDF-SHA256), if it has at least 16 bytes. Raises ValueError.
    """
    material = _decoded(text.strip())
    if len(material) < KEY_BYTES_MIN:
        raise ValueError(
            f"must be at least {KEY_BYTES_MIN} random bytes in hex or base64; make one: openssl rand -hex 32"
        )
    if len(material) == KEY_BYTES:
        return material
    return HKDF(SHA256(), KEY_BYTES, salt=None, info=b"crossdock secret key").derive(material)


def _decoded(text: str) -> bytes:
    if _HEX.fullmatch(text):
        return bytes.fromhex(text)
    if _BASE64.fullmatch(text):
        plain = text.rstrip("=").replace("-", "+").replace("_", "/")
        try:
            return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
        except binascii.Error:
            pass
    return text.encode()


def key_id(key: bytes) -> str:
    """Names a key without telling anything of it."""
    return hashlib.sha256(b"crossdock key id\0" + key).hexdigest()[:8]


class Sealer:
    def __init__(self, key: bytes, previous: Sequence[bytes] = (), random: Random = os.urandom) -> None:
        """`key` seals and opens, the `previous` only open. Each has 32 bytes."""
        if any(len(each) != KEY_BYTES for each in (key, *previous)):
            raise ValueError(f"a sealing key has {KEY_BYTES} bytes")
        self._key_id = key_id(key)
        self._ciphers = {key_id(each): AESGCM(each) for each in (key, *previous)}
        self._random = random

    def seal(self, plaintext: bytes, context: str) -> str:
        nonce = self._random(_NONCE_BYTES)
        sealed = self._ciphers[self._key_id].encrypt(nonce, plaintext, _bound_to(self._key_id, context))
        return f"{_VERSION}.{self._key_id}.{base64.urlsafe_b64encode(nonce + sealed).decode()}"

    def unseal(self, sealed: str, context: str) -> bytes:
        """The plaintext. Raises SealError, and never returns anything that was tampered with."""
        identifier, payload = _parts(sealed)
        cipher = self._ciphers.get(identifier)
        if cipher is None:
            raise SealError(
                "seal_key_unknown",
                f"The value was sealed with key {identifier}, which this server was not given.",
            )
        try:
            return cipher.decrypt(
                payload[:_NONCE_BYTES], payload[_NONCE_BYTES:], _bound_to(identifier, context)
            )
        except InvalidTag:
            raise SealError(
                "seal_broken",
                "The sealed value was changed, or belongs elsewhere.",
                internal=f"context {context}, key {identifier}",
            ) from None

    def is_current(self, sealed: str) -> bool:
        """Was it sealed with the current key? If not, seal it anew before the previous key is dropped."""
        return _parts(sealed)[0] == self._key_id


def _bound_to(identifier: str, context: str) -> bytes:
    return f"{_VERSION}.{identifier}.{context}".encode()


def _parts(sealed: str) -> tuple[str, bytes]:
    version, _, rest = sealed.partition(".")
    identifier, _, encoded = rest.partition(".")
    if version != _VERSION or not identifier:
        raise SealError("seal_malformed", "The value is not a sealed one.")
    try:
        payload = base64.b64decode(encoded.encode("ascii"), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise SealError("seal_malformed", "The sealed value is not base64.") from None
    if len(payload) < _NONCE_BYTES + _TAG_BYTES:
        raise SealError("seal_malformed", "The sealed value was cut short.")
    return identifier, payload
