"""When values of JSON are equal, and which is greater, as filters see it.

Numbers and texts of a number are loosely equal (5 and "5"), two texts only when they are the same. Booleans
and null equal nothing but themselves. Numbers and texts of a number are ordered as numbers, other texts
character by character (so ISO dates are in order); anything else has no order.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

Spend: TypeAlias = Callable[[int], None]
"""Takes so many steps from a budget; raises when it is used up."""

LeavesEqual: TypeAlias = Callable[[Any, Any], bool]

TEXT_PER_STEP = 1024
"""Comparing or searching so many characters costs about as much as looking at another value."""

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?\Z", re.ASCII)
_NUMBER_CHARACTERS_MAX = 64


def number_of(value: Any) -> int | float | None:
    """The number that the value is, or that its text says."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    if isinstance(value, str) and len(value) <= _NUMBER_CHARACTERS_MAX and (found := _NUMBER.match(value)):
        number = float(value) if found[1] or found[2] else int(value)
        return number if abs(number) != float("inf") else None
    return None


def equal_to(operand: str | float | bool | None) -> Callable[[Any], bool]:
    """Is a value equal to this primitive? Decided once what that takes."""
    if operand is None or isinstance(operand, bool):
        return lambda value: value is operand
    number = number_of(operand)
    if isinstance(operand, str):
        if number is None:
            return lambda value: bool(value == operand)
        return lambda value: value == operand or (_is_number(value) and value == number)
    return lambda value: value is not None and number_of(value) == number


def loosely_equal(left: Any, right: Any) -> bool:
    """Of two values that are neither objects nor arrays."""
    if isinstance(left, str) and isinstance(right, str):
        return left == right
    if left is None or right is None or isinstance(left, bool) or isinstance(right, bool):
        return left is right
    number = number_of(left)
    return number is not None and number == number_of(right)


def deeply_equal(left: Any, right: Any, leaves_equal: LeavesEqual, spend: Spend) -> bool:
    """Costs a step per pair of values, and needs no stack however deep they are nested."""
    pairs = [(left, right)]
    while pairs:
        left, right = pairs.pop()
        spend(1)
        if left is right:
            continue
        if isinstance(left, dict):
            spend(len(left))
            if not isinstance(right, dict) or left.keys() != right.keys():
                return False
            pairs += [(value, right[name]) for name, value in left.items()]
        elif isinstance(left, list):
            spend(len(left))
            if not isinstance(right, list) or len(left) != len(right):
                return False
            pairs += zip(left, right, strict=True)
        elif isinstance(right, dict | list) or not leaves_equal(left, right):
            return False
        elif isinstance(left, str):
            spend(len(left) // TEXT_PER_STEP)
    return True


def order(left: Any, right: Any) -> int | None:
    """Negative, zero or positive; None where the two have no order."""
    left_number, right_number = number_of(left), number_of(right)
    if left_number is not None and right_number is not None:
        return (left_number > right_number) - (left_number < right_number)
    if isinstance(left, str) and isinstance(right, str):
        return (left > right) - (left < right)
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
