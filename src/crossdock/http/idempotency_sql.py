"""Idempotency records beside an effect in PostgreSQL. The guarantees are those of `idempotency`.

The first request holds an advisory lock of its scope until its transaction ends, so a repeat in flight is
told so at once, instead of holding a connection while it waits. The lock is gone only after the commit can be
seen, so whoever gets it next finds the record. A process that dies gives the lock back with its connection.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from crossdock.engines.sql.migrations import Migrations
from crossdock.engines.sql.target import Connection, Pool
from crossdock.http.idempotency import KEPT_MS, IdempotentRequest, Once, Stored, in_progress, replay
from crossdock.kit.clock import Clock
from crossdock.kit.sealing import Sealer

T = TypeVar("T", bound=msgspec.Struct)

MIGRATIONS = Migrations("platform", "crossdock.http.migrations")

_DELETE_BATCH = 1_000


class SqlIdempotency:
    def __init__(self, pool: Pool, sealer: Sealer, clock: Clock) -> None:
        self._pool = pool
        self._sealer = sealer
        self._clock = clock

    async def once(
        self,
        request: IdempotentRequest | None,
        stored: Stored[T],
        effect: Callable[[Connection], Awaitable[T]],
    ) -> Once[T]:
        """Run `effect` in a transaction, unless this request was carried out already.

        What `effect` raises rolls everything back, the record too. Without a `request` it always runs.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            if request is None:
                return Once(await effect(connection))
            earlier = await self._claim(connection, request, stored)
            if earlier is not None:
                return earlier
            value = await effect(connection)
            await self._record(connection, request, stored.seal(value, request, self._sealer))
            return Once(value)

    async def delete_expired(self) -> int:
        """Delete records nobody may ask for any more. How many there were."""
        deleted = 0
        while True:
            status = await self._pool.execute(
                """
                DELETE FROM platform.idempotency_records WHERE scope IN (
                    SELECT scope FROM platform.idempotency_records WHERE expires_at <= $1
                    LIMIT $2 FOR UPDATE SKIP LOCKED)
                """,
                _moment(self._clock.now_ms()),
                _DELETE_BATCH,
            )
            count = int(status.rpartition(" ")[2])
            deleted += count
            if count < _DELETE_BATCH:
                return deleted

    async def _claim(
        self, connection: Connection, request: IdempotentRequest, stored: Stored[T]
    ) -> Once[T] | None:
        """None: it is ours to do. Two statements: the second must see what was committed before the lock."""
        lock = int.from_bytes(bytes.fromhex(request.scope)[:8], signed=True)
        if not await connection.fetchval("SELECT pg_try_advisory_xact_lock($1)", lock):
            raise in_progress()
        now_ms = self._clock.now_ms()
        row = await connection.fetchrow(
            """
            SELECT request_sha256, response, created_at
            FROM platform.idempotency_records WHERE scope = $1 AND expires_at > $2
            """,
            request.scope,
            _moment(now_ms),
        )
        if row is None:
            return None
        age_ms = now_ms - int(row["created_at"].timestamp() * 1000)
        return replay(
            stored,
            request,
            self._sealer,
            request_sha256=row["request_sha256"],
            response=row["response"],
            age_ms=age_ms,
        )

    async def _record(self, connection: Connection, request: IdempotentRequest, response: str) -> None:
        """In place of an expired one that was not deleted yet."""
        now_ms = self._clock.now_ms()
        await connection.execute(
            """
            INSERT INTO platform.idempotency_records (scope, request_sha256, response, created_at, expires_at)
            VALUES ($1, $2, $3, $4, $5)
            ON CONFLICT (scope) DO UPDATE SET request_sha256 = excluded.request_sha256,
                response = excluded.response, created_at = excluded.created_at,
                expires_at = excluded.expires_at
            """,
            request.scope,
            request.request_sha256,
            response,
            _moment(now_ms),
            _moment(now_ms + KEPT_MS),
        )


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
