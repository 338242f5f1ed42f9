"""Group commit: the writes that wait in one event loop share a commit, and each gets its own outcome.

Guarantees
- A caller is answered after the commit of its group. A commit whose outcome is unknown (the connection broke
  while committing) raises OutcomeUnknown for everyone in the group; it is never tried again.
- What fails before the commit is tried again: a deadlock or a lost race at once, a lost connection for up to
  two seconds, after which the group is told Unavailable.
- A group that the server refuses is split until the refused transaction stands alone and fails alone.
- Memory is bounded: over `waiting_bytes_max` new writes are refused with Unavailable and a time to come back.
- Writes of one key wait for each other only inside a group; between groups the row locks order them.
- The tallies of what a group has written are added up and counted in its own commit.

`close` refuses new writes, finishes those accepted, and then lets go.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import asyncpg

from crossdock.engines.items.port import ItemRejected, OutcomeUnknown
from crossdock.engines.items.postgres.layout import Layout
from crossdock.engines.items.postgres.prepared import Prepared
from crossdock.engines.items.postgres.writes import (
    ContendedError,
    Result,
    count_group,
    evaluate_group,
    insert_group,
)
from crossdock.engines.sql.failures import database_unavailable
from crossdock.engines.sql.target import CONNECTION_ERRORS, Connection, Pool
from crossdock.kit.clock import Clock
from crossdock.kit.errors import CrossdockError, Unavailable

GROUP_WRITES_MAX = 1_000
GROUP_BYTES_MAX = 8_000_000
WAITING_BYTES_MAX = 64_000_000
FLUSHERS = 2
ATTEMPTS_MAX = 25
CONNECTION_LOST_SECONDS_MAX = 2.0

TRY_AGAIN = (
    ContendedError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.LockNotAvailableError,
)
REFUSED = (asyncpg.PostgresError, asyncpg.DataError)


@dataclass(slots=True)
class Ticket:
    """What one call brought, answered together."""

    transactions: Sequence[Prepared]
    done: asyncio.Future[list[Result | CrossdockError]]
    weight_bytes: int
    writes: int


@dataclass(slots=True)
class Committer:
    pool: Pool
    layouts: Mapping[str, Layout]
    clock: Clock
    waiting_bytes_max: int = WAITING_BYTES_MAX
    _waiting: deque[Ticket] = field(default_factory=deque)
    _waiting_bytes: int = 0
    _flushers: set[asyncio.Task[None]] = field(default_factory=set)
    _closed: bool = False

    async def submit(self, transactions: Sequence[Prepared]) -> list[Result | CrossdockError]:
        if self._closed:
            raise Unavailable("stopping", "The server is stopping; try again.", retry_after_seconds=1)
        weight = sum(prepared.weight_bytes for prepared in transactions)
        if self._waiting_bytes + weight > self.waiting_bytes_max and self._waiting:
            raise Unavailable("overloaded", "Too many writes are waiting.", retry_after_seconds=1)
        ticket = Ticket(
            transactions,
            asyncio.get_running_loop().create_future(),
            weight,
            sum(len(prepared.writes) for prepared in transactions),
        )
        self._waiting.append(ticket)
        self._waiting_bytes += weight
        if len(self._flushers) < FLUSHERS:
            flusher = asyncio.create_task(self._flush())
            self._flushers.add(flusher)
            flusher.add_done_callback(self._flushers.discard)
        return await ticket.done

    async def close(self) -> None:
        self._closed = True
        while self._flushers:
            await asyncio.gather(*self._flushers)

    async def _flush(self) -> None:
        while self._waiting:
            tickets = self._take()
            group = [prepared for ticket in tickets for prepared in ticket.transactions]
            try:
                results = await self._commit(group)
            except BaseException:
                unknown = OutcomeUnknown("the write was interrupted")
                _answer(tickets, [unknown] * len(group))
                raise
            _answer(tickets, results)

    def _take(self) -> list[Ticket]:
        tickets = [self._waiting.popleft()]
        writes, weight = tickets[0].writes, tickets[0].weight_bytes
        while self._waiting:
            writes += self._waiting[0].writes
            weight += self._waiting[0].weight_bytes
            if writes > GROUP_WRITES_MAX or weight > GROUP_BYTES_MAX:
                break
            tickets.append(self._waiting.popleft())
        self._waiting_bytes -= sum(ticket.weight_bytes for ticket in tickets)
        return tickets

    async def _commit(self, group: Sequence[Prepared]) -> list[Result | CrossdockError]:
        """Plain puts of distinct keys in one go, everything else evaluated; results in the group's order."""
        plain, other = _plain_positions(group)
        results: dict[int, Result | CrossdockError] = {}
        if plain:
            inserted = await self._inserted([group[position] for position in plain])
            if inserted is None:
                other = sorted(plain + other)
            else:
                results.update(zip(plain, inserted, strict=True))
        if other:
            evaluated = await self._evaluated([group[position] for position in other])
            results.update(zip(other, evaluated, strict=True))
        return [results[position] for position in range(len(group))]

    async def _inserted(self, group: Sequence[Prepared]) -> list[Result | CrossdockError] | None:
        """None: a key is taken or a row was refused, so the group has to be looked at one by one."""
        try:
            return [
                *await self._in_transaction(
                    group, lambda connection: insert_group(connection, group), contended_is_final=True
                )
            ]
        except (ContendedError, *REFUSED):
            return None
        except CrossdockError as error:
            return [error] * len(group)

    async def _evaluated(self, group: Sequence[Prepared]) -> list[Result | CrossdockError]:
        now_seconds = self.clock.now_ms() // 1000
        try:
            return [
                *await self._in_transaction(
                    group, lambda connection: evaluate_group(connection, group, self.layouts, now_seconds)
                )
            ]
        except CrossdockError as error:
            return [error] * len(group)
        except REFUSED as error:
            if len(group) == 1:
                return [ItemRejected(f"The database refused the write: {error}")]
            half = len(group) // 2
            return await self._evaluated(group[:half]) + await self._evaluated(group[half:])

    async def _in_transaction(
        self,
        group: Sequence[Prepared],
        write: Callable[[Connection], Awaitable[list[Result]]],
        *,
        contended_is_final: bool = False,
    ) -> list[Result]:
        give_up_at = self.clock.monotonic() + CONNECTION_LOST_SECONDS_MAX
        for attempt in range(ATTEMPTS_MAX):
            committing = False
            try:
                async with self.pool.acquire() as connection:
                    await connection.execute("BEGIN")
                    try:
                        results = await write(connection)
                        now_seconds = self.clock.now_ms() // 1000
                        await count_group(connection, group, results, self.layouts, now_seconds)
                        committing = True
                        await connection.execute("COMMIT")
                    except BaseException:
                        await _roll_back(connection)
                        raise
                    return results
            except asyncpg.DataError:
                raise
            except TRY_AGAIN as error:
                if contended_is_final and isinstance(error, ContendedError):
                    raise
                await asyncio.sleep(random.uniform(0, min(0.002 * 2**attempt, 0.1)))  # noqa: S311
            except CONNECTION_ERRORS as error:
                if committing:
                    raise OutcomeUnknown(repr(error)) from error
                if self.clock.monotonic() >= give_up_at:
                    raise database_unavailable(error) from error
                await asyncio.sleep(0.05)
        raise Unavailable("contended", "Too many writes of the same items at once.", retry_after_seconds=1)


async def _roll_back(connection: Connection) -> None:
    try:
        await connection.execute("ROLLBACK")
    except (OSError, asyncpg.InterfaceError, asyncpg.PostgresError):
        connection.terminate()


def _plain_positions(group: Sequence[Prepared]) -> tuple[list[int], list[int]]:
    """Which transactions can be written as plain inserts: those whose keys nobody else in the group names."""
    named: dict[object, int] = {}
    for prepared in group:
        for place in prepared.places:
            named[place] = named.get(place, 0) + 1
    plain: list[int] = []
    other: list[int] = []
    for position, prepared in enumerate(group):
        alone = prepared.inserts is not None and all(named[place] == 1 for place in prepared.places)
        (plain if alone else other).append(position)
    return plain, other


def _answer(tickets: Sequence[Ticket], results: Sequence[Result | CrossdockError]) -> None:
    start = 0
    for ticket in tickets:
        end = start + len(ticket.transactions)
        if not ticket.done.done():
            ticket.done.set_result(list(results[start:end]))
        start = end
