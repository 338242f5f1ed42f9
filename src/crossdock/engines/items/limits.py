"""DynamoDB's limits, kept on every backend so that data can move between them.

An item is at most 400 KB as DynamoDB counts it; keys are 1 to 2048 (partition) or 1024 (sort) bytes, index
keys too; numbers have at most 38 digits and a magnitude in 1e-130 … 9.99e125, no NaN or infinity; text is
valid Unicode without U+0000, which PostgreSQL's JSON cannot hold.

The common item is checked by looking at its encoded bytes; only one that looks unusual is walked.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import partial

import msgspec

from crossdock.engines.items.port import Item, ItemRejected, Key, Table, Value

ITEM_BYTES_MAX = 400 * 1024
NESTING_MAX = 32
WRITES_MAX = 100

# DynamoDB counts at most three bytes for one of JSON (a digit of an array of digits), so a third of the
# limit in JSON is surely within it.
_SURELY_SMALL = ITEM_BYTES_MAX // 3
# What needs a careful look, in encoded JSON: U+0000; an attribute without a name; NaN, which is encoded as
# null; exponents of three digits; numbers of more than 38 digits. Texts may look like these; a value that is
# one is never missed. This way of looking costs 1 µs an item, one regular expression for all of it 6.
_NUL = b"\\u0000"
_EMPTY_NAME = b'"":'
_DIGITS_AS_ZERO = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER = b"0" * 39
_EXPONENT = re.compile(rb"e-?0{3}[,}\]]")

_encode = msgspec.json.Encoder().encode


def encode_item(table: Table, item: Item, hidden_bytes: int = 0) -> bytes:
    """The item as JSON, after every check. Raises ItemRejected.

    `hidden_bytes`: the size of attributes that it has besides.
    """
    check_keys(table, item)
    try:
        encoded = _encode(item)
    except (TypeError, OverflowError, UnicodeEncodeError, RecursionError) as error:
        check_value(item)
        raise ItemRejected(f"The item can't be stored: {error}.") from error
    if len(encoded) + hidden_bytes > _SURELY_SMALL:
        check_value(item)
        if stored_bytes(item) + hidden_bytes > ITEM_BYTES_MAX:
            raise ItemRejected("The item is larger than 400 KB.")
    elif (
        encoded.count(b"{") + encoded.count(b"[") > NESTING_MAX
        or may_hold_odd_text(encoded)
        or may_hold_odd_number(encoded)
    ):
        check_value(item)
    return encoded


def may_hold_odd_text(encoded: bytes) -> bool:
    """False: every text in this JSON (as msgspec encodes it) is one that can be stored, names too."""
    return _NUL in encoded or _EMPTY_NAME in encoded


def may_hold_odd_number(encoded: bytes) -> bool:
    """False: every number in this JSON (as msgspec encodes it) is one that can be stored."""
    if b"null" in encoded:
        return True
    shape = encoded.translate(_DIGITS_AS_ZERO)
    if _LONG_NUMBER in shape:
        return True
    return (b"e000" in shape or b"e-000" in shape) and _EXPONENT.search(shape) is not None


def check_key(table: Table, key: Key) -> None:
    """Raises ItemRejected unless `key` is exactly this table's key, within its limits."""
    if len(key) != len(table.key_attributes) or not all(map(key.__contains__, table.key_attributes)):
        raise ItemRejected(f"The key of {table.name} is {', '.join(table.key_attributes)}.")
    check_keys(table, key)


def check_keys(table: Table, item: Mapping[str, object]) -> None:
    for name, bytes_max, is_required in table.limited_keys:
        value = item.get(name)
        if value is None and not is_required and name not in item:
            continue
        # The common key at once; whatever is unusual is looked at piece by piece.
        if type(value) is str and value.isascii() and 0 < len(value) <= bytes_max and "\0" not in value:
            continue
        _check_key_attribute(value, name, bytes_max)


def _check_key_attribute(value: object, name: str, bytes_max: int) -> None:
    if not isinstance(value, str) or not value:
        raise ItemRejected(f"{name} must be a non-empty string.")
    # ASCII has a byte a character; anything else is encoded, which finds lone surrogates too.
    if text_bytes(value) > bytes_max:
        raise ItemRejected(f"{name} is longer than {bytes_max} bytes.")
    if "\0" in value:
        raise ItemRejected(f"{name} contains U+0000.")


def text_bytes(text: str) -> int:
    """As UTF-8. Raises ItemRejected for what has no such form."""
    return len(text) if text.isascii() else len(_utf8(text))


def check_text(text: str) -> None:
    """Raises ItemRejected."""
    if "\0" in text:
        raise ItemRejected("A text contains U+0000.")
    if not text.isascii():
        _utf8(text)


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ItemRejected("A text is not valid Unicode (a lone surrogate).") from error


def check_value(value: Value, depth: int = 1) -> None:
    """The careful walk, of an item or a value in one. Raises ItemRejected."""
    if isinstance(value, (list, dict)) and depth > NESTING_MAX:
        raise ItemRejected(f"The item is nested deeper than {NESTING_MAX} levels.")
    if isinstance(value, list):
        for element in value:
            check_value(element, depth + 1)
    elif isinstance(value, dict):
        for name, element in value.items():
            if not isinstance(name, str) or not name:
                raise ItemRejected("Attribute names must be texts, and not empty.")
            _check_scalar(name)
            check_value(element, depth + 1)
    else:
        _check_scalar(value)


def _check_scalar(value: object) -> None:
    if isinstance(value, str):
        check_text(value)
    elif isinstance(value, int):  # bool is one, and passes
        if len(str(abs(value)).rstrip("0")) > 38 or abs(value) >= 10**126:
            raise ItemRejected("A number has more than 38 digits.")
    elif isinstance(value, float):
        _check_float(value)
    elif value is not None:
        raise ItemRejected(f"A {type(value).__name__} can't be stored.")


def is_storable_number(value: int | float) -> bool:
    try:
        _check_scalar(value)
    except ItemRejected:
        return False
    return True


def _check_float(value: float) -> None:
    if not math.isfinite(value):
        raise ItemRejected("NaN and infinity can't be stored.")
    if value and not 1e-130 <= abs(value) <= 9.99e125:
        raise ItemRejected("A number's magnitude is outside 1e-130 to 9.99e125.")


def stored_bytes(value: Value) -> int:
    """The size as DynamoDB counts it, rounded up where its rule is vague (numbers)."""
    if value is None or isinstance(value, bool):
        return 1
    if isinstance(value, str):
        return len(_utf8(value))
    if isinstance(value, (int, float)):
        return 2 + (len(repr(value)) + 1) // 2
    if isinstance(value, list):
        return 3 + sum(1 + stored_bytes(element) for element in value)
    return 3 + sum(1 + len(_utf8(name)) + stored_bytes(element) for name, element in value.items())


decode_item = partial(msgspec.json.decode, type=dict)
"""JSON back to an item. Whole numbers come back as int, others as float."""


def check_transaction_size(count: int) -> None:
    if not 1 <= count <= WRITES_MAX:
        raise ItemRejected(f"A transaction has 1 to {WRITES_MAX} writes, not {count}.")
