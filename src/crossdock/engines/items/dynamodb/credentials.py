"""Who we are to AWS: the usual variables, or what botocore finds (profiles, containers, instance roles)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import botocore.session

from crossdock.engines.items.dynamodb.signing import Credentials
from crossdock.kit.clock import Clock
from crossdock.kit.errors import Unavailable

# botocore renews a session 10 minutes or more before its end, so that one a minute old is good.
KEPT_SECONDS = 60


class CredentialSource(Protocol):
    async def current(self) -> Credentials:
        """Raises Unavailable if there are none."""

    def forget(self) -> None:
        """What `current` gave was refused as expired: ask the source anew."""


@dataclass(frozen=True, slots=True)
class FixedCredentials:
    credentials: Credentials

    async def current(self) -> Credentials:
        return self.credentials

    def forget(self) -> None:
        pass


class BotocoreCredentials:
    """botocore's chain, asked in a thread at most once a minute: it reads files and calls HTTP endpoints."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._session: Any = botocore.session.Session()
        self._source: Any = None
        self._kept: Credentials | None = None
        self._kept_until = 0.0
        self._asking = asyncio.Lock()

    async def current(self) -> Credentials:
        if self._kept is None or self._clock.monotonic() >= self._kept_until:
            async with self._asking:
                if self._kept is None or self._clock.monotonic() >= self._kept_until:
                    self._kept = await asyncio.to_thread(self._ask)
                    self._kept_until = self._clock.monotonic() + KEPT_SECONDS
        return self._kept

    def _ask(self) -> Credentials:
        if self._source is None:
            self._source = self._session.get_credentials()
        if self._source is None:
            raise Unavailable(
                "items_unavailable",
                "The item store can't be reached; try again.",
                internal="no AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile",
            )
        frozen = self._source.get_frozen_credentials()
        return Credentials(frozen.access_key, frozen.secret_key, frozen.token)

    def forget(self) -> None:
        self._kept = None
        self._source = None


def credentials_from(environ: Mapping[str, str], clock: Clock) -> CredentialSource:
    access_key = environ.get("AWS_ACCESS_KEY_ID")
    secret_key = environ.get("AWS_SECRET_ACCESS_KEY")
    if access_key and secret_key:
        return FixedCredentials(Credentials(access_key, secret_key, environ.get("AWS_SESSION_TOKEN") or None))
    return BotocoreCredentials(clock)
