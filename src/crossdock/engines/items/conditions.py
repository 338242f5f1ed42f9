"""Conditions on one item, as values. Pure: each backend renders or evaluates the same tree.

A comparison with an attribute that is missing, or of another type, does not hold (so its `Not` does).
An absent item has no attributes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Operator: TypeAlias = Literal["=", "<>", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class Always:
    pass


@dataclass(frozen=True, slots=True)
class Exists:
    """The attribute is there, be it null. On a key attribute: the item exists."""

    attribute: str


@dataclass(frozen=True, slots=True)
class Absent:
    attribute: str


@dataclass(frozen=True, slots=True)
class Compare:
    attribute: str
    operator: Operator
    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class All:
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not:
    condition: Condition


Condition: TypeAlias = Always | Exists | Absent | Compare | All | AnyOf | Not

ALWAYS = Always()


def equals(attribute: str, value: str | int | float | bool | None) -> Compare:
    return Compare(attribute, "=", value)


def all_of(*conditions: Condition) -> All:
    return All(conditions)


def any_of(*conditions: Condition) -> AnyOf:
    return AnyOf(conditions)


def holds(condition: Condition, item: Mapping[str, object] | None) -> bool:
    """Does the condition hold for this item (None: absent)?"""
    attributes: Mapping[str, object] = {} if item is None else item
    match condition:
        case Always():
            return True
        case Exists(attribute):
            return attribute in attributes
        case Absent(attribute):
            return attribute not in attributes
        case Compare(attribute, operator, value):
            return attribute in attributes and _compares(attributes[attribute], operator, value)
        case All(conditions):
            return all(holds(each, item) for each in conditions)
        case AnyOf(conditions):
            return any(holds(each, item) for each in conditions)
        case Not(inner):
            return not holds(inner, item)


def attributes_of(condition: Condition) -> Iterator[str]:
    """What the condition looks at."""
    match condition:
        case Exists(attribute) | Absent(attribute) | Compare(attribute, _, _):
            yield attribute
        case All(conditions) | AnyOf(conditions):
            for each in conditions:
                yield from attributes_of(each)
        case Not(inner):
            yield from attributes_of(inner)


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    return type(value).__name__


def _compares(stored: object, operator: Operator, value: object) -> bool:
    if _kind(stored) != _kind(value):
        return False
    if operator == "=":
        return stored == value
    if operator == "<>":
        return stored != value
    if isinstance(stored, str) and isinstance(value, str):
        return _ordered(stored.encode(), operator, value.encode())
    if _kind(stored) == "number" and isinstance(stored, (int, float)) and isinstance(value, (int, float)):
        return _ordered(stored, operator, value)
    return False


def _ordered(left: bytes | float, operator: Operator, right: bytes | float) -> bool:
    if operator == "<":
        return left < right  # type: ignore[operator]
    if operator == "<=":
        return left <= right  # type: ignore[operator]
    if operator == ">":
        return left > right  # type: ignore[operator]
    return left >= right  # type: ignore[operator]
