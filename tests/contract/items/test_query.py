"""Table queries: which items, in which order."""

from dataclasses import replace

import msgspec
import pytest
from tests.contract.items.asking import everything, put_all, sort_keys
from tests.contract.items.harness import Harness
from tests.contract.items.tables import fresh

from crossdock.engines.items.port import (
    Item,
    Query,
    SortBetween,
    SortCondition,
    SortEquals,
    SortPrefix,
)

# In UTF-8 byte order. Compared as UTF-16, the last two would come before U+E000 and U+FFFF; a collation
# for people would put A, a and ä together.
IN_BYTE_ORDER = [
    " ",
    "!",
    "-",
    "0",
    "00",
    "1",
    "10",
    "2",
    "A",
    "B",
    "Z",
    "_",
    "a",
    "a\U0001f600",
    "aa",
    "b",
    "z",
    "~",
    "\x7f",
    "\u0080",
    "Ä",
    "ä",
    "ß",
    "\u0301",
    "Ω",
    "文",
    "\ue000",
    "\uffff",
    "\U00010000",
    "\U0001f600",
    "\U0010ffff",
]
IN_BYTE_ORDER.sort(key=str.encode)


async def stored(harness: Harness, *sorts: str) -> Query:
    """The query for a partition with items of these sort keys, put in an order of its own."""
    partition = fresh()
    await put_all(
        harness.items, harness.tables.sorted, *({"pk": partition, "sk": sort} for sort in sorted(sorts)[::-1])
    )
    return Query(harness.tables.sorted, partition)


async def test_items_come_in_utf8_byte_order(harness: Harness) -> None:
    query = await stored(harness, *IN_BYTE_ORDER)

    assert await sort_keys(harness.items, query) == IN_BYTE_ORDER


async def test_descending_is_the_reverse(harness: Harness) -> None:
    query = await stored(harness, *IN_BYTE_ORDER)

    assert await sort_keys(harness.items, replace(query, descending=True)) == IN_BYTE_ORDER[::-1]


async def test_a_query_sees_only_its_partition(harness: Harness) -> None:
    query = await stored(harness, "a")
    await put_all(harness.items, harness.tables.sorted, {"pk": query.partition + "x", "sk": "b"})
    await put_all(harness.items, harness.tables.sorted, {"pk": query.partition[:-1], "sk": "c"})

    assert await sort_keys(harness.items, query) == ["a"]


async def test_a_query_of_an_unknown_partition_is_an_empty_page(harness: Harness) -> None:
    page = await harness.items.query(Query(harness.tables.sorted, fresh()))

    assert (page.items, page.cursor) == ([], None)


async def test_a_table_without_sort_key_has_one_item_a_partition(harness: Harness) -> None:
    item: Item = {"id": fresh(), "n": 1}
    await put_all(harness.items, harness.tables.plain, item)

    page = await harness.items.query(Query(harness.tables.plain, str(item["id"])))

    assert (page.items, page.cursor) == ([item], None)


async def test_a_query_answers_whole_items(harness: Harness) -> None:
    item: Item = {"pk": fresh(), "sk": "a", "owner": fresh(), "rank": "1", "deep": {"l": [1]}, "body": "long"}
    await put_all(harness.items, harness.tables.sorted, item)

    assert await everything(harness.items, Query(harness.tables.sorted, str(item["pk"]))) == [item]


async def test_a_query_sees_every_write_that_was_answered(harness: Harness) -> None:
    query = await stored(harness)
    for n in range(5):
        await put_all(harness.items, harness.tables.sorted, {"pk": query.partition, "sk": f"{n}"})
        assert len(await everything(harness.items, query)) == n + 1
    for n in range(5):
        await harness.items.delete(harness.tables.sorted, {"pk": query.partition, "sk": f"{n}"})
        assert len(await everything(harness.items, query)) == 4 - n


SORTS = (
    "a",
    "a%",
    "a_",
    "ab",
    "abc",
    "a\uffff",
    "a\uffffz",
    "a\U0001f600",
    "b",
    "b%",
    "ba",
    "A",
    "\\",
    "\\\\x",
)

SELECTED: list[tuple[SortCondition, list[str]]] = [
    (SortEquals("ab"), ["ab"]),
    (SortEquals("a"), ["a"]),
    (SortEquals("missing"), []),
    (SortPrefix("a"), ["a", "a%", "a_", "ab", "abc", "a\uffff", "a\uffffz", "a\U0001f600"]),
    (SortPrefix("a\uffff"), ["a\uffff", "a\uffffz"]),
    (SortPrefix("ab"), ["ab", "abc"]),
    (SortPrefix("a%"), ["a%"]),
    (SortPrefix("a_"), ["a_"]),
    (SortPrefix("\\"), ["\\", "\\\\x"]),
    (SortPrefix("c"), []),
    (SortBetween("ab", "b"), ["ab", "abc", "a\uffff", "a\uffffz", "a\U0001f600", "b"]),
    (SortBetween("ab", "ab"), ["ab"]),
    (SortBetween("aba", "abb"), []),
    # The usual way to say "everything that starts with": ends before what lies beyond the BMP.
    (SortBetween("a", "a\uffff"), ["a", "a%", "a_", "ab", "abc", "a\uffff"]),
    (SortBetween("b", "a"), []),
]


@pytest.mark.parametrize(("condition", "expected"), SELECTED, ids=lambda value: ascii(value)[:40])
async def test_a_sort_condition_selects(
    harness: Harness, condition: SortCondition, expected: list[str]
) -> None:
    query = replace(await stored(harness, *SORTS), sort=condition)

    assert await sort_keys(harness.items, query) == expected
    assert await sort_keys(harness.items, replace(query, descending=True)) == expected[::-1]
    assert await sort_keys(harness.items, replace(query, limit=2)) == expected


async def test_an_empty_prefix_selects_everything(harness: Harness) -> None:
    query = replace(await stored(harness, "a", "b"), sort=SortPrefix(""))

    assert await sort_keys(harness.items, query) == ["a", "b"]


async def test_between_from_the_empty_text_starts_at_the_first(harness: Harness) -> None:
    query = replace(await stored(harness, "a", "b", "c"), sort=SortBetween("", "b"))

    assert await sort_keys(harness.items, query) == ["a", "b"]


async def test_query_json_answers_the_items_of_query_as_json(harness: Harness) -> None:
    partition = fresh()
    deep: Item = {"x": [0.5, None, "ü😀\n"]}
    await harness.items.write_many(
        harness.tables.sorted,
        [{"pk": partition, "sk": f"{n}", "n": n, "deep": deep, "body": f"long {n}"} for n in range(5)],
    )
    query = Query(harness.tables.sorted, partition, sort=SortBetween("0", "3"), limit=3, descending=True)

    for each in (query, replace(query, after={"pk": partition, "sk": "1"})):
        parsed, raw = await harness.items.query(each), await harness.items.query_json(each)
        assert [msgspec.json.decode(text) for text in raw.items] == parsed.items
        assert raw.cursor == parsed.cursor
        assert all("body" in item for item in parsed.items)


async def test_query_json_of_nothing_is_an_empty_page(harness: Harness) -> None:
    page = await harness.items.query_json(Query(harness.tables.sorted, fresh()))

    assert (page.items, page.cursor) == ([], None)
