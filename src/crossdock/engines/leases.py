"""Leases: a name that at most one owner on any node holds at a time.

Guarantees:

- Time is the database's. A lease ends `ttl_seconds` after its last renewal and may then be taken over; no
  other node's clock has a say.
- A holder renews every third of the ttl. When it can't prove a renewal in time (database away, answers late,
  event loop blocked, process paused), `held` turns false and `lost` is set after 0.8 ttl: counted from before
  the last proven renewal was sent, so always earlier than anybody else can get the lease.
- Each acquisition has a higher `fence` than any before of that name. A holder that was paused in the middle
  of a step wakes up believing in its lease until it looks; `guard` keeps such a step's effects out.

When the database is away, `acquire` raises `Unavailable`, and holders lose their leases as above. An
acquisition whose answer was lost blocks its name for one ttl.

Two things can break the order of "lost, then taken over": a database clock set forward, and a machine that
slept (Linux's monotonic clock stops then). `guard` holds in both.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from types import TracebackType

import asyncpg

from crossdock.engines.sql.target import CONNECTION_ERRORS, Connection, Pool
from crossdock.kit.clock import Clock
from crossdock.kit.errors import Unavailable
from crossdock.kit.logging import fields

log = logging.getLogger("crossdock.leases")

# As parts of the ttl.
RENEW_AFTER = 1 / 3
RETRY_AFTER = 1 / 10
LOST_AFTER = 0.8

_DATABASE_ERRORS: tuple[type[Exception], ...] = (*CONNECTION_ERRORS, asyncpg.PostgresError)

_ACQUIRE = """
    INSERT INTO platform.leases AS lease (name, owner, fence, expires_at)
    VALUES ($1, $2, 1, clock_timestamp() + $3::interval)
    ON CONFLICT (name) DO UPDATE
       SET owner = excluded.owner, fence = lease.fence + 1, expires_at = clock_timestamp() + $3::interval
     WHERE lease.expires_at <= clock_timestamp()
    RETURNING fence
"""
# A lease that ran out but that nobody took is still ours to renew: the fence says so.
_RENEW = """
    UPDATE platform.leases SET expires_at = clock_timestamp() + $3::interval
     WHERE name = $1 AND fence = $2
    RETURNING true
"""
_RELEASE = "UPDATE platform.leases SET expires_at = '-infinity' WHERE name = $1 AND fence = $2"
# The row lock keeps a takeover waiting until the guarded transaction is over.
_GUARD = """
    SELECT true FROM platform.leases
     WHERE name = $1 AND fence = $2 AND expires_at > clock_timestamp()
       FOR SHARE
"""


class LeaseLost(Unavailable):
    def __init__(self, name: str) -> None:
        super().__init__("lease_lost", f"The lease {name!r} is no longer held here.")


class Lease:
    """Held from birth. `async with lease:` releases it at the end of the block."""

    def __init__(
        self, pool: Pool, clock: Clock, *, name: str, fence: int, ttl_seconds: float, proven_at: float
    ) -> None:
        self.name = name
        self.fence = fence
        self.lost = asyncio.Event()
        self._pool = pool
        self._clock = clock
        self._ttl_seconds = ttl_seconds
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._prove(proven_at)
        self._heartbeat = asyncio.create_task(self._renew_forever(), name=f"lease {name}")

    @property
    def held(self) -> bool:
        """Asks the clock, so it is right even when the event loop was too busy to set `lost`."""
        return not self.lost.is_set() and self._clock.monotonic() < self._deadline

    async def guard(self, connection: Connection) -> None:
        """Inside a transaction: nobody else gets the lease before it ends. Raises `LeaseLost`."""
        if not await connection.fetchval(_GUARD, self.name, self.fence):
            raise LeaseLost(self.name)

    async def release(self) -> None:
        """Another may have it at once. When the database is away it ends by itself."""
        self._end()
        self._heartbeat.cancel()
        await asyncio.gather(self._heartbeat, return_exceptions=True)
        try:
            async with asyncio.timeout(self._ttl_seconds):
                await self._pool.execute(_RELEASE, self.name, self.fence)
        except _DATABASE_ERRORS as error:
            log.warning("could not release a lease", extra=fields(lease=self.name, reason=repr(error)))

    async def __aenter__(self) -> Lease:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.release()

    async def _renew_forever(self) -> None:
        wait_seconds = self._ttl_seconds * RENEW_AFTER
        while True:
            await asyncio.sleep(wait_seconds)
            sent_at = self._clock.monotonic()
            try:
                async with asyncio.timeout(self._ttl_seconds * RENEW_AFTER):
                    renewed = await self._pool.fetchval(
                        _RENEW, self.name, self.fence, timedelta(seconds=self._ttl_seconds)
                    )
            except _DATABASE_ERRORS as error:
                log.warning("could not renew a lease", extra=fields(lease=self.name, reason=repr(error)))
                wait_seconds = self._ttl_seconds * RETRY_AFTER
                continue
            if not renewed:
                self._lose()
                return
            self._prove(sent_at)
            wait_seconds = self._ttl_seconds * RENEW_AFTER

    def _prove(self, sent_at: float) -> None:
        self._end()
        self._deadline = sent_at + self._ttl_seconds * LOST_AFTER
        # A timer of its own, because a renewal that hangs must not hold up the news.
        self._timer = asyncio.get_running_loop().call_later(
            self._deadline - self._clock.monotonic(), self._lose
        )

    def _lose(self) -> None:
        self._end()
        # Or a renewal that succeeds late would keep everybody else waiting for a lease that nobody holds.
        self._heartbeat.cancel()
        self.lost.set()
        log.warning("lost a lease", extra=fields(lease=self.name, fence=self.fence))

    def _end(self) -> None:
        self._deadline = float("-inf")
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Leases:
    """`owner` names this process in the table, for people who look; it needs no pool of its own."""

    def __init__(self, pool: Pool, clock: Clock, owner: str) -> None:
        self.clock = clock
        self._pool = pool
        self._owner = owner

    async def acquire(self, name: str, ttl_seconds: float) -> Lease | None:
        """None while anybody holds it, us included. Raises `Unavailable`."""
        sent_at = self.clock.monotonic()
        try:
            fence = await self._pool.fetchval(_ACQUIRE, name, self._owner, timedelta(seconds=ttl_seconds))
        except CONNECTION_ERRORS as error:
            raise Unavailable(
                "postgres_unavailable", "The database does not answer.", internal=repr(error)
            ) from error
        if fence is None:
            return None
        return Lease(
            self._pool, self.clock, name=name, fence=fence, ttl_seconds=ttl_seconds, proven_at=sent_at
        )
