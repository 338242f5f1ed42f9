"""Items to DynamoDB's typed JSON and back. Pure.

A number comes back as an int when DynamoDB names it by up to 38 digits without a point, otherwise as a float:
it forgets whether 1 was written as 1 or as 1.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from crossdock.engines.items.port import Item, Value

Attribute: TypeAlias = dict[str, Any]
"""One value with its type: `{"S": "text"}`, `{"N": "1.5"}`, `{"M": {"a": {"BOOL": true}}}`."""

Attributes: TypeAlias = dict[str, Attribute]

INT_DIGITS_MAX = 38


def marshal_value(value: Value) -> Attribute:
    # Strings and numbers are nearly all there is. bool comes before int, which it is a subclass of.
    if isinstance(value, str):
        return {"S": value}
    if value is None:
        return {"NULL": True}
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, int):
        return {"N": repr(value)}
    if isinstance(value, float):
        return {"N": _literal(value)}
    if isinstance(value, list):
        return {"L": [marshal_value(element) for element in value]}
    return {"M": {name: marshal_value(element) for name, element in value.items()}}


def marshal(item: Mapping[str, Value]) -> Attributes:
    return {name: marshal_value(value) for name, value in item.items()}


def marshal_key(key: Mapping[str, str]) -> Attributes:
    return {name: {"S": value} for name, value in key.items()}


def unmarshal_value(attribute: Attribute) -> Value:
    ((kind, value),) = attribute.items()
    if kind == "S":
        return value  # type: ignore[no-any-return]
    if kind == "N":
        return number(value)
    if kind == "M":
        return {name: unmarshal_value(element) for name, element in value.items()}
    if kind == "L":
        return [unmarshal_value(element) for element in value]
    if kind == "BOOL":
        return value  # type: ignore[no-any-return]
    if kind == "NULL":
        return None
    raise ValueError(f"An attribute of type {kind}, which Crossdock does not write.")


def unmarshal(attributes: Attributes) -> Item:
    return {name: unmarshal_value(attribute) for name, attribute in attributes.items()}


def _literal(value: float) -> str:
    """A whole float as the int that it will be read as: an update tells numbers as they were sent."""
    return repr(int(value)) if value.is_integer() and abs(value) < 1e38 else repr(value)


def number(literal: str) -> int | float:
    digits = literal[1:] if literal.startswith("-") else literal
    if len(digits) <= INT_DIGITS_MAX and digits.isdecimal():
        return int(literal)
    return float(literal)
