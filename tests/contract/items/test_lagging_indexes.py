"""The lagging harness must lag, or it would prove nothing about those who rely on indexes."""

import asyncio

import pytest
from tests.contract.items.asking import eventually, everything, put_all
from tests.contract.items.harness import Harness
from tests.contract.items.tables import BY_OWNER, fresh
from tests.support.lagging import LaggingIndexes

from crossdock.engines.items.port import Item, Items, Query, Set


class Seconds:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


@pytest.fixture
def lagging(postgres_harness: Harness, seconds: Seconds) -> Items:
    return LaggingIndexes(postgres_harness.items, 0.5, seconds, postgres_harness.clock)


async def ranks(items: Items, harness: Harness, owner: str) -> list[object]:
    query = Query(harness.tables.sorted, owner, index=BY_OWNER)
    return [item["rank"] for item in await everything(items, query)]


async def test_a_new_item_enters_the_index_late_and_the_table_at_once(
    postgres_harness: Harness, lagging: Items, seconds: Seconds
) -> None:
    owner = fresh("owner")
    item: Item = {"pk": fresh(), "sk": "a", "owner": owner, "rank": "1"}
    await put_all(lagging, postgres_harness.tables.sorted, item)

    assert await lagging.get(postgres_harness.tables.sorted, {"pk": str(item["pk"]), "sk": "a"}) == item
    assert await ranks(lagging, postgres_harness, owner) == []
    assert await ranks(postgres_harness.items, postgres_harness, owner) == ["1"]

    seconds.now = 0.51
    assert await ranks(lagging, postgres_harness, owner) == ["1"]


async def test_each_change_shows_after_its_own_time(
    postgres_harness: Harness, lagging: Items, seconds: Seconds
) -> None:
    owner, key = fresh("owner"), {"pk": fresh(), "sk": "a"}
    table = postgres_harness.tables.sorted
    await put_all(lagging, table, {**key, "owner": owner, "rank": "1"})
    seconds.now = 0.4
    await lagging.update(table, key, Set("rank", "2"))
    seconds.now = 0.8
    await lagging.delete(table, key)

    seen = []
    for now in (0.45, 0.6, 0.85, 1.0, 1.4):
        seconds.now = now
        seen.append(await ranks(lagging, postgres_harness, owner))

    assert seen == [[], ["1"], ["1"], ["2"], []]


async def test_the_lagging_harness_lags_in_real_time_and_catches_up(
    postgres_lagging_harness: Harness,
) -> None:
    owner, harness = fresh("owner"), postgres_lagging_harness
    await put_all(
        harness.items, harness.tables.sorted, {"pk": fresh(), "sk": "a", "owner": owner, "rank": "1"}
    )

    assert await ranks(harness.items, harness, owner) == []
    await asyncio.sleep(0.2)
    assert await ranks(harness.items, harness, owner) == []
    await eventually(lambda: ranks(harness.items, harness, owner), ["1"])
