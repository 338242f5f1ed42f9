"""What the items of this slice have in common. Private to the stores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from crossdock.engines.items.conditions import Absent, Compare, Condition, Exists, all_of, equals
from crossdock.engines.items.port import Change, Item, Remove, Set, Value
from crossdock.hooks.model import HeldSecret, Status


def is_live() -> Condition:
    return all_of(Exists("PK"), Compare("status", "<>", Status.DELETED.value))


def unchanged(attribute: str, value: Value) -> Condition:
    """`value` as it was read: a plain one, or None where the attribute was not there."""
    if value is None:
        return Absent(attribute)
    assert isinstance(value, (str, int, float)), f"{attribute} can't be compared"
    return equals(attribute, value)


def differences(old: Mapping[str, Value], new: Mapping[str, Value]) -> list[Change]:
    return [set_or_remove(name, value) for name, value in new.items() if old[name] != value]


def set_or_remove(attribute: str, value: Value) -> Change:
    return Remove(attribute) if value is None else Set(attribute, value)


def present(attributes: Mapping[str, Value]) -> Item:
    return {name: value for name, value in attributes.items() if value is not None}


def secret_attributes(secrets: tuple[HeldSecret, ...]) -> dict[str, Value]:
    previous: list[Value] = [
        {"sealed": held.sealed, "validUntil": held.valid_until_ms} for held in secrets[1:]
    ]
    return {"signingSecret": secrets[0].sealed if secrets else None, "previousSecrets": previous or None}


def secrets_of(item: Mapping[str, Value]) -> tuple[HeldSecret, ...]:
    current, previous = item.get("signingSecret"), item.get("previousSecrets")
    if current is None:
        return ()
    held = [HeldSecret(str(current))]
    for each in previous if isinstance(previous, list) else []:
        assert isinstance(each, dict)
        held.append(HeldSecret(str(each["sealed"]), integer_of(each, "validUntil")))
    return tuple(held)


def json_text(value: Any) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


def from_json_text(value: Value) -> Any:
    return None if value is None else msgspec.json.decode(str(value))


def integer_of(item: Mapping[str, Value], attribute: str, default: int = 0) -> int:
    value = item.get(attribute, default)
    assert isinstance(value, (int, float))
    return int(value)


def required_integer(item: Mapping[str, Value], attribute: str) -> int:
    """Of an attribute that every such item has. Raises KeyError."""
    value = item[attribute]
    assert isinstance(value, (int, float))
    return int(value)


def integer_or_none(item: Mapping[str, Value], attribute: str) -> int | None:
    return None if item.get(attribute) is None else required_integer(item, attribute)


def text_of(item: Mapping[str, Value], attribute: str) -> str | None:
    value = item.get(attribute)
    return None if value is None else str(value)
