"""What is put comes back: numbers, texts, nesting.

Numbers are kept exactly to 38 digits, but not their spelling: 1.0 may come back as 1, and minus zero as zero.
"""

import pytest
from tests.contract.items.asking import assert_written, put_all
from tests.contract.items.harness import Harness
from tests.contract.items.tables import fresh

from crossdock.engines.items.port import Add, Item, Set, Value


async def comes_back(harness: Harness, value: Value) -> Value:
    """Through a put, an update, and a query; all three must agree."""
    key = {"id": fresh()}
    await put_all(harness.items, harness.tables.plain, {**key, "value": value})
    put = await harness.items.get(harness.tables.plain, key)
    updated = assert_written(await harness.items.update(harness.tables.plain, key, Set("value", value)))
    found = await harness.items.get_many(harness.tables.plain, [key])
    assert put is not None
    assert repr(put) == repr(updated) == repr(found[0])
    return put["value"]


NUMBERS: list[int | float] = [
    0,
    1,
    -1,
    0.1,
    -0.1,
    1 / 3,
    2 / 3,
    1e-7,
    1.5e-9,
    123456.789,
    1e21,
    1.7976931348623157e100,
    1e-130,
    9.99e125,
    -9.99e125,
    2**31,
    2**53 - 1,
    2**53,
    2**53 + 1,
    -(2**53) - 1,
    2**63 - 1,
    -(2**63),
    2**64 - 1,
]


@pytest.mark.parametrize("number", NUMBERS)
async def test_a_number_keeps_its_value(harness: Harness, number: int | float) -> None:
    found = await comes_back(harness, number)

    assert found == number
    assert not isinstance(found, bool)


@pytest.mark.parametrize("number", [2**53 + 1, 2**63 - 1, -(2**63)])
async def test_a_large_whole_number_comes_back_whole(harness: Harness, number: int) -> None:
    assert isinstance(await comes_back(harness, number), int)


async def test_minus_zero_is_a_zero(harness: Harness) -> None:
    assert await comes_back(harness, -0.0) == 0


async def test_adding_keeps_large_whole_numbers_exact(harness: Harness) -> None:
    key = {"id": fresh()}
    await put_all(harness.items, harness.tables.plain, {**key, "n": 2**53})

    told = assert_written(await harness.items.update(harness.tables.plain, key, Add("n", 1)))

    assert told == {**key, "n": 2**53 + 1}


TEXTS = [
    "",
    " ",
    "ä",
    "a\u0308",  # not normalised into the one before
    "\u2028",
    "line\nbreak\r\n\ttab",
    'quotes " and \\ slashes /',
    "\x01\x1f\x7f\u0080\u009f",
    "\ufffe\uffff\ufeff",
    "\U0001f600\U0010ffff",
    "\u202eright to left",
    "x" * 100_000,
    "文" * 20_000,
    "null",
    "1",
    "\\u0000",
    "{}",
]


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: ascii(text)[:30])
async def test_a_text_comes_back_as_it_was(harness: Harness, text: str) -> None:
    assert await comes_back(harness, text) == text


OTHERS: list[Value] = [
    None,
    True,
    False,
    [],
    {},
    [[]],
    [{}],
    {"a": {}},
    {"a": []},
    [None, True, 0, "", [], {}],
    {"a": None, "b": [1, "1", 1.5, True, None], "c": {"d": {"e": [{}]}}},
    {" ": 1},
    {"S": "text", "N": "1", "NULL": True, "M": {}},  # looks like DynamoDB's own notation
    {"a.b": 1, "größe": 2, "😀": 3, "a b": 4},
    [1] * 5000,
]


@pytest.mark.parametrize("value", OTHERS, ids=lambda value: repr(value)[:30])
async def test_any_other_value_comes_back_as_it_was(harness: Harness, value: Value) -> None:
    found = await comes_back(harness, value)

    assert found == value
    assert repr(found) == repr(value) or isinstance(value, dict)  # 1 and True are equal, but not the same


async def test_keys_may_be_any_text(harness: Harness) -> None:
    prefix = fresh()
    for name in ("ä😀\uffff", "with space", "quote'\"", "a/b#c:d", "\n", "%_\\", "{}", "--"):
        item: Item = {"pk": prefix + name, "sk": name, "owner": prefix + name, "rank": name, "n": 1}
        await put_all(harness.items, harness.tables.sorted, item)
        assert await harness.items.get(harness.tables.sorted, {"pk": prefix + name, "sk": name}) == item


async def test_a_key_is_not_normalised(harness: Harness) -> None:
    base = fresh()
    await put_all(harness.items, harness.tables.plain, {"id": base + "ä"})

    assert await harness.items.get(harness.tables.plain, {"id": base + "a\u0308"}) is None
    assert await harness.items.get(harness.tables.plain, {"id": base + "Ä"}) is None


async def test_an_attribute_may_have_the_name_of_an_internal_column(harness: Harness) -> None:
    """Whatever a backend keeps beside the item must not get into it, nor be hidden by it."""
    item: Item = {"pk": fresh(), "sk": "a", "item": 1, "expires_at": 2, "data": 3, "k0": 4, "version": 5}
    key = {"pk": str(item["pk"]), "sk": "a"}
    await put_all(harness.items, harness.tables.sorted, item)

    assert await harness.items.get(harness.tables.sorted, key) == item
