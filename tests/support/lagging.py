"""Items whose indexes answer as of a moment ago, as DynamoDB's may at any time.

The wrapper notes what stood under a key before each write through it. An index query reads the whole index
partition, takes out the items written since that moment, and puts in their place what stood there then. Only
writes through the same wrapper lag; the order of equal sort values is the wrapper's own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import msgspec
from tests.support.passing_on import PassingOn

from crossdock.engines.items.port import (
    Check,
    Cursor,
    Index,
    Item,
    Items,
    JsonPage,
    Key,
    Outcome,
    Page,
    Put,
    Query,
    SortBetween,
    SortCondition,
    SortEquals,
    SortPrefix,
    Table,
    Tally,
    Transaction,
    Write,
)
from crossdock.kit.clock import Clock
from crossdock.kit.errors import CrossdockError

_PAGE_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class _Earlier:
    """What stood under a key until a write that began at this time."""

    until: float
    table: Table
    item: Item | None


_Place = tuple[str, tuple[str, ...]]


class LaggingIndexes(PassingOn):
    """`seconds` is a callable for time that passes; `clock` decides what has expired."""

    def __init__(self, items: Items, lag_seconds: float, seconds: Callable[[], float], clock: Clock) -> None:
        super().__init__(items)
        self._lag_seconds = lag_seconds
        self._seconds = seconds
        self._clock = clock
        self._history: dict[_Place, list[_Earlier]] = {}

    # --- reads ---

    async def query(self, query: Query) -> Page:
        if query.index is None:
            return await self._items.query(query)
        found = await self._as_it_was(query, query.table.index(query.index))
        cursor = None
        if len(found) > query.limit:
            found = found[: query.limit]
            cursor = _cursor(found[-1], query.table, query.table.index(query.index))
        return Page(found, cursor)

    async def query_json(self, query: Query) -> JsonPage:
        if query.index is None:
            return await self._items.query_json(query)
        page = await self.query(query)
        return JsonPage([msgspec.json.encode(item) for item in page.items], page.cursor)

    async def _as_it_was(self, query: Query, index: Index) -> list[Item]:
        """What follows `query.after` in the index as of `lag_seconds` ago, in its order."""
        # Told before it is read: a write that begins in between is then seen too early, never twice.
        earlier = self._standing_then()
        now_seconds = self._clock.now_ms() // 1000
        then = [item async for item in self._whole(query) if _place(query.table, item) not in earlier]
        then += [
            _projected(item, query.table, index)
            for item in earlier.values()
            if item is not None
            and _is_in(item, query, index)
            and not _is_expired(item, query.table, now_seconds)
        ]
        order = [name for name in (index.sort, *query.table.key_attributes) if name is not None]
        then.sort(key=lambda item: _position(item, order), reverse=query.descending)
        if query.after is None:
            return then
        after = _position(query.after, order)
        if query.descending:
            return [item for item in then if _position(item, order) < after]
        return [item for item in then if _position(item, order) > after]

    async def _whole(self, query: Query) -> AsyncIterator[Item]:
        page = await self._items.query(replace(query, limit=_PAGE_LIMIT, after=None))
        while True:
            for item in page.items:
                yield item
            if page.cursor is None:
                return
            page = await self._items.query(replace(query, limit=_PAGE_LIMIT, after=page.cursor))

    def _standing_then(self) -> dict[_Place, Item | None]:
        """The items that have been written since, as they stood; what is older is forgotten."""
        moment = self._seconds() - self._lag_seconds
        standing: dict[_Place, Item | None] = {}
        for place, history in list(self._history.items()):
            recent = [earlier for earlier in history if earlier.until > moment]
            if recent:
                self._history[place] = recent
                standing[place] = recent[0].item
            else:
                del self._history[place]
        return standing

    # --- writes ---

    async def single(self, write: Write) -> Outcome:
        await self._remember([write])
        return await super().single(write)

    async def transact(self, writes: Transaction) -> Outcome:
        await self._remember(writes)
        return await self._items.transact(writes)

    async def transact_many(self, transactions: Sequence[Transaction]) -> list[Outcome | CrossdockError]:
        await self._remember([write for writes in transactions for write in writes])
        return await self._items.transact_many(transactions)

    async def write_many(self, table: Table, items: Sequence[Item]) -> None:
        await self._remember([Put(table, item) for item in items])
        await self._items.write_many(table, items)

    async def _remember(self, writes: Iterable[Write | Tally]) -> None:
        by_table: dict[str, tuple[Table, dict[_Place, Key]]] = {}
        for write in writes:
            key = write.item if isinstance(write, Put) else write.key
            table = write.table
            if isinstance(write, Check) or not table.indexes or not _is_key(table, key):
                continue  # what no index holds, or what will be rejected anyway
            by_table.setdefault(table.name, (table, {}))[1][_place(table, key)] = table.key_of(key)
        for table, keys in by_table.values():
            standing = await self._items.get_many(table, list(keys.values()))
            # The write begins after this moment, so that nothing newer is ever told for what stood before.
            moment = self._seconds()
            for place, item in zip(keys, standing, strict=True):
                self._history.setdefault(place, []).append(_Earlier(moment, table, item))


def _place(table: Table, key: Item | Key) -> _Place:
    return table.name, tuple(str(key[name]) for name in table.key_attributes)


def _is_key(table: Table, key: Item | Key) -> bool:
    """Is it one that the backend would take?"""
    limits = dict(zip(table.key_attributes, (2048, 1024), strict=False))
    for name, bytes_max in limits.items():
        value = key.get(name)
        if not isinstance(value, str) or not 0 < len(value.encode(errors="replace")) <= bytes_max:
            return False
        if "\0" in value or value != value.encode(errors="replace").decode():
            return False
    return True


def _is_in(item: Item, query: Query, index: Index) -> bool:
    if item.get(index.partition) != query.partition:
        return False
    if index.sort is None:
        return True
    sort = item.get(index.sort)
    return isinstance(sort, str) and _selects(query.sort, sort)


def _selects(condition: SortCondition | None, sort: str) -> bool:
    match condition:
        case None:
            return True
        case SortEquals(value):
            return sort == value
        case SortPrefix(prefix):
            return sort.startswith(prefix)
        case SortBetween(low, high):
            return low.encode() <= sort.encode() <= high.encode()


def _is_expired(item: Item, table: Table, now_seconds: int) -> bool:
    expires_at = None if table.ttl is None else item.get(table.ttl)
    return (
        isinstance(expires_at, (int, float))
        and not isinstance(expires_at, bool)
        and expires_at <= now_seconds
    )


def _projected(item: Item, table: Table, index: Index) -> Item:
    return item if index.projection == "all" else {name: item[name] for name in _cursor(item, table, index)}


def _cursor(item: Item, table: Table, index: Index) -> Cursor:
    named = (*table.key_attributes, index.partition, index.sort)
    return {name: str(item[name]) for name in named if name is not None}


def _position(item: Item | Cursor, order: Sequence[str]) -> list[bytes]:
    return [str(item[name]).encode() for name in order]
