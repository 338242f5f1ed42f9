"""Conditions, updates and key conditions in DynamoDB's expression language. Pure.

Three things are done so that a condition holds there exactly when `conditions.holds` says so:

- DynamoDB's `<>` holds for a missing attribute and for another type, ours does not: `<>` asks for the type
  too.
- DynamoDB refuses to order booleans and nulls; ours is a comparison that does not hold.
- An expired item that was not deleted yet counts as absent: a guard is written into every condition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from crossdock.engines.items.conditions import (
    Absent,
    All,
    Always,
    AnyOf,
    Compare,
    Condition,
    Exists,
    Not,
    holds,
)
from crossdock.engines.items.dynamodb.marshal import Attribute, marshal_value
from crossdock.engines.items.limits import check_value
from crossdock.engines.items.port import (
    Add,
    Change,
    Query,
    Remove,
    Set,
    SetIfAbsent,
    SortBetween,
    SortCondition,
    SortEquals,
    Table,
    Value,
)


@dataclass(slots=True)
class Placeholders:
    """The `#n` and `:v` of one request. Every name and value goes through one: nothing needs quoting."""

    names: dict[str, str] = field(default_factory=dict)
    values: dict[str, Attribute] = field(default_factory=dict)
    _by_attribute: dict[str, str] = field(default_factory=dict)

    def name(self, attribute: str) -> str:
        known = self._by_attribute.get(attribute)
        if known is None:
            known = self._by_attribute[attribute] = f"#n{len(self.names)}"
            self.names[known] = attribute
        return known

    def value(self, value: Value) -> str:
        """Raises ItemRejected for what DynamoDB would refuse."""
        check_value(value)
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = marshal_value(value)
        return placeholder

    def into(self, request: dict[str, Any]) -> None:
        # DynamoDB refuses empty maps.
        if self.names:
            request["ExpressionAttributeNames"] = self.names
        if self.values:
            request["ExpressionAttributeValues"] = self.values


# --- conditions ------------------------------------------------------------------------------------


def reduced(condition: Condition) -> Condition | bool:
    """The condition without the parts that come to the same for every item.

    DynamoDB has no constants in its language, and refuses unused placeholders and needless parentheses.
    """
    match condition:
        case Always():
            return True
        case Compare(_, operator, value) if operator not in ("=", "<>"):
            return False if value is None or isinstance(value, bool) else condition
        case Not(inner):
            rest = reduced(inner)
            return (not rest) if isinstance(rest, bool) else Not(rest)
        case All(conditions):
            return _reduced_join(conditions, All, absorbing=False)
        case AnyOf(conditions):
            return _reduced_join(conditions, AnyOf, absorbing=True)
    return condition


def _reduced_join(
    conditions: Sequence[Condition], join: type[All] | type[AnyOf], *, absorbing: bool
) -> Condition | bool:
    parts = [reduced(each) for each in conditions]
    if any(part is absorbing for part in parts):
        return absorbing
    kept = tuple(part for part in parts if not isinstance(part, bool))
    if not kept:
        return not absorbing
    return join(kept) if len(kept) > 1 else kept[0]


def render(condition: Condition, placeholders: Placeholders) -> str:
    """A reduced condition as text."""
    match condition:
        case Exists(attribute):
            return f"attribute_exists({placeholders.name(attribute)})"
        case Absent(attribute):
            return f"attribute_not_exists({placeholders.name(attribute)})"
        case Compare(attribute, operator, value):
            name = placeholders.name(attribute)
            comparison = f"{name} {operator} {placeholders.value(value)}"
            if operator != "<>":
                return comparison
            (kind,) = marshal_value(value)
            return f"(attribute_type({name}, {placeholders.value(kind)}) AND {comparison})"
        case Not(inner):
            return f"(NOT {render(inner, placeholders)})"
        case All(conditions):
            return f"({' AND '.join(render(each, placeholders) for each in conditions)})"
        case AnyOf(conditions):
            return f"({' OR '.join(render(each, placeholders) for each in conditions)})"
        case Always():
            raise ValueError("A reduced condition holds no Always.")


def holds_always(table: Table, placeholders: Placeholders) -> str:
    name = placeholders.name(table.partition)
    return f"(attribute_exists({name}) OR attribute_not_exists({name}))"


def is_live(table: Table, now_seconds: int, placeholders: Placeholders) -> str:
    return f"(NOT {is_expired(table, now_seconds, placeholders)})"


def is_expired(table: Table, now_seconds: int, placeholders: Placeholders) -> str:
    """Does not hold where the TTL attribute is missing or not a number: such an item lives for ever."""
    if table.ttl is None:
        raise ValueError(f"{table.name} has no TTL attribute.")
    # "Before the next second" is "in this second or before", also for an attribute with a fraction.
    return f"{placeholders.name(table.ttl)} < {placeholders.value(now_seconds + 1)}"


def guarded(
    condition: Condition,
    table: Table,
    now_seconds: int,
    placeholders: Placeholders,
    *,
    live_only: bool = False,
) -> str | None:
    """The condition with an expired item counted as absent; None if it holds for every item.

    `live_only` is for an update: it must not build on what an expired item left behind, so that it does not
    hold for one even where the condition holds for an absent item.
    """
    rest = reduced(condition)
    if rest is False:
        return f"(NOT {holds_always(table, placeholders)})"
    rendered = None if rest is True else render(rest, placeholders)
    if table.ttl is None:
        return rendered
    if holds(condition, None) and not live_only:
        return rendered and f"({is_expired(table, now_seconds, placeholders)} OR {rendered})"
    live = is_live(table, now_seconds, placeholders)
    return live if rendered is None else f"({live} AND {rendered})"


# --- updates ---------------------------------------------------------------------------------------


def render_update(changes: Sequence[Change], placeholders: Placeholders) -> str:
    clauses: dict[str, list[str]] = {}
    for change in changes:
        name = placeholders.name(change.attribute)
        match change:
            case Set(_, value):
                clauses.setdefault("SET", []).append(f"{name} = {placeholders.value(value)}")
            case SetIfAbsent(_, value):
                text = f"{name} = if_not_exists({name}, {placeholders.value(value)})"
                clauses.setdefault("SET", []).append(text)
            case Add(_, amount):
                clauses.setdefault("ADD", []).append(f"{name} {placeholders.value(amount)}")
            case Remove():
                clauses.setdefault("REMOVE", []).append(name)
    return " ".join(f"{word} {', '.join(parts)}" for word, parts in clauses.items())


# --- queries ---------------------------------------------------------------------------------------


def render_key_condition(query: Query, placeholders: Placeholders) -> str | None:
    """None if no key can meet it, which DynamoDB would call an error."""
    source = query.table if query.index is None else query.table.index(query.index)
    if not query.partition:
        return None
    partition = f"{placeholders.name(source.partition)} = {placeholders.value(query.partition)}"
    if query.sort is None:
        return partition
    if source.sort is None:
        raise ValueError(f"{query.table.name} {query.index or ''} has no sort key to ask for.")
    rendered = _sort_condition(query.sort, source.sort, placeholders)
    if rendered is None:
        return None
    return f"{partition} AND {rendered}" if rendered else partition


def _sort_condition(condition: SortCondition, attribute: str, placeholders: Placeholders) -> str | None:
    """Empty if every key meets it, None if none does. No key is empty, and DynamoDB takes no empty one."""
    if isinstance(condition, SortEquals):
        if not condition.value:
            return None
        return f"{placeholders.name(attribute)} = {placeholders.value(condition.value)}"
    if isinstance(condition, SortBetween):
        return _between(condition, attribute, placeholders)
    if not condition.prefix:
        return ""
    return f"begins_with({placeholders.name(attribute)}, {placeholders.value(condition.prefix)})"


def _between(condition: SortBetween, attribute: str, placeholders: Placeholders) -> str | None:
    if condition.low.encode() > condition.high.encode() or not condition.high:
        return None
    name = placeholders.name(attribute)
    if not condition.low:
        return f"{name} <= {placeholders.value(condition.high)}"
    return f"{name} BETWEEN {placeholders.value(condition.low)} AND {placeholders.value(condition.high)}"
