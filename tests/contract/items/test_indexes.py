"""Which items an index holds. Indexes may lag behind: what they hold in the end is what counts."""

from dataclasses import replace

import msgspec
from tests.contract.items.asking import eventually, everything, put_all
from tests.contract.items.harness import Harness
from tests.contract.items.tables import BY_OWNER, BY_STATE, BY_TAG, fresh

from crossdock.engines.items.port import (
    Add,
    Item,
    Put,
    Query,
    Remove,
    Set,
    SortBetween,
    SortCondition,
    SortEquals,
    SortPrefix,
    Update,
)


async def assert_index(harness: Harness, index: str, partition: str, expected: list[str]) -> None:
    """The index partition holds the items of these sort keys, in this order, in the end."""
    query = Query(harness.tables.sorted, partition, index=index)

    async def read() -> list[str]:
        return [str(item["sk"]) for item in await everything(harness.items, query)]

    await eventually(read, expected)


async def test_an_index_finds_items_by_its_own_key(harness: Harness) -> None:
    owner, other = fresh("owner"), fresh("owner")
    first: Item = {"pk": fresh(), "sk": "a", "owner": owner, "rank": "2", "deep": [1], "body": "long"}
    second: Item = {"pk": fresh(), "sk": "b", "owner": owner, "rank": "1"}
    await put_all(harness.items, harness.tables.sorted, first, second)
    await put_all(
        harness.items, harness.tables.sorted, {"pk": fresh(), "sk": "c", "owner": other, "rank": "3"}
    )

    async def read() -> list[Item]:
        return await everything(harness.items, Query(harness.tables.sorted, owner, index=BY_OWNER))

    await eventually(read, [second, first])


async def test_an_index_without_sort_key_finds_every_item_of_its_partition(harness: Harness) -> None:
    tag = fresh("tag")
    keys = {(fresh(), "x") for _ in range(3)}
    await put_all(
        harness.items, harness.tables.sorted, *({"pk": pk, "sk": sk, "tag": tag} for pk, sk in keys)
    )

    async def read() -> set[tuple[object, object]]:
        found = await everything(harness.items, Query(harness.tables.sorted, tag, index=BY_TAG))
        return {(item["pk"], item["sk"]) for item in found}

    await eventually(read, set(keys))


async def test_a_keys_only_index_answers_its_own_key_and_the_tables(harness: Harness) -> None:
    state = fresh("state")
    key = {"pk": fresh(), "sk": "a", "state": state, "rank": "1"}
    await put_all(
        harness.items, harness.tables.sorted, {**key, "owner": fresh(), "n": 1, "tag": "t", "body": "long"}
    )

    async def read() -> list[Item]:
        return await everything(harness.items, Query(harness.tables.sorted, state, index=BY_STATE))

    await eventually(read, [{**key}])


async def test_an_item_without_an_index_key_is_not_in_the_index(harness: Harness) -> None:
    owner, partition = fresh("owner"), fresh()
    await put_all(
        harness.items,
        harness.tables.sorted,
        {"pk": partition, "sk": "no rank", "owner": owner},
        {"pk": partition, "sk": "no owner", "rank": "1"},
        {"pk": partition, "sk": "both", "owner": owner, "rank": "1"},
    )

    await assert_index(harness, BY_OWNER, owner, ["both"])


async def test_an_item_enters_an_index_when_an_update_gives_it_the_key(harness: Harness) -> None:
    owner, key = fresh("owner"), {"pk": fresh(), "sk": "a"}
    await put_all(harness.items, harness.tables.sorted, {**key, "owner": owner})

    await harness.items.update(harness.tables.sorted, key, Set("rank", "1"))

    await assert_index(harness, BY_OWNER, owner, ["a"])


async def test_an_item_leaves_an_index_when_an_update_removes_the_key(harness: Harness) -> None:
    owner, key = fresh("owner"), {"pk": fresh(), "sk": "a"}
    await put_all(harness.items, harness.tables.sorted, {**key, "owner": owner, "rank": "1"})
    await assert_index(harness, BY_OWNER, owner, ["a"])

    await harness.items.update(harness.tables.sorted, key, Remove("rank"))

    await assert_index(harness, BY_OWNER, owner, [])


async def test_an_update_moves_an_item_to_another_index_partition(harness: Harness) -> None:
    before, after, key = fresh("owner"), fresh("owner"), {"pk": fresh(), "sk": "a"}
    await put_all(harness.items, harness.tables.sorted, {**key, "owner": before, "rank": "1"})
    await assert_index(harness, BY_OWNER, before, ["a"])

    await harness.items.update(harness.tables.sorted, key, Set("owner", after))

    await assert_index(harness, BY_OWNER, after, ["a"])
    await assert_index(harness, BY_OWNER, before, [])


async def test_an_update_moves_an_item_within_the_index(harness: Harness) -> None:
    owner, partition = fresh("owner"), fresh()
    await put_all(
        harness.items,
        harness.tables.sorted,
        *({"pk": partition, "sk": sk, "owner": owner, "rank": sk} for sk in ("a", "b", "c")),
    )

    await harness.items.update(harness.tables.sorted, {"pk": partition, "sk": "a"}, Set("rank", "z"))

    await assert_index(harness, BY_OWNER, owner, ["b", "c", "a"])


async def test_a_put_without_the_index_key_takes_the_item_out(harness: Harness) -> None:
    owner, key = fresh("owner"), {"pk": fresh(), "sk": "a"}
    await put_all(harness.items, harness.tables.sorted, {**key, "owner": owner, "rank": "1"})
    await assert_index(harness, BY_OWNER, owner, ["a"])

    await put_all(harness.items, harness.tables.sorted, {**key, "rank": "1"})

    await assert_index(harness, BY_OWNER, owner, [])


async def test_a_deleted_item_leaves_the_index(harness: Harness) -> None:
    owner, key = fresh("owner"), {"pk": fresh(), "sk": "a"}
    await put_all(harness.items, harness.tables.sorted, {**key, "owner": owner, "rank": "1"})
    await assert_index(harness, BY_OWNER, owner, ["a"])

    await harness.items.delete(harness.tables.sorted, key)

    await assert_index(harness, BY_OWNER, owner, [])


async def test_an_index_follows_changes_of_other_attributes(harness: Harness) -> None:
    owner, key = fresh("owner"), {"pk": fresh(), "sk": "a"}
    await put_all(harness.items, harness.tables.sorted, {**key, "owner": owner, "rank": "1", "n": 1})
    await harness.items.update(harness.tables.sorted, key, Add("n", 1))

    async def read() -> list[object]:
        found = await everything(harness.items, Query(harness.tables.sorted, owner, index=BY_OWNER))
        return [item["n"] for item in found]

    await eventually(read, [2])


async def test_indexes_follow_transactions_and_write_many(harness: Harness) -> None:
    owner, partition, table = fresh("owner"), fresh(), harness.tables.sorted
    indexed = {"owner": owner, "rank": "1"}
    await harness.items.write_many(
        table, [{"pk": partition, "sk": "a", **indexed}, {"pk": partition, "sk": "b"}]
    )
    await harness.items.transact(
        [
            Put(table, {"pk": partition, "sk": "c", **indexed, "rank": "3"}),
            Update(table, {"pk": partition, "sk": "b"}, (Set("owner", owner), Set("rank", "2"))),
        ]
    )
    await harness.items.transact_many([[Update(table, {"pk": partition, "sk": "a"}, (Set("rank", "4"),))]])

    await assert_index(harness, BY_OWNER, owner, ["b", "c", "a"])


async def test_sort_conditions_work_on_an_index(harness: Harness) -> None:
    owner, partition = fresh("owner"), fresh()
    ranks = ("a1", "a2", "a2", "b1")
    await put_all(
        harness.items,
        harness.tables.sorted,
        *({"pk": partition, "sk": f"{n}", "owner": owner, "rank": rank} for n, rank in enumerate(ranks)),
    )
    expected: list[tuple[SortCondition, list[str]]] = [
        (SortEquals("a2"), ["a2", "a2"]),
        (SortPrefix("a"), ["a1", "a2", "a2"]),
        (SortBetween("a2", "b1"), ["a2", "a2", "b1"]),
        (SortBetween("b", "c"), ["b1"]),
        (SortPrefix("c"), []),
    ]
    for condition, found in expected:
        query = Query(harness.tables.sorted, owner, index=BY_OWNER, sort=condition)

        async def read(query: Query = query) -> list[object]:
            return [item["rank"] for item in await everything(harness.items, query)]

        await eventually(read, [*found])


async def test_query_json_of_an_index_answers_the_items_of_query(harness: Harness) -> None:
    owner, partition = fresh("owner"), fresh()
    await put_all(
        harness.items,
        harness.tables.sorted,
        *(
            {"pk": partition, "sk": f"{n}", "owner": owner, "rank": f"{n}", "body": f"long {n}"}
            for n in range(4)
        ),
    )
    await assert_index(harness, BY_OWNER, owner, ["0", "1", "2", "3"])
    query = Query(harness.tables.sorted, owner, index=BY_OWNER, limit=3)

    for each in (query, replace(query, descending=True)):
        parsed, raw = await harness.items.query(each), await harness.items.query_json(each)
        assert [msgspec.json.decode(text) for text in raw.items] == parsed.items
        assert raw.cursor == parsed.cursor
        assert all("body" in item for item in parsed.items)
