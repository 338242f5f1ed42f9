"""DynamoDB's limits hold on every backend: what breaks one is rejected before anything is written."""

from typing import Any, cast

import pytest
from tests.contract.items.asking import assert_written, put_all
from tests.contract.items.harness import Harness
from tests.contract.items.tables import fresh

from crossdock.engines.items.port import Add, Item, ItemRejected, Put, Set, Update, Value, Written

ITEM_BYTES_MAX = 400 * 1024
# How a size is counted differs by a few bytes between an estimate and DynamoDB; the edge is this wide.
EDGE_BYTES = 64


async def assert_put_rejected(harness: Harness, value: Value) -> None:
    """By a put, and by an update of an item that stays as it was."""
    key = {"id": fresh()}
    with pytest.raises(ItemRejected):
        await harness.items.put(harness.tables.plain, {**key, "value": value})
    assert await harness.items.get(harness.tables.plain, key) is None

    await put_all(harness.items, harness.tables.plain, {**key, "n": 1})
    with pytest.raises(ItemRejected):
        await harness.items.update(harness.tables.plain, key, Set("value", value), Add("n", 1))
    assert await harness.items.get(harness.tables.plain, key) == {**key, "n": 1}


async def test_an_item_just_under_400_kb_is_stored(harness: Harness) -> None:
    item: Item = {"id": fresh(), "value": "x" * (ITEM_BYTES_MAX - EDGE_BYTES - 50)}

    assert_written(await harness.items.put(harness.tables.plain, item))
    assert await harness.items.get(harness.tables.plain, {"id": str(item["id"])}) == item


async def test_an_item_over_400_kb_is_rejected(harness: Harness) -> None:
    await assert_put_rejected(harness, "x" * ITEM_BYTES_MAX)


async def test_size_is_counted_in_bytes_not_characters(harness: Harness) -> None:
    await assert_put_rejected(harness, "ä" * (ITEM_BYTES_MAX // 2))
    await assert_put_rejected(harness, "\U0001f600" * (ITEM_BYTES_MAX // 4))


async def test_attribute_names_count(harness: Harness) -> None:
    await assert_put_rejected(harness, {f"{n:01000}": 1 for n in range(420)})


async def test_wide_attributes_count(harness: Harness) -> None:
    item: Item = {"pk": fresh(), "sk": "a", "body": "x" * 300_000, "more": "x" * 120_000}

    with pytest.raises(ItemRejected):
        await harness.items.put(harness.tables.sorted, item)


async def test_an_update_may_not_let_an_item_grow_over_400_kb(harness: Harness) -> None:
    key = {"id": fresh()}
    item: Item = {**key, "a": "x" * 250_000}
    await put_all(harness.items, harness.tables.plain, item)

    with pytest.raises(ItemRejected):
        await harness.items.update(harness.tables.plain, key, Set("b", "x" * 250_000))

    assert await harness.items.get(harness.tables.plain, key) == item


async def test_an_update_may_not_let_an_item_with_a_wide_attribute_grow_over_400_kb(harness: Harness) -> None:
    key = {"pk": fresh(), "sk": "a"}
    item: Item = {**key, "body": "x" * 250_000}
    await put_all(harness.items, harness.tables.sorted, item)

    with pytest.raises(ItemRejected):
        await harness.items.update(harness.tables.sorted, key, Set("b", "x" * 250_000))

    assert await harness.items.get(harness.tables.sorted, key) == item


@pytest.mark.parametrize(
    ("attribute", "bytes_max"), [("pk", 2048), ("sk", 1024), ("owner", 2048), ("rank", 1024)]
)
@pytest.mark.parametrize("letter", ["x", "ä", "\U0001f600"])
async def test_a_key_up_to_its_limit_is_stored_and_a_longer_one_rejected(
    harness: Harness, attribute: str, bytes_max: int, letter: str
) -> None:
    marker = fresh() + "-" * 4  # 40 bytes: a multiple of every letter's length
    text = marker + letter * ((bytes_max - len(marker)) // len(letter.encode()))
    item: Item = {"pk": fresh(), "sk": fresh(), "owner": fresh(), "rank": "1", attribute: text}
    key = harness.tables.sorted.key_of(item)
    assert len(text.encode()) == bytes_max

    assert_written(await harness.items.put(harness.tables.sorted, item))
    assert await harness.items.get(harness.tables.sorted, key) == item

    with pytest.raises(ItemRejected):
        await harness.items.put(harness.tables.sorted, {**item, attribute: text + "x"})


NOT_KEYS: list[Value] = ["", None, 1, True, ["a"], {"a": "b"}, "a\0b", "\ud800"]


@pytest.mark.parametrize("attribute", ["pk", "sk", "owner", "rank"])
@pytest.mark.parametrize("value", NOT_KEYS, ids=ascii)
async def test_a_key_attribute_must_be_a_text_with_something_in_it(
    harness: Harness, attribute: str, value: Value
) -> None:
    """Index keys too: DynamoDB refuses the item, instead of leaving it out of the index."""
    item: Item = {"pk": fresh(), "sk": "a", "owner": fresh(), "rank": "1", attribute: value}

    with pytest.raises(ItemRejected):
        await harness.items.put(harness.tables.sorted, item)


@pytest.mark.parametrize("value", NOT_KEYS, ids=ascii)
async def test_an_update_may_not_break_an_index_key(harness: Harness, value: Value) -> None:
    key = {"pk": fresh(), "sk": "a"}
    item: Item = {**key, "owner": fresh(), "rank": "1"}
    await put_all(harness.items, harness.tables.sorted, item)

    with pytest.raises(ItemRejected):
        await harness.items.update(harness.tables.sorted, key, Set("rank", value))

    assert await harness.items.get(harness.tables.sorted, key) == item


async def test_a_put_without_its_key_is_rejected(harness: Harness) -> None:
    with pytest.raises(ItemRejected):
        await harness.items.put(harness.tables.sorted, {"pk": fresh()})
    with pytest.raises(ItemRejected):
        await harness.items.put(harness.tables.sorted, {"sk": "a"})


WRONG_KEYS: list[dict[str, str]] = [
    {},
    {"pk": "a"},
    {"pk": "a", "sk": ""},
    {"pk": "", "sk": "a"},
    {"pk": "a", "sk": "b", "more": "c"},
    {"pk": "a", "sk": "b\0"},
    {"pk": "a", "sk": "x" * 1025},
    {"pk": "x" * 2049, "sk": "a"},
]


@pytest.mark.parametrize("key", WRONG_KEYS, ids=lambda key: ascii(key)[:40])
async def test_a_wrong_key_is_rejected_by_every_operation(harness: Harness, key: dict[str, str]) -> None:
    table = harness.tables.sorted
    for call in (
        harness.items.get(table, key),
        harness.items.get_many(table, [{"pk": "a", "sk": "b"}, key]),
        harness.items.update(table, key, Set("a", 1)),
        harness.items.delete(table, key),
        harness.items.transact([Update(table, key, (Set("a", 1),))]),
    ):
        with pytest.raises(ItemRejected):
            await call


async def test_38_digits_are_kept_and_39_rejected(harness: Harness) -> None:
    key = {"id": fresh()}
    for number in (int("1234567890" * 3 + "12345678"), -int("9" * 38), 10**37):
        await put_all(harness.items, harness.tables.plain, {**key, "value": number})
        assert await harness.items.get(harness.tables.plain, key) == {**key, "value": number}

    for number in (int("1234567890" * 3 + "123456789"), -int("9" * 39), 10**38 + 1):
        await assert_put_rejected(harness, number)


async def test_adding_may_not_need_more_than_38_digits(harness: Harness) -> None:
    key = {"id": fresh()}
    await put_all(harness.items, harness.tables.plain, {**key, "n": int("9" * 38)})

    with pytest.raises(ItemRejected):
        await harness.items.update(harness.tables.plain, key, Add("n", 2))

    assert await harness.items.get(harness.tables.plain, key) == {**key, "n": int("9" * 38)}


OUT_OF_RANGE = [float("nan"), float("inf"), float("-inf"), 1e126, -1e126, 1e-131, 1e300, 5e-324, 10**126]


@pytest.mark.parametrize("number", OUT_OF_RANGE)
async def test_a_number_out_of_range_is_rejected(harness: Harness, number: float) -> None:
    await assert_put_rejected(harness, number)
    await assert_put_rejected(harness, [{"deep": number}])


@pytest.mark.parametrize("number", OUT_OF_RANGE)
async def test_adding_a_number_out_of_range_is_rejected(harness: Harness, number: float) -> None:
    key = {"id": fresh()}
    await put_all(harness.items, harness.tables.plain, {**key, "n": 1})

    with pytest.raises(ItemRejected):
        await harness.items.update(harness.tables.plain, key, Add("n", number))

    assert await harness.items.get(harness.tables.plain, key) == {**key, "n": 1}


@pytest.mark.parametrize("text", ["\0", "a\0b", "\ud800", "a\udfffb", "\udc00\ud800"], ids=ascii)
async def test_a_text_that_is_not_unicode_or_has_a_nul_is_rejected(harness: Harness, text: str) -> None:
    await assert_put_rejected(harness, text)
    await assert_put_rejected(harness, {"list": [text]})
    await assert_put_rejected(harness, {text: 1})


def nested(levels: int, innermost: Value) -> Value:
    value = innermost
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("innermost", ["x", [], {}], ids=repr)
async def test_31_levels_of_nesting_are_stored_and_32_rejected(harness: Harness, innermost: Value) -> None:
    levels = 30 if innermost in ([], {}) else 31
    key = {"id": fresh()}

    await put_all(harness.items, harness.tables.plain, {**key, "value": nested(levels, innermost)})
    assert await harness.items.get(harness.tables.plain, key) == {**key, "value": nested(levels, innermost)}

    await assert_put_rejected(harness, nested(levels + 1, innermost))
    await assert_put_rejected(harness, nested(levels + 2, innermost))
    await assert_put_rejected(harness, nested(2000, innermost))


async def test_an_attribute_without_a_name_is_rejected(harness: Harness) -> None:
    await assert_put_rejected(harness, {"": 1})
    with pytest.raises(ItemRejected):
        await harness.items.put(harness.tables.plain, {"id": fresh(), "": 1})


@pytest.mark.parametrize("value", [object(), 1j, {"deep": [object()]}], ids=repr)
async def test_what_is_no_json_value_is_rejected(harness: Harness, value: object) -> None:
    await assert_put_rejected(harness, cast(Any, value))


async def test_a_rejected_write_harms_no_concurrent_neighbour(harness: Harness) -> None:
    table, partition = harness.tables.sorted, fresh()
    outcomes = await harness.items.transact_many(
        [
            [Put(table, {"pk": partition, "sk": f"{n}", "body": "x" * (ITEM_BYTES_MAX if n == 3 else 10)})]
            for n in range(7)
        ]
    )

    assert [isinstance(outcome, Written) for outcome in outcomes] == [True] * 3 + [False] + [True] * 3
    assert isinstance(outcomes[3], ItemRejected)
