"""Transactions made ready before they join a group: checked, encoded, and sorted by how they can be written.

Whatever the server would refuse is caught here, so that a bad item fails alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from crossdock.engines.items.apply import Place, place_of
from crossdock.engines.items.conditions import Absent, Always
from crossdock.engines.items.limits import check_key, check_value
from crossdock.engines.items.port import (
    Add,
    ItemRejected,
    Put,
    Set,
    SetIfAbsent,
    Tally,
    Transaction,
    Update,
    Write,
)
from crossdock.engines.items.postgres.layout import Layout, Row
from crossdock.engines.items.tallies import divided, tallies_bytes


@dataclass(frozen=True, slots=True)
class Prepared:
    writes: tuple[Write, ...]
    places: tuple[Place, ...]
    """Of the writes."""
    inserts: tuple[Insert, ...] | None
    """Set when the writes are nothing but puts that can be tried as one INSERT."""
    tallies: tuple[Tally, ...]
    weight_bytes: int


@dataclass(frozen=True, slots=True)
class Insert:
    layout: Layout
    row: Row
    overwrites: bool


def prepare(transaction: Transaction, layouts: Mapping[str, Layout]) -> Prepared:
    """Raises ItemRejected."""
    writes, tallies = divided(transaction)
    inserts: list[Insert] = []
    places: list[Place] = []
    weight = tallies_bytes(tallies)
    plain = True
    for write in writes:
        layout = layouts[write.table.name]
        if isinstance(write, Put):
            row = layout.row(write.item)
            places.append((write.table.name, row[: len(layout.keys)]))  # type: ignore[arg-type]
            weight += len(row[layout.item_column])  # type: ignore[arg-type]
            overwrites = isinstance(write.condition, Always)
            if overwrites or _is_put_if_absent(write, layout):
                # An expired item that is written over must reach the expiry handlers, so it is looked at.
                plain = plain and not (overwrites and layout.table.stream)
                inserts.append(Insert(layout, row, overwrites))
                continue
        else:
            check_key(write.table, write.key)
            places.append(place_of(write))
            if isinstance(write, Update):
                _check_changes(write)
        plain = False
        weight += 200
    if len(set(places)) != len(places):
        raise ItemRejected("A transaction names an item twice.")
    return Prepared(writes, tuple(places), tuple(inserts) if plain else None, tallies, weight)


def _is_put_if_absent(write: Put, layout: Layout) -> bool:
    return isinstance(write.condition, Absent) and write.condition.attribute in layout.keys


def _check_changes(write: Update) -> None:
    attributes = [change.attribute for change in write.changes]
    if len(set(attributes)) != len(attributes):
        raise ItemRejected("An update changes an attribute twice.")
    for change in write.changes:
        if change.attribute in write.table.key_attributes:
            raise ItemRejected(f"{change.attribute} is a key attribute: it can't be updated.")
        if isinstance(change, (Set, SetIfAbsent)):
            check_value(change.value)
        elif isinstance(change, Add):
            check_value(change.amount)
