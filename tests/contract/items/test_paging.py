"""Pages of table queries and of index queries: nothing twice, nothing left out, and an end that is told."""

from dataclasses import replace

import pytest
from tests.contract.items.asking import eventually, everything, pages, put_all, sort_keys
from tests.contract.items.harness import Harness
from tests.contract.items.tables import BY_OWNER, BY_STATE, BY_TAG, fresh

from crossdock.engines.items.port import Cursor, Item, Query, SortPrefix

NINE = [f"{n}" for n in range(1, 10)]


async def stored(harness: Harness, sorts: list[str]) -> Query:
    partition = fresh()
    await harness.items.write_many(harness.tables.sorted, [{"pk": partition, "sk": sort} for sort in sorts])
    return Query(harness.tables.sorted, partition)


def place(query: Query, sort: str) -> Cursor:
    return {"pk": query.partition, "sk": sort}


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("limit", [1, 2, 3, 4, 8, 9, 10, 1000])
async def test_pages_hold_every_item_once_in_order(harness: Harness, limit: int, descending: bool) -> None:
    query = await stored(harness, NINE)

    found = await pages(harness.items, replace(query, limit=limit, descending=descending))

    assert [item["sk"] for page in found for item in page.items] == (NINE[::-1] if descending else NINE)
    assert all(len(page.items) <= limit for page in found)


@pytest.mark.parametrize("limit", [1, 3, 9])
async def test_a_page_that_ends_with_the_last_item_has_no_cursor(harness: Harness, limit: int) -> None:
    query = await stored(harness, NINE[:limit])

    page = await harness.items.query(replace(query, limit=limit))

    assert len(page.items) == limit
    assert page.cursor is None


async def test_a_page_that_something_follows_has_the_cursor_of_its_last_item(harness: Harness) -> None:
    query = await stored(harness, NINE)

    page = await harness.items.query(replace(query, limit=4))

    assert [item["sk"] for item in page.items] == ["1", "2", "3", "4"]
    assert page.cursor == place(query, "4")


async def test_a_sort_condition_ends_the_pages(harness: Harness) -> None:
    query = await stored(harness, ["a1", "a2", "a3", "b1"])

    found = await pages(harness.items, replace(query, sort=SortPrefix("a"), limit=3))

    assert [[item["sk"] for item in page.items] for page in found] == [["a1", "a2", "a3"]]


async def test_the_way_back_from_a_place_leads_to_the_items_before_it(harness: Harness) -> None:
    query = await stored(harness, NINE)
    at_five = replace(query, after=place(query, "5"), limit=2)

    assert await sort_keys(harness.items, at_five) == ["6", "7", "8", "9"]
    assert await sort_keys(harness.items, replace(at_five, descending=True)) == ["4", "3", "2", "1"]


async def test_a_cursor_outlives_its_item(harness: Harness) -> None:
    query = await stored(harness, NINE)
    await harness.items.delete(harness.tables.sorted, place(query, "5"))

    assert await sort_keys(harness.items, replace(query, after=place(query, "5"))) == ["6", "7", "8", "9"]


async def test_after_the_last_item_comes_an_empty_page(harness: Harness) -> None:
    query = await stored(harness, NINE)

    page = await harness.items.query(replace(query, after=place(query, "9")))

    assert (page.items, page.cursor) == ([], None)


async def test_writes_between_two_pages_move_no_other_item(harness: Harness) -> None:
    query = replace(await stored(harness, ["b", "d", "f", "h", "j"]), limit=2)
    first = await harness.items.query(query)

    await harness.items.delete(harness.tables.sorted, place(query, "b"))
    await harness.items.delete(harness.tables.sorted, place(query, "h"))
    await put_all(
        harness.items,
        harness.tables.sorted,
        *({"pk": query.partition, "sk": sort} for sort in ("a", "c", "e", "k")),
    )
    rest = await sort_keys(harness.items, replace(query, after=first.cursor))

    assert [item["sk"] for item in first.items] == ["b", "d"]
    assert rest == ["e", "f", "j", "k"]


async def test_pages_of_large_items_hold_them_all(harness: Harness) -> None:
    """DynamoDB reads at most 1 MB for an answer, whatever the limit."""
    partition = fresh()
    await harness.items.write_many(
        harness.tables.sorted, [{"pk": partition, "sk": f"{n}", "body": "x" * 300_000} for n in range(9)]
    )

    for limit in (5, 9, 50):
        query = Query(harness.tables.sorted, partition, limit=limit)
        assert await sort_keys(harness.items, query) == [f"{n}" for n in range(9)]


async def indexed(harness: Harness, owner: str, items: list[Item]) -> None:
    await harness.items.write_many(
        harness.tables.sorted, [{"owner": owner, "state": owner, "tag": owner, **item} for item in items]
    )
    query = Query(harness.tables.sorted, owner, index=BY_OWNER, limit=1000)

    async def count() -> int:
        return len(await everything(harness.items, query))

    await eventually(count, len(items))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("index", [BY_OWNER, BY_STATE, BY_TAG])
@pytest.mark.parametrize("limit", [1, 2, 5, 12, 13])
async def test_index_pages_hold_every_item_once(
    harness: Harness, index: str, limit: int, descending: bool
) -> None:
    """Twelve items in three partitions with four different ranks: most places in the index are shared."""
    owner, partition = fresh("owner"), fresh()
    keys = [(f"{partition}-{n % 3}", f"s{n}") for n in range(12)]
    await indexed(
        harness, owner, [{"pk": pk, "sk": sk, "rank": f"{n % 4}"} for n, (pk, sk) in enumerate(keys)]
    )
    query = Query(harness.tables.sorted, owner, index=index, limit=limit, descending=descending)

    found = await pages(harness.items, query)

    got = [(item["pk"], item["sk"]) for page in found for item in page.items]
    assert sorted(got, key=repr) == sorted(keys, key=repr)
    assert all(len(page.items) <= limit for page in found)
    assert all(page.items for page in found)


@pytest.mark.parametrize("descending", [False, True])
async def test_index_pages_are_in_the_order_of_the_index(harness: Harness, descending: bool) -> None:
    owner, partition = fresh("owner"), fresh()
    ranks = ["b", "a", "d", "c", "\uffff", "\U0001f600"]
    await indexed(
        harness, owner, [{"pk": partition, "sk": f"{n}", "rank": rank} for n, rank in enumerate(ranks)]
    )
    query = Query(harness.tables.sorted, owner, index=BY_OWNER, limit=2, descending=descending)

    found = await sort_keys(harness.items, query, "rank")

    in_order = ["a", "b", "c", "d", "\uffff", "\U0001f600"]
    assert found == (in_order[::-1] if descending else in_order)


async def test_an_index_cursor_names_the_item_and_its_place_in_the_index(harness: Harness) -> None:
    owner, partition = fresh("owner"), fresh()
    await indexed(harness, owner, [{"pk": partition, "sk": f"{n}", "rank": f"r{n}"} for n in range(3)])

    page = await harness.items.query(Query(harness.tables.sorted, owner, index=BY_OWNER, limit=2))

    assert page.cursor == {"pk": partition, "sk": "1", "owner": owner, "rank": "r1"}


async def test_an_index_cursor_outlives_its_item(harness: Harness) -> None:
    owner, partition = fresh("owner"), fresh()
    await indexed(harness, owner, [{"pk": partition, "sk": f"{n}", "rank": "same"} for n in range(6)])
    query = Query(harness.tables.sorted, owner, index=BY_OWNER, limit=3)
    first = await harness.items.query(query)
    rest = await sort_keys(harness.items, replace(query, after=first.cursor))

    await harness.items.delete(harness.tables.sorted, {"pk": partition, "sk": str(first.items[-1]["sk"])})

    assert await sort_keys(harness.items, replace(query, after=first.cursor)) == rest
    assert len(rest) == 3
