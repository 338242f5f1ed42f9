"""The contract in its plainest form: a dictionary, one write after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crossdock.engines.items.conditions import holds
from crossdock.engines.items.port import (
    Add,
    Change,
    Check,
    Delete,
    Failure,
    Item,
    Key,
    Outcome,
    Put,
    Refused,
    Remove,
    Set,
    SetIfAbsent,
    Table,
    Tally,
    Transaction,
    Update,
    Value,
    Write,
    Written,
)

Place = tuple[str, tuple[str, ...]]


class Model:
    def __init__(self, now_seconds: int) -> None:
        self._now_seconds = now_seconds
        self._stored: dict[Place, Item] = {}

    def get(self, table: Table, key: Key | Item) -> Item | None:
        item = self._stored.get(_place(table, key))
        if item is None or self._is_expired(table, item):
            return None
        return dict(item)

    def transact(self, transaction: Transaction) -> Outcome:
        outcome = self._write_all([each for each in transaction if not isinstance(each, Tally)])
        for each in transaction:
            if isinstance(each, Tally) and isinstance(outcome, Written):
                self._count(each)
        return outcome

    def _write_all(self, writes: Sequence[Write]) -> Outcome:
        before = [self.get(write.table, _key(write)) for write in writes]
        failures = tuple(
            Failure(position, _narrow(write.table, item))
            for position, (write, item) in enumerate(zip(writes, before, strict=True))
            if not holds(write.condition, item)
        )
        if failures:
            return Refused(failures)
        for write, item in zip(writes, before, strict=True):
            self._write(write, item)
        if len(writes) != 1:
            return Written()
        if isinstance(writes[0], Update):
            # What it has written, be it in the past of its own TTL.
            return Written(_narrow(writes[0].table, self._stored[_place(writes[0].table, writes[0].key)]))
        return Written(_narrow(writes[0].table, before[0]) if isinstance(writes[0], Delete) else None)

    def query(self, table: Table, partition: str, descending: bool = False) -> list[Item]:
        return self._found(table, table.partition, partition, table.sort, descending)

    def index(self, table: Table, name: str, partition: str) -> list[Item]:
        index = table.index(name)
        return self._found(table, index.partition, partition, index.sort)

    def _found(
        self, table: Table, attribute: str, partition: str, sort: str | None, descending: bool = False
    ) -> list[Item]:
        found = [
            dict(item)
            for (name, _), item in self._stored.items()
            if name == table.name
            and item.get(attribute) == partition
            and (sort is None or sort in item)
            and not self._is_expired(table, item)
        ]
        if sort is not None:
            found.sort(key=lambda item: str(item[sort]).encode(), reverse=descending)
        return found

    def _write(self, write: Write, item: Item | None) -> None:
        place = _place(write.table, _key(write))
        match write:
            case Put():
                self._stored[place] = dict(write.item)
            case Update():
                self._stored[place] = _changed({**write.key} if item is None else item, write.changes)
            case Delete():
                self._stored.pop(place, None)
            case Check():
                pass

    def _count(self, tally: Tally) -> None:
        item = self.get(tally.table, tally.key)
        if item is None or any(item.get(name) != text for name, text in tally.when.items()):
            return
        for name, amount in tally.add.items():
            number = item.get(name, 0)
            if isinstance(number, (int, float)):
                item[name] = number + amount
        for name, text in tally.latest.items():
            stored = item.get(name, "")
            if isinstance(stored, str):
                item[name] = max(stored, text)
        self._stored[_place(tally.table, tally.key)] = item

    def _is_expired(self, table: Table, item: Item) -> bool:
        expires_at = None if table.ttl is None else item.get(table.ttl)
        return isinstance(expires_at, int) and expires_at <= self._now_seconds


def _changed(item: Item, changes: Sequence[Change]) -> Item:
    result = dict(item)
    for change in changes:
        match change:
            case Set(attribute, value):
                result[attribute] = value
            case SetIfAbsent(attribute, value):
                result.setdefault(attribute, value)
            case Add(attribute, amount):
                number = result.get(attribute, 0)
                assert isinstance(number, (int, float))
                result[attribute] = number + amount
            case Remove(attribute):
                result.pop(attribute, None)
    return result


def _key(write: Write) -> Key | Item:
    return write.item if isinstance(write, Put) else write.key


def _place(table: Table, key: Mapping[str, Value] | Key) -> Place:
    return table.name, tuple(str(key[name]) for name in table.key_attributes)


def _narrow(table: Table, item: Item | None) -> Item | None:
    if item is None:
        return None
    return {name: value for name, value in item.items() if name not in table.wide}
