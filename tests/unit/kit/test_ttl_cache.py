from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.clock import ManualClock

from crossdock.kit.ttl_cache import Hit, TtlCache


class Source:
    """A source of truth whose reads begin at once and answer when they are let."""

    def __init__(self) -> None:
        self.values: dict[str, int | None] = {}
        self.reads = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.error: Exception | None = None

    async def read(self, key: str) -> int | None:
        self.reads += 1
        value, error = self.values.get(key), self.error
        await asyncio.sleep(0)
        await self.gate.wait()
        if error is not None:
            raise error
        return value


def new_cache(clock: ManualClock, capacity: int = 10) -> TtlCache[str, int]:
    return TtlCache(clock, capacity=capacity, ttl_seconds=5, negative_ttl_seconds=1)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
def cache(clock: ManualClock) -> TtlCache[str, int]:
    return new_cache(clock)


def test_a_value_is_known_until_its_ttl_has_passed(clock: ManualClock, cache: TtlCache[str, int]) -> None:
    cache.put("a", 1)
    clock.advance(seconds=4.999)
    assert cache.get("a") == Hit(1)
    clock.advance(seconds=0.001)
    assert cache.get("a") is None
    assert len(cache) == 0


def test_nothing_there_is_known_for_a_ttl_of_its_own(clock: ManualClock, cache: TtlCache[str, int]) -> None:
    cache.put("a", None)
    assert cache.get("a") == Hit(None)
    clock.advance(seconds=1)
    assert cache.get("a") is None


def test_an_entry_may_have_a_ttl_of_its_own(clock: ManualClock, cache: TtlCache[str, int]) -> None:
    cache.put("a", 1, ttl_seconds=60)
    clock.advance(seconds=59)
    assert cache.get("a") == Hit(1)


def test_the_entry_unused_the_longest_makes_room(clock: ManualClock) -> None:
    cache = new_cache(clock, capacity=2)
    cache.put("a", 1)
    cache.put("b", 2)
    cache.get("a")
    cache.put("c", 3)
    assert [cache.get(key) for key in "abc"] == [Hit(1), None, Hit(3)]


def test_a_cache_for_nothing_is_refused(clock: ManualClock) -> None:
    with pytest.raises(ValueError, match="at least one"):
        new_cache(clock, capacity=0)


def test_a_limited_ttl_ends_entries_already_here_until_it_is_lifted(
    clock: ManualClock, cache: TtlCache[str, int]
) -> None:
    cache.put("old", 1)
    clock.advance(seconds=2)
    cache.put("new", 2)
    cache.limit_ttl(1)
    assert cache.get("old") is None
    assert cache.get("new") == Hit(2)
    cache.limit_ttl(None)
    clock.advance(seconds=3)
    assert cache.get("new") == Hit(2)


async def test_a_value_is_filled_once_and_then_known(cache: TtlCache[str, int]) -> None:
    source = Source()
    source.values["a"] = 1
    assert [await cache.get_or_fill("a", source.read) for _ in range(3)] == [1, 1, 1]
    assert [await cache.get_or_fill("b", source.read) for _ in range(3)] == [None, None, None]
    assert source.reads == 2


async def test_callers_that_come_together_share_one_fill(cache: TtlCache[str, int]) -> None:
    source = Source()
    source.values["a"] = 1
    assert await asyncio.gather(*(cache.get_or_fill("a", source.read) for _ in range(20))) == [1] * 20
    assert source.reads == 1


async def test_a_failed_fill_fails_those_that_wait_and_is_not_kept(cache: TtlCache[str, int]) -> None:
    source = Source()
    source.error = RuntimeError("away")
    outcomes = await asyncio.gather(
        *(cache.get_or_fill("a", source.read) for _ in range(3)), return_exceptions=True
    )
    assert [str(outcome) for outcome in outcomes] == ["away"] * 3
    assert source.reads == 1
    source.error, source.values["a"] = None, 1
    assert await cache.get_or_fill("a", source.read) == 1


async def test_the_ttl_counts_from_the_begin_of_the_fill(
    clock: ManualClock, cache: TtlCache[str, int]
) -> None:
    source = Source()
    source.values["a"] = 1
    source.gate.clear()
    filling = asyncio.create_task(cache.get_or_fill("a", source.read))
    await settle()
    clock.advance(seconds=4)
    source.gate.set()
    assert await filling == 1
    assert cache.get("a") == Hit(1)
    clock.advance(seconds=1)
    assert cache.get("a") is None


async def test_one_of_those_waiting_takes_over_from_a_cancelled_filler(cache: TtlCache[str, int]) -> None:
    source = Source()
    source.values["a"] = 1
    source.gate.clear()
    callers = [asyncio.create_task(cache.get_or_fill("a", source.read)) for _ in range(3)]
    await settle()
    callers[0].cancel()
    await settle()
    source.gate.set()
    assert [await each for each in callers[1:]] == [1, 1]
    assert source.reads == 2
    assert callers[0].cancelled()


async def test_cancelling_one_that_waits_leaves_the_fill_and_the_others_alone(
    cache: TtlCache[str, int],
) -> None:
    source = Source()
    source.values["a"] = 1
    source.gate.clear()
    callers = [asyncio.create_task(cache.get_or_fill("a", source.read)) for _ in range(3)]
    await settle()
    callers[1].cancel()
    await settle()
    source.gate.set()
    assert [await callers[0], await callers[2]] == [1, 1]
    assert source.reads == 1


Invalidation = Callable[[TtlCache[str, int]], None]


@pytest.mark.parametrize(
    "invalidate",
    [
        lambda cache: cache.invalidate("a"),
        lambda cache: cache.invalidate_all(),
        lambda cache: cache.invalidate_where(lambda key: key == "a"),
    ],
)
async def test_a_fill_in_flight_cannot_bring_back_what_an_invalidation_removed(
    cache: TtlCache[str, int], invalidate: Invalidation
) -> None:
    source = Source()
    source.values["a"] = 1
    source.gate.clear()
    early = asyncio.create_task(cache.get_or_fill("a", source.read))
    await settle()
    source.values["a"] = 2
    invalidate(cache)
    late = asyncio.create_task(cache.get_or_fill("a", source.read))
    await settle()
    source.gate.set()
    assert (await early, await late) == (1, 2)
    assert cache.get("a") == Hit(2)


async def test_a_fill_in_flight_cannot_replace_what_was_put_meanwhile(cache: TtlCache[str, int]) -> None:
    source = Source()
    source.gate.clear()
    early = asyncio.create_task(cache.get_or_fill("a", source.read))
    await settle()
    cache.put("a", 2)
    source.gate.set()
    await early
    assert cache.get("a") == Hit(2)


def test_invalidating_some_leaves_the_others(cache: TtlCache[str, int]) -> None:
    for key in ("x1", "x2", "y1"):
        cache.put(key, 1)
    cache.invalidate_where(lambda key: key.startswith("x"))
    assert [cache.get(key) for key in ("x1", "x2", "y1")] == [None, None, Hit(1)]


# --- the promise as a whole, under any interleaving ------------------------------------------------

Step = tuple[str, str, float]

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "read", "answer", "cancel", "advance"]),
        st.sampled_from("abc"),
        st.floats(0.1, 3),
    ),
    max_size=60,
)


class World:
    """Writers that invalidate, readers through the cache, and reads of the source answered in any order."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.cache = TtlCache[str, int](self.clock, capacity=2, ttl_seconds=5)
        self.truth = dict.fromkeys("abc", 0)
        self.pending: list[asyncio.Event] = []
        self.readers: list[tuple[asyncio.Task[int | None], int]] = []

    async def read_source(self, key: str) -> int:
        value, gate = self.truth[key], asyncio.Event()
        self.pending.append(gate)
        await gate.wait()
        return value

    async def step(self, action: str, key: str, amount: float) -> None:
        if action == "write":
            self.truth[key] += 1
            self.cache.invalidate(key)
        elif action == "read":
            task = asyncio.create_task(self.cache.get_or_fill(key, self.read_source))
            self.readers.append((task, self.truth[key]))
        elif action == "answer" and self.pending:
            self.pending.pop(int(amount * 1000) % len(self.pending)).set()
        elif action == "cancel" and self.readers:
            task, _ = self.readers.pop(int(amount * 1000) % len(self.readers))
            task.cancel()
        elif action == "advance":
            self.clock.advance(seconds=amount)
        await settle()
        assert len(self.cache) <= 2

    async def finish(self) -> None:
        while not all(task.done() for task, _ in self.readers):
            while self.pending:
                self.pending.pop().set()
            await settle()


@given(STEPS)
def test_a_reader_never_sees_less_than_what_was_written_and_invalidated_before_it_came(
    steps: list[Step],
) -> None:
    async def run() -> None:
        world = World()
        for step in steps:
            await world.step(*step)
        await world.finish()
        for task, written_before in world.readers:
            seen = task.result()
            assert seen is not None
            assert seen >= written_before

    asyncio.run(run())


async def test_a_fill_may_be_any_awaitable(cache: TtlCache[str, int]) -> None:
    def fill(key: str) -> Awaitable[int | None]:
        future: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        future.set_result(len(key))
        return future

    assert await cache.get_or_fill("abc", fill) == 3
