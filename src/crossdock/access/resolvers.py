"""From a `dk_` key or a session cookie to its principal.

- A revoked key, a deleted workspace, an ended session stop working at once in this process and within 5 s in
  every other: answers are cached that long, "no such key" too, in a bounded cache.
- What does not look like one of our keys is refused without asking anybody.
- With the database away, what is cached works on for its 5 s; anything else is `Unavailable`.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from crossdock.access import store
from crossdock.access.rules import fingerprint, looks_like_key, moment, principal_of_key
from crossdock.engines.sql.failures import reaching_database
from crossdock.engines.sql.target import Pool
from crossdock.http.principals import Principal
from crossdock.kit.clock import Clock
from crossdock.kit.ids import is_uuid4
from crossdock.kit.ttl_cache import TtlCache

CACHE_SECONDS = 5.0
CACHE_CAPACITY = 10_000


class KeyResolver:
    def __init__(self, pool: Pool, clock: Clock) -> None:
        self._pool = pool
        self._cache: TtlCache[str, Principal] = TtlCache(
            clock, capacity=CACHE_CAPACITY, ttl_seconds=CACHE_SECONDS
        )

    async def resolve(self, credential: str) -> Principal | None:
        if not looks_like_key(credential):
            return None
        return await self._cache.get_or_fill(fingerprint(credential).key_hash, self._read)

    def forget(self) -> None:
        """Something about keys or workspaces changed. That is rare, so all are read again."""
        self._cache.invalidate_all()

    async def _read(self, key_hash: str) -> Principal | None:
        with reaching_database():
            found = await store.good_key(self._pool, key_hash)
        return None if found is None else principal_of_key(*found)


@dataclass(frozen=True, slots=True)
class _LiveSession:
    principal: Principal
    expires_at_ms: int


class SessionResolver:
    def __init__(self, pool: Pool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock
        self._cache: TtlCache[UUID, _LiveSession] = TtlCache(
            clock, capacity=CACHE_CAPACITY, ttl_seconds=CACHE_SECONDS
        )

    async def resolve(self, credential: str) -> Principal | None:
        if not is_uuid4(credential):
            return None
        live = await self._cache.get_or_fill(UUID(credential), self._read)
        if live is None or live.expires_at_ms <= self._clock.now_ms():
            return None
        return live.principal

    def forget(self) -> None:
        self._cache.invalidate_all()

    async def _read(self, session_id: UUID) -> _LiveSession | None:
        with reaching_database():
            session = await store.session(self._pool, session_id, moment(self._clock.now_ms()))
        if session is None:
            return None
        principal = principal_of_key(session.api_key_id, session.workspace_id)
        return _LiveSession(principal, int(session.expires_at.timestamp() * 1000))
