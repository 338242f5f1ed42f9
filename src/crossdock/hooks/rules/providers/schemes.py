"""Ways to prove where a request is from: signatures with or without a time, tokens, passwords.

Nothing in a request makes `verify` raise: whatever is wrong with it is a Refusal. Secrets are compared in
constant time. A timestamp counts on both sides: a request from the future is refused like an old one, since
else one that was recorded could be kept for later.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from crossdock.hooks.rules.providers.claims import Claim, Encoding, Reader, decoded, malformed, missing
from crossdock.hooks.rules.providers.keys import Keys, UnusableSecret, judged, text_key
from crossdock.hooks.rules.providers.model import Arrival, Refusal, RefusalReason, raw_bytes
from crossdock.hooks.rules.providers.payloads import Payload

TOLERANCE_SECONDS = 300

_URL_ADVICE = " The URL is signed too: PUBLIC_URL must be as the provider calls it."


class Scheme(Protocol):
    def algorithm(self, secret: str) -> str:
        """What such a secret makes or verifies, for people: `hmac-sha256`, `ed25519`, `token`."""

    def check(self, secret: str) -> None:
        """Raises UnusableSecret."""

    def verify(self, arrival: Arrival, secrets: Sequence[str]) -> Refusal | None:
        """None if any of the secrets, and the time, fit."""


Moment: TypeAlias = Callable[[Arrival, Claim], int | Refusal]
"""When a request says it was sent, in the unit of its provider."""


def claimed_moment(_: Arrival, claim: Claim) -> int | Refusal:
    return int(claim.timestamp)


def moment_in_body(name: str) -> Moment:
    def read(arrival: Arrival, _: Claim) -> int | Refusal:
        value = arrival.document.get(name) if isinstance(arrival.document, dict) else None
        if type(value) is int:
            return value
        return Refusal(RefusalReason.TIMESTAMP_MISSING, f"The body has no whole number {name}.")

    return read


@dataclass(frozen=True, slots=True)
class Freshness:
    tolerance_seconds: int = TOLERANCE_SECONDS
    unit_ms: int = 1000
    moment: Moment = claimed_moment

    def judge(self, arrival: Arrival, claim: Claim) -> Refusal | None:
        moment = self.moment(arrival, claim)
        if isinstance(moment, Refusal):
            return moment
        late_ms = arrival.received_at_ms - moment * self.unit_ms
        if abs(late_ms) <= self.tolerance_seconds * 1000:
            return None
        side = "before" if late_ms > 0 else "after"
        detail = (
            f"The request says it was sent more than {self.tolerance_seconds} s {side} it came: it is a"
            " repeated one, or a clock is wrong."
        )
        return Refusal(RefusalReason.TIMESTAMP_OUT_OF_TOLERANCE, detail)


@dataclass(frozen=True, slots=True)
class Signed:
    """A signature over bytes. The time is looked at last: it says nothing until it is known to be signed."""

    read: Reader
    payload: Payload
    keys: Keys
    freshness: Freshness | None = None

    def algorithm(self, _: str) -> str:
        return self.keys.name

    def check(self, secret: str) -> None:
        self.keys.check(secret)

    def verify(self, arrival: Arrival, secrets: Sequence[str]) -> Refusal | None:
        claim = self.read(arrival)
        if isinstance(claim, Refusal):
            return claim
        signed = self.payload.of(arrival, claim)
        if isinstance(signed, Refusal):
            return signed
        advice = _URL_ADVICE if self.payload.signs_url else ""
        refusal = judged(secrets, lambda secret: self.keys.fits(secret, signed, claim.signatures), advice)
        if refusal is None and self.freshness is not None:
            return self.freshness.judge(arrival, claim)
        return refusal


@dataclass(frozen=True, slots=True)
class ByPrefix:
    """Secrets of two kinds, told apart by how they begin; either kind is enough."""

    prefix: str
    prefixed: Scheme
    others: Scheme

    def algorithm(self, secret: str) -> str:
        return self._scheme_of(secret).algorithm(secret)

    def check(self, secret: str) -> None:
        self._scheme_of(secret).check(secret)

    def verify(self, arrival: Arrival, secrets: Sequence[str]) -> Refusal | None:
        prefixed = [secret for secret in secrets if secret.startswith(self.prefix)]
        others = [secret for secret in secrets if not secret.startswith(self.prefix)]
        refusal = self.prefixed.verify(arrival, prefixed) if prefixed else None
        if prefixed and (refusal is None or not others):
            return refusal
        return self.others.verify(arrival, others)

    def _scheme_of(self, secret: str) -> Scheme:
        return self.prefixed if secret.startswith(self.prefix) else self.others


@dataclass(frozen=True, slots=True)
class Token:
    """The secret itself in a header. It says who sent the request, and nothing of what is in it."""

    header: str
    prefix: str = ""

    def algorithm(self, _: str) -> str:
        return "token"

    def check(self, secret: str) -> None:
        text_key(secret)

    def verify(self, arrival: Arrival, secrets: Sequence[str]) -> Refusal | None:
        given = arrival.header(self.header)
        if not given:
            return missing(self.header)
        if not given.startswith(self.prefix):
            return malformed(self.header, f"{self.prefix}<token>")
        token = raw_bytes(given.removeprefix(self.prefix))
        return judged(secrets, lambda secret: hmac.compare_digest(text_key(secret), token))


@dataclass(frozen=True, slots=True)
class Password:
    """HTTP basic authentication (RFC 7617); the secret is `user:password`."""

    def algorithm(self, _: str) -> str:
        return "basic"

    def check(self, secret: str) -> None:
        if b":" not in text_key(secret):
            raise UnusableSecret("must be user:password")

    def verify(self, arrival: Arrival, secrets: Sequence[str]) -> Refusal | None:
        given = arrival.header("authorization")
        if not given:
            return missing("Authorization")
        scheme, _, encoded = given.partition(" ")
        pair = decoded(encoded.strip(), Encoding.BASE64) if scheme.lower() == "basic" else None
        if not pair:
            return malformed("Authorization", "Basic <user:password in base64>")
        return judged(secrets, lambda secret: self._fits(secret, pair))

    def _fits(self, secret: str, pair: bytes) -> bool:
        self.check(secret)
        return hmac.compare_digest(text_key(secret), pair)
