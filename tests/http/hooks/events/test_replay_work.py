"""Replays carried out in the background: resumed, shared, cancelled, and never done twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any, TypeVar
from zlib import crc32

import pytest
from tests.support.hooks_events import REPLAYS_PATH, Reading, event_item, made_event
from tests.support.passing_on import PassingOn
from tests.support.receiver import Receiver

from crossdock.engines.items.dynamodb import DynamoItems
from crossdock.engines.items.port import (
    Item,
    Items,
    Key,
    Outcome,
    Page,
    Query,
    Table,
    Transaction,
    Write,
)
from crossdock.engines.leases import Leases
from crossdock.engines.migrations import PLATFORM
from crossdock.engines.sql.migrations import migrate
from crossdock.engines.sql.target import PostgresTarget, connect, open_pool
from crossdock.hooks.model import Connection, DeliveryState, Event, EventStatus, Source
from crossdock.hooks.service.replay_work import LEASES, PAGE
from crossdock.hooks.store.tables import EVENTS
from crossdock.kit.clock import SystemClock
from crossdock.kit.errors import CrossdockError

NOWHERE = "http://127.0.0.1:1/"
EVENTS_COUNT = PAGE + 8

T = TypeVar("T")


async def failed_events(
    reading: Reading, url: str = NOWHERE, events: int = EVENTS_COUNT, connections: int = 1
) -> tuple[Source, list[Connection], list[Event]]:
    source = await reading.world.source()
    made = [await reading.world.connection(source, url) for _ in range(connections)]
    states = {each.connection_id: DeliveryState.EXHAUSTED for each in made}
    return source, made, await reading.events(source, [{} for _ in range(events)], states)


class Interrupted(PassingOn):
    """Does what is told at the n-th call: before it, or after it, or while it is under way."""

    def __init__(self, items: Items, position: int, when: str, interrupt: Callable[[], None]) -> None:
        super().__init__(items)
        self._position = position
        self._when = when
        self._interrupt = interrupt
        self._calls = count(1)
        self.happened = False

    async def get(self, table: Table, key: Key) -> Item | None:
        return await self._call(super().get(table, key))

    async def get_many(self, table: Table, keys: Sequence[Key]) -> list[Item | None]:
        return await self._call(super().get_many(table, keys))

    async def query(self, query: Query) -> Page:
        return await self._call(super().query(query))

    async def single(self, write: Write) -> Outcome:
        return await self._call(super().single(write))

    async def transact(self, writes: Transaction) -> Outcome:
        return await self._call(super().transact(writes))

    async def transact_many(self, transactions: Sequence[Transaction]) -> list[Outcome | CrossdockError]:
        return await self._call(super().transact_many(transactions))

    async def _call(self, call: Coroutine[Any, Any, T]) -> T:
        is_now = next(self._calls) == self._position
        self.happened = self.happened or is_now
        if is_now and self._when == "before":
            self._interrupt()
            try:
                await asyncio.sleep(0)
            finally:
                call.close()
        if is_now and self._when == "during":
            asyncio.get_running_loop().call_soon(self._interrupt)
        result = await call
        if is_now and self._when == "after":
            self._interrupt()
            await asyncio.sleep(0)
        return result


# --- killed and resumed ----------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["before", "during", "after"])
async def test_a_replay_killed_at_any_moment_and_resumed_sends_each_event_once_and_counts_it_once(
    reading: Reading, receiver: Receiver, when: str
) -> None:
    # What a call may be cut short at is the same on both stores; the slow one is killed at every third.
    step = 3 if isinstance(reading.items, DynamoItems) else 1
    for position in count(1, step):
        source, [connection], events = await failed_events(reading, receiver.url)
        receiver.got.clear()
        begun = await reading.replay(reading.owner, source, status="failed")
        was_killed = await worked_until_killed(reading, begun["replay_id"], position, when)
        await reading.node.work_off()
        await reading.recount(source)
        await reading.work(begun["replay_id"])
        await reading.node.work_off()
        progress = await reading.progress(begun["replay_id"])
        assert (progress["state"], progress["looked_at"], progress["replayed"], progress["deliveries"]) == (
            "done",
            EVENTS_COUNT,
            EVENTS_COUNT,
            EVENTS_COUNT,
        ), position
        assert sorted(receiver.ids()) == sorted(each.event_id for each in events), position
        assert {each.status for each in await reading.recount(source)} == {EventStatus.DELIVERED}
        # Begun anew once, and claimed once.
        assert {(await reading.delivery(each, connection)).fence for each in events} == {2}
        if not was_killed:
            break
    assert position > 8


async def worked_until_killed(reading: Reading, replay_id: str, position: int, when: str) -> bool:
    """False: it was done with before its process came to that call."""
    dying: list[asyncio.Task[None]] = []

    def kill() -> None:
        dying[0].cancel()

    items = Interrupted(reading.items, position, when, kill)
    killed = await reading.another(items)
    dying.append(asyncio.create_task(killed.work(replay_id)))
    with suppress(asyncio.CancelledError):
        await dying[0]
    return items.happened


async def test_two_that_work_on_a_replay_at_once_count_each_event_once(reading: Reading) -> None:
    source, connections, events = await failed_events(reading, events=3 * PAGE, connections=2)
    begun = await reading.replay(reading.owner, source)
    others = [await reading.another() for _ in range(3)]
    await asyncio.gather(*(each.work(begun["replay_id"]) for each in others))
    await reading.work(begun["replay_id"])
    progress = await reading.progress(begun["replay_id"])
    assert (progress["state"], progress["looked_at"], progress["replayed"]) == ("done", 3 * PAGE, 3 * PAGE)
    assert progress["deliveries"] == 6 * PAGE
    for connection in connections:
        assert {(await reading.delivery(each, connection)).fence for each in events[:5]} == {1}
    assert {each.status for each in await reading.recount(source)} == {EventStatus.PROCESSING}


SETTLED = {EventStatus.DELIVERED, EventStatus.RETRYING}


async def test_events_that_move_while_they_are_replayed_keep_their_counts(
    reading: Reading, receiver: Receiver
) -> None:
    receiver.answer = lambda _: 200 if len(receiver.got) % 3 else 500
    source, connections, events = await failed_events(reading, receiver.url, 2 * PAGE, connections=3)
    replays = []
    for _ in range(4):
        reading.clock.advance(ms=1)
        replays.append(await reading.replay(reading.owner, source))
    stop = False

    async def working() -> None:
        while not stop:
            await reading.node.engine.puller.pull()
            await asyncio.sleep(0)

    worker = asyncio.create_task(working())
    try:
        await asyncio.gather(*(reading.work(each["replay_id"]) for each in replays))
    finally:
        stop = True
        await worker
    await reading.node.work_off()
    # What found no slot was parked, and is looked after once a second, as much of it as there are slots.
    for _ in range(10):
        reading.clock.advance(seconds=2)
        await reading.node.work_off()
        if {each.status for each in await reading.recount(source)} <= SETTLED:
            break
    found = [await reading.progress(each["replay_id"]) for each in replays]
    assert {each["state"] for each in found} == {"done"}
    assert {each["looked_at"] for each in found} == {2 * PAGE}
    assert found[-1]["replayed"] == 2 * PAGE
    last = replays[-1]["generation"]
    for event in events[::16]:
        for connection in connections:
            assert (await reading.delivery(event, connection)).generation == last
    assert {each.status for each in await reading.recount(source)} <= SETTLED


async def test_a_connection_made_just_before_a_replay_is_not_missed_by_the_one_who_carries_it_out(
    reading: Reading,
) -> None:
    source, _, _ = await failed_events(reading, events=3)
    working = await reading.another()
    assert await working.node.engine.sources.find(source.source_id) is not None
    late = await reading.world.connection(source, NOWHERE)
    named = await reading.replay(reading.owner, source, connection_id=late.connection_id)
    await working.work(named["replay_id"])
    progress = await reading.progress(named["replay_id"])
    assert (progress["state"], progress["replayed"]) == ("done", 3)


# --- cancelled -------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_replay_cancelled_in_the_middle_of_a_page_counts_that_page_and_stops(
    reading: Reading, when: str
) -> None:
    source, [connection], events = await failed_events(reading, events=3 * PAGE)
    begun = await reading.replay(reading.owner, source)

    class Cancelling(PassingOn):
        """By its owner, at the moment in which the first page is written."""

        async def transact_many(self, transactions: Sequence[Transaction]) -> list[Outcome | CrossdockError]:
            if when == "before":
                await self._cancel()
            outcomes = await super().transact_many(transactions)
            if when == "after":
                await self._cancel()
            return outcomes

        async def _cancel(self) -> None:
            answer = await reading.owner.post(f"{REPLAYS_PATH}/{begun['replay_id']}/cancel")
            assert answer.json()["state"] == "cancelled"

    working = await reading.another(Cancelling(reading.items))
    await working.work(begun["replay_id"])
    progress = await reading.progress(begun["replay_id"])
    assert (progress["state"], progress["looked_at"], progress["replayed"]) == ("cancelled", PAGE, PAGE)
    again = [(await reading.delivery(each, connection)).generation != "" for each in events]
    assert again == [True] * PAGE + [False] * (2 * PAGE)
    await reading.work(begun["replay_id"])
    assert await reading.progress(begun["replay_id"]) == progress
    await reading.recount(source)


# --- as a role -------------------------------------------------------------------------------------


@pytest.fixture
async def leases(database: PostgresTarget) -> AsyncIterator[Leases]:
    connection = await connect(database)
    await migrate(connection, [PLATFORM])
    await connection.close()
    pool = await open_pool(database, schema="platform", min_size=1, max_size=4)
    yield Leases(pool, SystemClock(), "here")
    await pool.close()


@asynccontextmanager
async def running(reading: Reading, leases: Leases) -> AsyncIterator[None]:
    role = asyncio.create_task(reading.services.work.run(leases))
    try:
        yield
        assert not role.done(), role
    finally:
        role.cancel()
        with suppress(asyncio.CancelledError):
            await role


async def end_of(reading: Reading, *replays: dict[str, Any], state: str = "done") -> None:
    async with asyncio.timeout(20):
        for replay in replays:
            found = "running"
            while found == "running":
                await asyncio.sleep(0.02)
                found = (await reading.progress(replay["replay_id"]))["state"]
            assert found == state


async def test_replays_that_run_are_found_and_carried_out_by_one_of_many(
    lagging: Reading, leases: Leases
) -> None:
    source, [connection], events = await failed_events(lagging)
    replays = []
    for _ in range(6):
        lagging.clock.advance(ms=1)
        replays.append(await lagging.replay(lagging.owner, source))
    another = await lagging.another()
    async with running(lagging, leases), running(another, leases):
        await end_of(lagging, *replays)
    found = [await lagging.progress(each["replay_id"]) for each in replays]
    assert {each["looked_at"] for each in found} == {EVENTS_COUNT}
    assert all(each["replayed"] + each["skipped"] == EVENTS_COUNT for each in found)
    last = replays[-1]["generation"]
    assert {(await lagging.delivery(each, connection)).generation for each in events} == {last}
    await lagging.recount(source)


async def test_a_replay_whose_lease_another_holds_is_left_to_it(reading: Reading, leases: Leases) -> None:
    source, _, _ = await failed_events(reading)
    held = await reading.replay(reading.owner, source)
    free = await begun_apart_from(reading, source, held)
    lease = await leases.acquire(lease_of(held), 30)
    assert lease is not None
    async with running(reading, leases):
        await end_of(reading, free)
        # One more look at what runs: it began after the first had been tried.
        await end_of(reading, await begun_apart_from(reading, source, held))
        assert (await reading.progress(held["replay_id"]))["looked_at"] == 0
        await lease.release()
        await end_of(reading, held)


async def begun_apart_from(reading: Reading, source: Source, other: dict[str, Any]) -> dict[str, Any]:
    """A replay under another lease."""
    while True:
        begun = await reading.replay(reading.owner, source)
        if lease_of(begun) != lease_of(other):
            return begun
        await reading.work(begun["replay_id"])


def lease_of(replay: dict[str, Any]) -> str:
    return f"hooks.replays:{crc32(replay['replay_id'].encode()) % LEASES:02d}"


async def test_a_replay_of_a_stopped_process_is_taken_up_by_the_next(
    reading: Reading, leases: Leases
) -> None:
    source, [connection], events = await failed_events(reading, events=6 * PAGE)
    begun = await reading.replay(reading.owner, source)
    stopping = asyncio.Event()
    first = await reading.another(Interrupted(reading.items, 12, "during", stopping.set))
    async with running(first, leases):
        await asyncio.wait_for(stopping.wait(), 10)
    halfway = await reading.progress(begun["replay_id"])
    assert halfway["state"] == "running"
    assert 0 < halfway["looked_at"] < 6 * PAGE
    async with running(reading, leases):
        await end_of(reading, begun)
    progress = await reading.progress(begun["replay_id"])
    assert (progress["looked_at"], progress["replayed"]) == (6 * PAGE, 6 * PAGE)
    assert {(await reading.delivery(each, connection)).fence for each in events} == {1}


async def test_a_replay_that_can_not_be_carried_out_fails_in_the_end(
    reading: Reading, leases: Leases, caplog: pytest.LogCaptureFixture
) -> None:
    source = await reading.world.source()
    unreadable = event_item(made_event(source, received_at=reading.now_ms)) | {"headers": "{"}
    await reading.items.put(EVENTS, unreadable)
    begun = await reading.replay(reading.owner, source)
    healthy, _, _ = await failed_events(reading)
    other = await reading.replay(reading.owner, healthy)
    async with running(reading, leases):
        await end_of(reading, begun, state="failed")
        await end_of(reading, other)
    assert (await reading.progress(begun["replay_id"]))["reason"] == "internal_error"
    assert "a replay failed unforeseen" in caplog.text
