"""What a group of transactions does to the items it names. Pure.

The group is evaluated one transaction after the other over the items as they were read under lock, so that
writes of one key see each other; a transaction with a failed condition leaves no trace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from crossdock.engines.items.conditions import ALWAYS, attributes_of, holds
from crossdock.engines.items.lifetime import is_expired
from crossdock.engines.items.port import (
    Add,
    Change,
    Check,
    Delete,
    Failure,
    Item,
    ItemRejected,
    Outcome,
    Put,
    Refused,
    Remove,
    Set,
    SetIfAbsent,
    Table,
    Tally,
    Update,
    Write,
    Written,
)

Place: TypeAlias = tuple[str, tuple[str, ...]]
"""Where an item lives: its table's name and its key's values."""


def place_of(write: Write | Tally) -> Place:
    table = write.table
    if isinstance(write, Put):
        return table.name, tuple(str(write.item[name]) for name in table.key_attributes)
    return table.name, tuple([write.key[name] for name in table.key_attributes])


def changed(item: Item | None, key: Mapping[str, str], changes: Sequence[Change]) -> Item:
    """The item after an update; an absent one starts as its key."""
    result: Item = dict(key) if item is None else dict(item)
    for change in changes:
        match change:
            case Set(attribute, value):
                result[attribute] = value
            case SetIfAbsent(attribute, value):
                result.setdefault(attribute, value)
            case Add(attribute, amount):
                result[attribute] = _sum(result.get(attribute, 0), amount, attribute)
            case Remove(attribute):
                result.pop(attribute, None)
    return result


def _sum(stored: object, amount: int | float, attribute: str) -> int | float:
    if isinstance(stored, bool) or not isinstance(stored, (int, float)):
        raise ItemRejected(f"{attribute} is not a number: nothing can be added to it.")
    return stored + amount


def narrow(table: Table, item: Item | None) -> Item | None:
    """The item without its wide attributes."""
    if item is None or not table.wide:
        return item
    return {name: value for name, value in item.items() if name not in table.wide}


@dataclass(slots=True)
class State:
    """One place while a group is evaluated."""

    table: Table
    stored: Item | None = None
    """The row as locked, expired or not; None: no row."""
    current: Item | None = None
    """What the group has made of it so far, expired or not."""
    hidden: dict[str, int] = field(default_factory=dict)
    """Wide attributes that the row has and nobody needed to read: their sizes in bytes."""
    touched: bool = False
    replaced: bool = False
    """Written whole, so that wide attributes are all known."""
    wide_changed: set[str] = field(default_factory=set)
    relied_on: bool = False
    """Its absence decided something: nobody may create it before we commit."""

    def live(self, now_seconds: int) -> Item | None:
        """What a reader sees: an expired item is absent."""
        if self.current is None or is_expired(self.table, self.current, now_seconds):
            return None
        return self.current

    @property
    def hidden_bytes(self) -> int:
        return sum(len(name) + size for name, size in self.hidden.items())


def reads_wide(write: Write) -> bool:
    """Must the write know the values of wide attributes, beyond setting or removing them?"""
    wide = write.table.wide
    if not wide:
        return False
    if any(attribute in wide for attribute in attributes_of(write.condition)):
        return True
    return isinstance(write, Update) and any(
        isinstance(change, (SetIfAbsent, Add)) and change.attribute in wide for change in write.changes
    )


def evaluate(
    transaction: Sequence[Write],
    states: Mapping[Place, State],
    now_seconds: int,
    check: Callable[[Table, Item, int], object],
) -> Outcome:
    """Apply one transaction to `states`, or leave them as they are. `check` raises ItemRejected."""
    places = [states[place_of(write)] for write in transaction]
    before = [state.live(now_seconds) for state in places]
    failures = tuple(
        Failure(position, narrow(write.table, item))
        for position, (write, item) in enumerate(zip(transaction, before, strict=True))
        if not holds(write.condition, item)
    )
    if failures:
        return Refused(failures)
    after = [_after(write, item) for write, item in zip(transaction, before, strict=True)]
    for write, state, old, new in zip(transaction, places, before, after, strict=True):
        if isinstance(write, Update) and new is not None:
            check(write.table, new, 0 if old is None else state.hidden_bytes)
    for write, state, old, new in zip(transaction, places, before, after, strict=True):
        _settle(write, state, old, new)
    if len(transaction) > 1:
        return Written()
    return Written(_told(transaction[0], before[0], after[0]))


def _after(write: Write, item: Item | None) -> Item | None:
    match write:
        case Put(item=new):
            return new
        case Update(key=key, changes=changes):
            return changed(item, key, changes)
        case Delete():
            return None
        case Check():
            return item


def _told(write: Write, old: Item | None, new: Item | None) -> Item | None:
    """What a lone write tells its caller: an update the new state, a delete the old."""
    if isinstance(write, Update):
        return narrow(write.table, new)
    return narrow(write.table, old) if isinstance(write, Delete) else None


def _settle(write: Write, state: State, old: Item | None, new: Item | None) -> None:
    if isinstance(write, Check):
        state.relied_on = True
        return
    if isinstance(write, Delete) and write.condition is not ALWAYS:
        state.relied_on = True
    state.touched = True
    if isinstance(write, Update) and old is not None:
        rewritten = {change.attribute for change in write.changes} & set(state.table.wide)
        state.wide_changed |= rewritten
        for name in rewritten:
            state.hidden.pop(name, None)
    else:
        state.replaced = True
        state.hidden = {}
    state.current = new
