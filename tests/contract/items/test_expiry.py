"""An item whose TTL has passed is absent, whether or not it was deleted yet.

Items are put with a TTL in the past, or the clock is moved past it; nothing here waits for a deletion.
"""

from dataclasses import replace

import pytest
from tests.contract.items.asking import (
    assert_refused,
    assert_written,
    condition_holds,
    eventually,
    everything,
    pages,
    put_all,
    sort_keys,
)
from tests.contract.items.harness import Harness
from tests.contract.items.tables import BY_OWNER, fresh

from crossdock.engines.items.conditions import Absent, Condition, Exists, Not, equals
from crossdock.engines.items.port import (
    Add,
    Check,
    Delete,
    Failure,
    Item,
    Put,
    Query,
    Refused,
    Remove,
    Set,
    SetIfAbsent,
    Update,
    Value,
    Written,
)

HOUR_SECONDS = 3600


def living(harness: Harness) -> dict[str, Value]:
    return {"expires_at": harness.clock.now_seconds() + HOUR_SECONDS}


def passed(harness: Harness) -> dict[str, Value]:
    return {"expires_at": harness.clock.now_seconds() - HOUR_SECONDS}


async def expired_item(harness: Harness, **attributes: Value) -> dict[str, str]:
    """The key of an item that has expired a moment ago, as the clock says; it has not been deleted yet."""
    key = {"pk": fresh(), "sk": "a"}
    await put_all(
        harness.items,
        harness.tables.expiring,
        {**key, **attributes, "expires_at": harness.clock.now_seconds() + HOUR_SECONDS},
    )
    harness.clock.advance(HOUR_SECONDS + 2)
    return key


async def test_an_item_is_there_until_its_time_and_then_absent(harness: Harness) -> None:
    key = {"pk": fresh(), "sk": "a"}
    item: Item = {**key, **living(harness)}
    await put_all(harness.items, harness.tables.expiring, item)

    harness.clock.advance(HOUR_SECONDS - 60)
    assert await harness.items.get(harness.tables.expiring, key) == item

    harness.clock.advance(62)
    assert await harness.items.get(harness.tables.expiring, key) is None


async def test_an_item_put_with_a_time_long_past_is_absent_at_once(harness: Harness) -> None:
    key = {"pk": fresh(), "sk": "a"}
    await put_all(harness.items, harness.tables.expiring, {**key, **passed(harness)})

    assert await harness.items.get(harness.tables.expiring, key) is None


async def test_get_many_answers_none_for_an_expired_item(harness: Harness) -> None:
    table, there = harness.tables.expiring, {"pk": fresh(), "sk": "a"}
    gone = await expired_item(harness)
    await put_all(harness.items, table, {**there, **living(harness)})

    found = await harness.items.get_many(table, [gone, there, gone])

    assert [item is None for item in found] == [True, False, True]


async def test_queries_leave_expired_items_out(harness: Harness) -> None:
    table, gone = harness.tables.expiring, await expired_item(harness)
    there = {"pk": gone["pk"], "sk": "b"}
    await put_all(harness.items, table, {**there, **living(harness)})
    query = Query(table, gone["pk"])

    assert await sort_keys(harness.items, query) == ["b"]
    assert await sort_keys(harness.items, replace(query, descending=True)) == ["b"]
    assert len((await harness.items.query_json(query)).items) == 1


async def test_index_queries_leave_expired_items_out(harness: Harness) -> None:
    owner = fresh("owner")
    gone = await expired_item(harness, owner=owner, rank="1")
    await put_all(
        harness.items,
        harness.tables.expiring,
        {"pk": gone["pk"], "sk": "b", "owner": owner, "rank": "2", **living(harness)},
    )

    async def read() -> list[object]:
        query = Query(harness.tables.expiring, owner, index=BY_OWNER)
        return [item["sk"] for item in await everything(harness.items, query)]

    await eventually(read, ["b"])


@pytest.mark.parametrize("limit", [1, 2, 3, 10])
async def test_expired_items_end_no_paging_early(harness: Harness, limit: int) -> None:
    """Living ones are scattered among runs of expired ones longer than a page."""
    table, partition = harness.tables.expiring, fresh()
    alive = {"03", "04", "17", "29"}
    await harness.items.write_many(
        table,
        [
            {"pk": partition, "sk": f"{n:02}", **(living(harness) if f"{n:02}" in alive else passed(harness))}
            for n in range(30)
        ],
    )
    query = Query(table, partition, limit=limit)

    assert await sort_keys(harness.items, query) == sorted(alive)
    assert await sort_keys(harness.items, replace(query, descending=True)) == sorted(alive, reverse=True)


async def test_expired_items_after_the_last_are_nothing_that_follows(harness: Harness) -> None:
    table, partition = harness.tables.expiring, fresh()
    await harness.items.write_many(
        table,
        [
            {"pk": partition, "sk": f"{n}", **(living(harness) if n < 2 else passed(harness))}
            for n in range(6)
        ],
    )

    found = await pages(harness.items, Query(table, partition, limit=2))

    assert [[item["sk"] for item in page.items] for page in found] == [["0", "1"]]


async def test_an_expired_item_has_no_attributes_for_a_condition(harness: Harness) -> None:
    key = await expired_item(harness, n=1)
    expected: list[tuple[Condition, bool]] = [
        (Exists("pk"), False),
        (Absent("pk"), True),
        (Not(Exists("pk")), True),
        (Exists("n"), False),
        (Absent("n"), True),
        (equals("n", 1), False),
        (Not(equals("n", 1)), True),
        (Exists("expires_at"), False),
    ]

    for condition, holds in expected:
        assert await condition_holds(harness.items, harness.tables.expiring, key, condition) is holds, (
            condition
        )


async def test_put_if_absent_takes_the_place_of_an_expired_item(harness: Harness) -> None:
    table, key = harness.tables.expiring, await expired_item(harness, old=1)
    item: Item = {**key, "new": 1, **living(harness)}

    assert_written(await harness.items.put(table, item, Absent("pk")))

    assert await harness.items.get(table, key) == item


async def test_a_write_that_needs_the_item_is_refused_with_no_current_item(harness: Harness) -> None:
    table, key = harness.tables.expiring, await expired_item(harness, n=1)

    for outcome in (
        await harness.items.put(table, {**key, **living(harness)}, Exists("pk")),
        await harness.items.update(table, key, Set("n", 2), condition=equals("n", 1)),
        await harness.items.delete(table, key, Exists("pk")),
        await harness.items.transact([Check(table, key, Exists("pk"))]),
        await harness.items.transact(
            [Check(table, {**key, "sk": "b"}, Absent("pk")), Delete(table, key, Exists("pk"))]
        ),
    ):
        assert assert_refused(outcome).current is None


async def test_an_update_of_an_expired_item_starts_from_nothing(harness: Harness) -> None:
    table, key = harness.tables.expiring, await expired_item(harness, n=41, old=True, kept="x")
    expires_at = harness.clock.now_seconds() + HOUR_SECONDS

    told = assert_written(
        await harness.items.update(
            table, key, Add("n", 1), SetIfAbsent("kept", "y"), Remove("other"), Set("expires_at", expires_at)
        )
    )

    assert told == {**key, "n": 1, "kept": "y", "expires_at": expires_at}
    assert await harness.items.get(table, key) == told


async def test_an_update_of_an_expired_item_that_sets_no_time_makes_one_without(harness: Harness) -> None:
    table, key = harness.tables.expiring, await expired_item(harness, n=41)

    assert assert_written(await harness.items.update(table, key, Add("n", 1))) == {**key, "n": 1}
    assert await harness.items.get(table, key) == {**key, "n": 1}


async def test_in_transactions_too_an_expired_item_is_absent(harness: Harness) -> None:
    table, counted, replaced = (
        harness.tables.expiring,
        await expired_item(harness, n=5),
        await expired_item(harness),
    )

    outcomes = await harness.items.transact_many(
        [
            [Update(table, counted, (Add("n", 1),)), Put(table, {**replaced, "n": 1}, Absent("pk"))],
            [Put(table, {**replaced, "n": 2}, Absent("pk"))],
        ]
    )

    assert isinstance(outcomes[0], Written)
    assert outcomes[1] == Refused((Failure(0, {**replaced, "n": 1}),))
    assert await harness.items.get_many(table, [counted, replaced]) == [
        {**counted, "n": 1},
        {**replaced, "n": 1},
    ]


async def test_delete_of_an_expired_item_tells_nothing(harness: Harness) -> None:
    key = await expired_item(harness, n=1)

    assert assert_written(await harness.items.delete(harness.tables.expiring, key)) is None


async def test_a_longer_time_keeps_an_item(harness: Harness) -> None:
    table, key = harness.tables.expiring, {"pk": fresh(), "sk": "a"}
    await put_all(harness.items, table, {**key, **living(harness)})
    await harness.items.update(table, key, Set("expires_at", harness.clock.now_seconds() + 3 * HOUR_SECONDS))

    harness.clock.advance(2 * HOUR_SECONDS)

    assert await harness.items.get(table, key) is not None


async def test_a_shorter_time_ends_an_item(harness: Harness) -> None:
    table, key = harness.tables.expiring, {"pk": fresh(), "sk": "a"}
    await put_all(harness.items, table, {**key, **living(harness)})

    await harness.items.update(table, key, Set("expires_at", harness.clock.now_seconds() - 60))

    assert await harness.items.get(table, key) is None


async def test_without_its_time_an_item_stays(harness: Harness) -> None:
    table, key = harness.tables.expiring, {"pk": fresh(), "sk": "a"}
    await put_all(harness.items, table, {**key, **living(harness)})
    await harness.items.update(table, key, Remove("expires_at"))

    harness.clock.advance(2 * HOUR_SECONDS)

    assert await harness.items.get(table, key) == key


@pytest.mark.parametrize("value", ["1", None, True, [1], {"n": 1}], ids=repr)
async def test_a_time_that_is_no_number_never_comes(harness: Harness, value: Value) -> None:
    table, key = harness.tables.expiring, {"pk": fresh(), "sk": "a"}
    await put_all(harness.items, table, {**key, "expires_at": value})

    assert await harness.items.get(table, key) == {**key, "expires_at": value}


async def test_in_a_table_without_ttl_nothing_expires(harness: Harness) -> None:
    key = {"id": fresh()}
    await put_all(harness.items, harness.tables.plain, {**key, "expires_at": 1})

    assert await harness.items.get(harness.tables.plain, key) == {**key, "expires_at": 1}
