"""What expired is told: at least once, under one id, until the handler has taken it.

DynamoDB Local sweeps a few items every ten seconds. So most tests here let a write get to the expired item
first, which must be told as well, and at once.
"""

from collections import defaultdict
from collections.abc import Sequence

import pytest
from tests.contract.items.asking import assert_written, eventually, put_all
from tests.contract.items.harness import Harness
from tests.contract.items.tables import fresh

from crossdock.engines.items.conditions import Absent
from crossdock.engines.items.port import Add, Expired, Item, Put, Set, Value


class Told:
    """An expiry handler that keeps what it is told about one partition; others' items pass by."""

    def __init__(self, partition: str, failures: int = 0) -> None:
        self._partition = partition
        self._failures_left = failures
        self.taken: dict[str, list[Expired]] = defaultdict(list)
        self.refused: dict[str, list[str]] = defaultdict(list)

    async def __call__(self, events: Sequence[Expired]) -> None:
        ours = [event for event in events if event.item["pk"] == self._partition]
        if ours and self._failures_left:
            self._failures_left -= 1
            for event in ours:
                self.refused[str(event.item["sk"])].append(event.event_id)
            raise RuntimeError("the handler could not take it")
        for event in ours:
            self.taken[str(event.item["sk"])].append(event)

    async def sort_keys(self) -> set[str]:
        return set(self.taken)

    def event_ids(self, sort: str) -> set[str]:
        return {event.event_id for event in self.taken[sort]}


def past(harness: Harness) -> dict[str, Value]:
    return {"expires_at": harness.clock.now_seconds() - 60}


async def expire(harness: Harness, key: dict[str, str], **attributes: Value) -> None:
    """The item lives and has expired, and a write finds what is left of it."""
    await put_all(harness.items, harness.tables.told, {**key, **attributes, **past(harness)})
    await harness.items.delete(harness.tables.told, key)


async def test_a_swept_item_is_told_as_it_was(harness: Harness) -> None:
    table, partition = harness.tables.told, fresh()
    told = Told(partition)
    item: Item = {"pk": partition, "sk": "a", "deep": {"l": [1, None]}, "body": "long", **past(harness)}
    await put_all(harness.items, table, item)

    async with harness.telling(table, told):
        await eventually(told.sort_keys, {"a"}, harness.expiry_patience_seconds)

    assert [event.item for event in told.taken["a"]][:1] == [item]
    assert told.taken["a"][0].table == table
    assert len(told.event_ids("a")) == 1


async def test_every_one_of_many_is_told(harness: Harness) -> None:
    table, partition = harness.tables.told, fresh()
    told = Told(partition)
    await harness.items.write_many(
        table, [{"pk": partition, "sk": f"{n:03}", **past(harness)} for n in range(40)]
    )
    await harness.items.write_many(table, [{"pk": partition, "sk": f"{n:03}"} for n in range(35)])

    async with harness.telling(table, told):
        await eventually(told.sort_keys, {f"{n:03}" for n in range(40)}, harness.expiry_patience_seconds)

    assert len({event_id for sort in told.taken for event_id in told.event_ids(sort)}) == 40


async def test_only_what_expired_is_told(harness: Harness) -> None:
    """The last one put is told, so those put before it would have been."""
    table, partition = harness.tables.told, fresh()
    told = Told(partition)
    later: dict[str, Value] = {"expires_at": harness.clock.now_seconds() + 3600}
    await put_all(
        harness.items,
        table,
        {"pk": partition, "sk": "without"},
        {"pk": partition, "sk": "living", **later},
        {"pk": partition, "sk": "replaced", **later},
        {"pk": partition, "sk": "replaced", **later, "n": 2},
        {"pk": partition, "sk": "deleted", **later},
        {"pk": partition, "sk": "no number", "expires_at": "1"},
    )
    await harness.items.delete(table, {"pk": partition, "sk": "deleted"})
    await expire(harness, {"pk": partition, "sk": "expired"})

    async with harness.telling(table, told):
        await eventually(told.sort_keys, {"expired"}, harness.expiry_patience_seconds)

    assert await told.sort_keys() == {"expired"}


@pytest.mark.parametrize("by", ["put", "put if absent", "update", "delete", "transact", "write_many"])
async def test_an_expired_item_that_a_write_got_to_first_is_told_too(harness: Harness, by: str) -> None:
    table, partition = harness.tables.told, fresh()
    told = Told(partition)
    key = {"pk": partition, "sk": "a"}
    old: Item = {**key, "old": 1, "body": "long", **past(harness)}
    await put_all(harness.items, table, old)

    if by == "put":
        await put_all(harness.items, table, {**key, "new": 1})
    elif by == "put if absent":
        assert_written(await harness.items.put(table, {**key, "new": 1}, Absent("pk")))
    elif by == "update":
        assert_written(await harness.items.update(table, key, Add("new", 1)))
    elif by == "delete":
        await harness.items.delete(table, key)
    elif by == "transact":
        assert_written(
            await harness.items.transact(
                [Put(table, {**key, "new": 1}), Put(table, {"pk": fresh(), "sk": "b"})]
            )
        )
    else:
        await harness.items.write_many(table, [{**key, "new": 1}])

    async with harness.telling(table, told):
        await eventually(told.sort_keys, {"a"}, harness.expiry_patience_seconds)

    assert [event.item for event in told.taken["a"]][:1] == [old]
    assert len(told.event_ids("a")) == 1
    left = None if by == "delete" else {**key, "new": 1}
    assert await harness.items.get(table, key) == left


async def test_a_handler_that_fails_is_told_again_under_the_same_id(harness: Harness) -> None:
    table, partition = harness.tables.told, fresh()
    told = Told(partition, failures=1)
    await expire(harness, {"pk": partition, "sk": "a"})

    async with harness.telling(table, told):
        await eventually(told.sort_keys, {"a"}, harness.expiry_patience_seconds)

    assert len(told.refused["a"]) == 1
    assert {*told.refused["a"], *told.event_ids("a")} == {told.refused["a"][0]}


async def test_what_no_handler_took_is_told_to_the_next_that_runs(harness: Harness) -> None:
    table, partition = harness.tables.told, fresh()
    failing, told = Told(partition, failures=1_000_000), Told(partition)
    await expire(harness, {"pk": partition, "sk": "a"})

    async def refused() -> bool:
        return bool(failing.refused["a"])

    async with harness.telling(table, failing):
        await eventually(refused, True, harness.expiry_patience_seconds)
    async with harness.telling(table, told):
        await eventually(told.sort_keys, {"a"}, harness.expiry_patience_seconds)

    assert told.event_ids("a") == {failing.refused["a"][0]}


async def test_two_lives_of_one_key_are_two_expiries(harness: Harness) -> None:
    table, partition = harness.tables.told, fresh()
    told = Told(partition)
    key = {"pk": partition, "sk": "a"}
    await put_all(harness.items, table, {**key, "life": 1, **past(harness)})
    await expire(harness, key, life=2)

    async def lives() -> set[object]:
        return {event.item["life"] for event in told.taken["a"]}

    async with harness.telling(table, told):
        await eventually(lives, {1, 2}, harness.expiry_patience_seconds)

    assert len(told.event_ids("a")) == 2


async def test_an_item_that_an_update_lets_expire_is_told(harness: Harness) -> None:
    table, partition = harness.tables.told, fresh()
    told = Told(partition)
    key = {"pk": partition, "sk": "a"}
    await put_all(harness.items, table, {**key, "expires_at": harness.clock.now_seconds() + 3600})
    await harness.items.update(table, key, Set("expires_at", harness.clock.now_seconds() - 60))

    async with harness.telling(table, told):
        await eventually(told.sort_keys, {"a"}, harness.expiry_patience_seconds)
