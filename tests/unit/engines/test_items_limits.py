from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crossdock.engines.items.limits import (
    ITEM_BYTES_MAX,
    check_key,
    check_transaction_size,
    check_value,
    decode_item,
    encode_item,
    stored_bytes,
)
from crossdock.engines.items.port import Index, Item, ItemRejected, Table, Value

TABLE = Table("things", "id", "at", indexes=(Index("by_owner", "owner", "since"),))
KEY: Item = {"id": "a", "at": "b"}


def nested(levels: int, innermost: Value = 1) -> Value:
    value = innermost
    for level in range(levels):
        value = [value] if level % 2 else {"n": value}
    return value


GOOD: dict[str, Value] = {
    "nothing": None,
    "true": True,
    "empty text": "",
    "text": "text",
    "text outside the basic plane": "\U0001f600",
    "text that looks like an escape": "\\u0000",
    "text that looks like a number": "9" * 100,
    "text that looks like an exponent": "1e999",
    "text full of brackets": "[{" * 100,
    "largest 64 bit": 2**63 - 1,
    "38 digits": 10**38 - 1,
    "39 digits with a zero at the end": 10**39 - 10,
    "one and 125 zeros": 10**125,
    "largest float": 9.99e125,
    "smallest float": 1e-130,
    "zero": 0.0,
    "minus zero": -0.0,
    "three digit exponent": 1.5e100,
    "empty list": [],
    "empty map": {},
    "31 levels": nested(31),
    "many lists side by side": [[] for _ in range(1000)],
    "nulls": [None, {"a": None}],
}

BAD: dict[str, Value] = {
    "U+0000": "\0",
    "U+0000 inside": "a\0b",
    "U+0000 deep inside": {"a": ["\0"]},
    "U+0000 in a name": {"a\0": 1},
    "lone surrogate": "\ud800",
    "lone surrogate deep inside": [{"a": "\udfff"}],
    "lone surrogate in a name": {"\ud800": 1},
    "not a number": math.nan,
    "infinity": math.inf,
    "minus infinity": [-math.inf],
    "39 digits": 10**38 + 1,
    "minus 39 digits": -(10**38) - 1,
    "126 zeros": 10**126,
    "too large a float": 1e126,
    "too small a float": 1e-131,
    "smallest there is": 5e-324,
    "33 levels": nested(33),
    "5000 levels": nested(5000),
    "a text of 400 KB": "x" * ITEM_BYTES_MAX,
    "a list that counts 400 KB": [1] * (ITEM_BYTES_MAX // 3),
}


@pytest.mark.parametrize("what", GOOD)
def test_a_value_within_the_limits_is_stored_and_comes_back(what: str) -> None:
    item = {**KEY, "value": GOOD[what]}
    assert decode_item(encode_item(TABLE, item)) == item


@pytest.mark.parametrize("what", BAD)
def test_a_value_outside_the_limits_is_rejected(what: str) -> None:
    with pytest.raises(ItemRejected):
        encode_item(TABLE, {**KEY, "value": BAD[what]})


def test_a_list_without_end_is_rejected() -> None:
    endless: list[Value] = []
    endless.append(endless)
    with pytest.raises(ItemRejected):
        encode_item(TABLE, {**KEY, "value": endless})


@pytest.mark.parametrize("over", [0, 1])
def test_an_item_may_have_exactly_400_kb(over: int) -> None:
    item: Item = {**KEY, "value": ""}
    item["value"] = "x" * (ITEM_BYTES_MAX - stored_bytes(item) + over)
    if over:
        with pytest.raises(ItemRejected, match="400 KB"):
            encode_item(TABLE, item)
    else:
        assert stored_bytes(item) == ITEM_BYTES_MAX
        encode_item(TABLE, item)


# --- keys ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"id": "x" * 2048},
        {"at": "x" * 1024},
        {"id": "\u00e9" * 1024},
        {"at": "\U0001f600" * 256},
        {"owner": "o"},
        {"owner": "x" * 2048, "since": "x" * 1024},
        {"since": "s"},
    ],
)
def test_keys_within_their_limits_are_taken(change: Item) -> None:
    encode_item(TABLE, {**KEY, **change})


@pytest.mark.parametrize(
    "change",
    [
        {"id": ""},
        {"at": ""},
        {"id": None},
        {"id": 1},
        {"id": ["a"]},
        {"id": "x" * 2049},
        {"at": "x" * 1025},
        {"id": "\u00e9" * 1025},
        {"at": "\U0001f600" * 257},
        {"id": "a\0"},
        {"at": "\ud800"},
        {"owner": ""},
        {"owner": None},
        {"owner": "x" * 2049},
        {"owner": "o", "since": ""},
        {"since": 5},
        {"since": "x" * 1025},
    ],
)
def test_keys_outside_their_limits_are_rejected(change: Item) -> None:
    with pytest.raises(ItemRejected):
        encode_item(TABLE, {**KEY, **change})


@pytest.mark.parametrize("missing", ["id", "at"])
def test_an_item_without_its_key_is_rejected_naming_the_attribute(missing: str) -> None:
    with pytest.raises(ItemRejected, match=missing):
        encode_item(TABLE, {name: value for name, value in KEY.items() if name != missing})


@pytest.mark.parametrize(
    "key",
    [
        {},
        {"id": "a"},
        {"at": "b"},
        {"id": "a", "at": "b", "more": "c"},
        {"id": "", "at": "b"},
        {"id": "a", "at": "x" * 1025},
        {"id": "a\0", "at": "b"},
        {"id": "\ud800", "at": "b"},
        {"id": "a", "at": "\udfff"},
    ],
)
def test_what_is_not_a_key_of_the_table_is_rejected(key: dict[str, str]) -> None:
    with pytest.raises(ItemRejected):
        check_key(TABLE, key)


def test_a_key_of_the_table_is_taken() -> None:
    check_key(TABLE, {"id": "a", "at": "b"})
    check_key(Table("plain", "id"), {"id": "a"})


@pytest.mark.parametrize("count", [1, 100])
def test_a_transaction_may_have_1_to_100_writes(count: int) -> None:
    check_transaction_size(count)


@pytest.mark.parametrize("count", [0, 101])
def test_a_transaction_of_another_size_is_rejected(count: int) -> None:
    with pytest.raises(ItemRejected, match=str(count)):
        check_transaction_size(count)


# --- the quick look against the careful one --------------------------------------------------------

NUMBERS = st.one_of(
    st.integers(),
    st.integers(-(10**40), 10**40),
    st.floats(),
    st.builds(lambda digits, zeros: digits * 10**zeros, st.integers(-(10**39), 10**39), st.integers(0, 130)),
    st.builds(
        lambda mantissa, power: float(f"{mantissa}e{power}"), st.integers(-9999, 9999), st.integers(-140, 140)
    ),
    st.sampled_from([9.99e125, 9.991e125, 1e-130, 9.99e-131, 10**125, 10**126, 10**38, 10**38 - 1]),
)
TEXTS = st.one_of(
    st.text(max_size=20),
    st.text(st.characters(codec=None), max_size=5),  # lone surrogates too
    st.sampled_from(["\0", "\\u0000", "null", "1e400", "9" * 50, "[" * 40, '"', "\x7f", "\u2028"]),
)
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=5),
        st.dictionaries(TEXTS, inner, max_size=5),
        st.builds(nested, st.integers(28, 36), inner),
    ),
    max_leaves=12,
)


def passes_carefully(item: Item) -> bool:
    try:
        check_value(item)
    except ItemRejected:
        return False
    return stored_bytes(item) <= ITEM_BYTES_MAX


def passes_quickly(item: Item) -> bool:
    try:
        encode_item(TABLE, item)
    except ItemRejected:
        return False
    return True


@given(VALUES)
@example(10**30)
@example(2**64)
@example(nested(31))
@example(nested(32))
@example(1.5e-130)
def test_the_quick_look_takes_exactly_what_the_careful_walk_takes(value: Value) -> None:
    item: Item = {**KEY, "value": value}
    assert passes_quickly(item) == passes_carefully(item)


@settings(deadline=None, max_examples=40)
@given(VALUES, st.integers(100_000, 500_000))
def test_the_quick_look_agrees_about_large_items_too(value: Value, json_bytes: int) -> None:
    if passes_carefully({"value": value}):
        copies = json_bytes // len(msgspec.json.encode(value))
        item: Item = {**KEY, "value": [value] * copies}
        assert passes_quickly(item) == passes_carefully(item)


@given(VALUES)
def test_an_item_never_counts_more_than_three_times_its_json(value: Value) -> None:
    item: Item = {**KEY, "value": value}
    if passes_carefully(item):
        assert stored_bytes(item) <= 3 * len(encode_item(TABLE, item))


@given(VALUES)
def test_whatever_is_taken_comes_back_equal(value: Value) -> None:
    item: Item = {**KEY, "value": value}
    if passes_quickly(item):
        assert decode_item(encode_item(TABLE, item)) == item
