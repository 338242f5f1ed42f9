"""Secrets as keys, and whether a signature fits one. Whatever the bytes, the answer is yes or no."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, TypeAlias

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_public_key

from crossdock.hooks.rules.providers.claims import Encoding, decoded
from crossdock.hooks.rules.providers.model import Refusal, RefusalReason

ED25519_BYTES = 32


class UnusableSecret(ValueError):
    """The secret can't be a key here; the text says what one looks like."""


class Keys(Protocol):
    @property
    def name(self) -> str:
        """What they are, for people: `hmac-sha256`."""

    def check(self, secret: str) -> None:
        """Raises UnusableSecret."""

    def fits(self, secret: str, signed: bytes, signatures: Sequence[bytes]) -> bool:
        """Is one of the signatures this secret's, over these bytes? Raises UnusableSecret."""


@dataclass(frozen=True, slots=True)
class HmacKeys:
    algorithm: str
    key_of: Callable[[str], bytes]

    @property
    def name(self) -> str:
        return f"hmac-{self.algorithm}"

    def check(self, secret: str) -> None:
        self.key_of(secret)

    def fits(self, secret: str, signed: bytes, signatures: Sequence[bytes]) -> bool:
        expected = hmac.digest(self.key_of(secret), signed, self.algorithm)
        return any(hmac.compare_digest(expected, signature) for signature in signatures)


Verifier: TypeAlias = Callable[[bytes, bytes], None]
"""Called with a signature and what was signed. Raises InvalidSignature."""


@dataclass(frozen=True, slots=True)
class PublicKeys:
    name: str
    verifier_of: Callable[[str], Verifier]

    def check(self, secret: str) -> None:
        self.verifier_of(secret)

    def fits(self, secret: str, signed: bytes, signatures: Sequence[bytes]) -> bool:
        verify = self.verifier_of(secret)
        return any(_is_valid(verify, signature, signed) for signature in signatures)


def _is_valid(verify: Verifier, signature: bytes, signed: bytes) -> bool:
    try:
        verify(signature, signed)
    except InvalidSignature:
        return False
    return True


def judged(secrets: Sequence[str], fits: Callable[[str], bool], advice: str = "") -> Refusal | None:
    """None if any of the secrets fits. An unusable one harms no other."""
    usable = False
    for secret in secrets:
        try:
            if fits(secret):
                return None
            usable = True
        except UnusableSecret:
            continue
    if usable:
        detail = f"None of this source's secrets fits: compare them with the provider's.{advice}"
        return Refusal(RefusalReason.SIGNATURE_MISMATCH, detail)
    detail = "The source has no secret that can verify a signature of its provider: set signing_secret."
    return Refusal(RefusalReason.SECRET_UNUSABLE, detail)


# --- from text to key ------------------------------------------------------------------------------


def text_key(secret: str) -> bytes:
    """As given: most providers take the characters of their secret for the key, whatever they look like."""
    try:
        key = secret.encode()
    except UnicodeEncodeError:
        raise UnusableSecret("must be text") from None
    if not key:
        raise UnusableSecret("must not be empty")
    return key


def hex_key(secret: str) -> bytes:
    key = decoded(secret, Encoding.HEX)
    if not key:
        raise UnusableSecret("must be in hex, as the provider shows it")
    return key


def webhook_key(secret: str) -> bytes:
    """Standard Webhooks: base64, with or without `whsec_` before it."""
    if secret.startswith("whsk_"):
        raise UnusableSecret("is the sender's private key (whsk_); set the public one (whpk_)")
    key = decoded(secret.removeprefix("whsec_"), Encoding.BASE64)
    if not key:
        raise UnusableSecret("must be whsec_ and base64, or whpk_ and a public key in base64")
    return key


# Public keys are parsed once: parsing costs about as much as verifying, and they are no secret to keep.
@lru_cache(maxsize=256)
def hex_ed25519(secret: str) -> Verifier:
    return _ed25519(decoded(secret, Encoding.HEX), "must be a public key: 64 hex digits")


@lru_cache(maxsize=256)
def webhook_ed25519(secret: str) -> Verifier:
    key = decoded(secret.removeprefix("whpk_"), Encoding.BASE64)
    return _ed25519(key, "must be whpk_ and a public key: 32 bytes in base64")


def _ed25519(key: bytes | None, form: str) -> Verifier:
    if key is None or len(key) != ED25519_BYTES:
        raise UnusableSecret(form)
    return Ed25519PublicKey.from_public_bytes(key).verify


@lru_cache(maxsize=256)
def spki_p256(secret: str) -> Verifier:
    form = "must be a P-256 public key in base64, as the provider shows it (without the lines of a PEM file)"
    try:
        key = load_der_public_key(decoded(secret, Encoding.BASE64) or b"")
    except (ValueError, UnsupportedAlgorithm):
        raise UnusableSecret(form) from None
    if not isinstance(key, EllipticCurvePublicKey) or not isinstance(key.curve, SECP256R1):
        raise UnusableSecret(form)
    public_key = key

    def verify(signature: bytes, signed: bytes) -> None:
        public_key.verify(signature, signed, ECDSA(SHA256()))

    return verify
