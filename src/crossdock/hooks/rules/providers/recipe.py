"""One provider: how its requests are verified, answered where they ask, and told apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crossdock.hooks.rules.providers import dedup as ids
from crossdock.hooks.rules.providers.challenges import Challenge
from crossdock.hooks.rules.providers.dedup import Dedup, IdSource
from crossdock.hooks.rules.providers.model import Arrival, Refusal, Reply
from crossdock.hooks.rules.providers.schemes import Scheme

ALWAYS_CREDENTIALS = frozenset({"authorization", "cookie", "proxy-authorization"})
"""Headers, in lower case, that are credentials whoever sends them."""


@dataclass(frozen=True, slots=True)
class Recipe:
    provider: str
    scheme: Scheme
    id_source: IdSource = ids.nowhere
    hello: Challenge | None = None
    credential_headers: frozenset[str] = frozenset()
    """Headers, in lower case, that are credentials with this provider: never to be stored or sent on."""
    signs_url: bool = False
    """The signature is good only if PUBLIC_URL is what the provider calls."""

    def algorithm(self, secret: str) -> str:
        """How requests are signed, for people; with some providers a secret's form tells."""
        return self.scheme.algorithm(secret)

    def verify(self, arrival: Arrival, secrets: Sequence[str]) -> Refusal | None:
        """None if it is the provider's, by any of the secrets. Never raises, whatever was sent."""
        return self.scheme.verify(arrival, secrets)

    @property
    def challenge_needs_verified(self) -> bool:
        """False: the provider sends its challenge unsigned, so `challenge` comes before `verify`."""
        return self.hello is None or self.hello.needs_verified

    def challenge(self, arrival: Arrival, secrets: Sequence[str]) -> Reply | None:
        """The answer to a request that is a challenge and no event; None for all others.

        One that must be verified is answered only if it is, or if the source has no secret to verify by.
        """
        if self.hello is None or not self.hello.is_asked(arrival):
            return None
        proven = [secret for secret in secrets if self.scheme.verify(arrival, (secret,)) is None]
        if self.hello.needs_verified and secrets and not proven:
            return None
        return self.hello.answer(arrival, proven)

    def delivery_id(self, arrival: Arrival, dedup: Dedup | None = None) -> str | None:
        """The same for every attempt at one delivery, and for no other. None: it can't be told."""
        return ids.delivery_id(arrival, self.id_source, dedup)
