"""Reads: by key, and by partition in key order.

Plans are index scans always: `SESSION` turns off what the planner would choose for a table that it has no
statistics of yet (measured on a fresh table: a page of 1,000 rows in 12 ms with its bitmap scan and sort,
0.6 ms by the index), and keeps one generic plan a statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import cast

import msgspec
from asyncpg import Record

from crossdock.engines.items.lifetime import is_expired
from crossdock.engines.items.limits import check_key, decode_item
from crossdock.engines.items.port import (
    Cursor,
    Item,
    ItemRejected,
    JsonPage,
    Key,
    Page,
    Query,
    SortBetween,
    SortEquals,
    SortPrefix,
)
from crossdock.engines.items.postgres.layout import Layout, quoted, transposed
from crossdock.engines.sql.target import Pool

SESSION = {
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
}


async def get(pool: Pool, layout: Layout, key: Key, now_seconds: int) -> Item | None:
    check_key(layout.table, key)
    row = await pool.fetchrow(layout.get_one, *layout.row_key(key))
    return None if row is None else _live(layout, row, now_seconds)


async def get_many(pool: Pool, layout: Layout, keys: Sequence[Key], now_seconds: int) -> list[Item | None]:
    for key in keys:
        check_key(layout.table, key)
    wanted = sorted({layout.row_key(key) for key in keys})
    if not wanted:
        return []
    rows = await pool.fetch(layout.get_many, *transposed(wanted))
    items = [_live(layout, row, now_seconds) for row in rows]
    found = {layout.key_of(item): item for item in items if item is not None}
    # A key named twice gets a copy each: items are plain dicts, and callers change them.
    return [dict(item) if (item := found.get(layout.row_key(key))) is not None else None for key in keys]


async def query(pool: Pool, layout: Layout, query: Query, now_seconds: int) -> Page:
    rows, cursor = await _fetch(pool, layout, query, now_seconds)
    items = [_item(layout, row) for row in rows]
    if query.index is not None and layout.table.index(query.index).projection == "keys":
        projected = _cursor_attributes(layout, query)
        items = [{name: item[name] for name in projected} for item in items]
    return Page(items, cursor)


async def query_json(pool: Pool, layout: Layout, query: Query, now_seconds: int) -> JsonPage:
    if query.index is not None and layout.table.index(query.index).projection == "keys":
        raise ItemRejected("An index of keys has no items to pass on.")
    rows, cursor = await _fetch(pool, layout, query, now_seconds)
    if not layout.table.wide:
        return JsonPage([row[0] for row in rows], cursor)
    return JsonPage([_with_wide(layout, row) for row in rows], cursor)


async def _fetch(
    pool: Pool, layout: Layout, query: Query, now_seconds: int
) -> tuple[list[Record], Cursor | None]:
    if query.limit < 1:
        raise ItemRejected("A page holds at least one item.")
    values: list[object] = [query.partition, now_seconds, query.limit + 1]
    low, high, high_is_inclusive = _bounds(query)
    values += [bound for bound in (low, high) if bound is not None]
    names = _cursor_order(layout, query)
    if query.after is not None:
        if not set(names) <= set(query.after):
            raise ItemRejected("The cursor belongs to another query.")
        values += [query.after[name] for name in names]
    shape = _Shape(
        layout,
        query.index,
        query.descending,
        low is not None,
        high is not None,
        high_is_inclusive,
        query.after is not None,
    )
    rows = await pool.fetch(_statement(shape), *values)
    if len(rows) <= query.limit:
        return rows, None
    rows = rows[: query.limit]
    last = _item(layout, rows[-1])
    return rows, {name: str(last[name]) for name in _cursor_attributes(layout, query)}


def _bounds(query: Query) -> tuple[str | None, str | None, bool]:
    match query.sort:
        case None:
            return None, None, True
        case SortEquals(value):
            return value, value, True
        case SortBetween(low, high):
            return low, high, True
        case SortPrefix(prefix):
            return prefix, after_prefix(prefix), False


def after_prefix(prefix: str) -> str | None:
    """The smallest text, in byte order, above everything that begins with `prefix`; None: there is none."""
    for position in range(len(prefix) - 1, -1, -1):
        code = ord(prefix[position])
        if code < 0x10FFFF:
            following = 0xE000 if code == 0xD7FF else code + 1
            return prefix[:position] + chr(following)
    return None


@dataclass(frozen=True, slots=True)
class _Shape:
    layout: Layout
    index: str | None
    descending: bool
    has_low: bool
    has_high: bool
    high_is_inclusive: bool
    has_cursor: bool


@cache
def _statement(shape: _Shape) -> str:
    """$1 partition, $2 now, $3 limit, then the bounds and the cursor's values as far as there are any."""
    layout = shape.layout
    index = layout.table.index(shape.index) if shape.index is not None else None
    partition = layout.table.partition if index is None else index.partition
    sort = layout.table.sort if index is None else index.sort
    where = [f"{quoted(partition)} = $1", "(expires_at IS NULL OR expires_at > $2)"]
    if index is not None:
        where.append(layout.in_index(index))
    number = 4
    for present, operator in (
        (shape.has_low, ">="),
        (shape.has_high, "<=" if shape.high_is_inclusive else "<"),
    ):
        if present:
            where.append(f"{quoted(sort or '')} {operator} ${number}")
            number += 1
    order = _order(layout, shape.index)
    if shape.has_cursor:
        columns = ", ".join(quoted(name) for name in order)
        values = ", ".join(f"${number + position}" for position in range(len(order)))
        where.append(f"({columns}) {'<' if shape.descending else '>'} ({values})")
    direction = " DESC" if shape.descending else ""
    ordering = ", ".join(quoted(name) + direction for name in order)
    wide = "".join(f", {quoted(name)}" for name in layout.table.wide)
    return (
        f"SELECT item{wide} FROM {layout.relation} WHERE {' AND '.join(where)} ORDER BY {ordering} LIMIT $3"
    )


def _order(layout: Layout, index: str | None) -> tuple[str, ...]:
    if index is not None:
        return layout.index_order(layout.table.index(index))
    return (layout.table.sort,) if layout.table.sort is not None else (layout.table.partition,)


def _cursor_order(layout: Layout, query: Query) -> tuple[str, ...]:
    return _order(layout, query.index)


def _cursor_attributes(layout: Layout, query: Query) -> tuple[str, ...]:
    if query.index is None:
        return layout.keys
    index = layout.table.index(query.index)
    return tuple(dict.fromkeys((*layout.keys, *layout.index_order(index, with_partition=True))))


def _item(layout: Layout, row: Record) -> Item:
    item = cast(Item, decode_item(row[0]))
    for position, name in enumerate(layout.table.wide, 1):
        if row[position] is not None:
            item[name] = row[position]
    return item


def _live(layout: Layout, row: Record, now_seconds: int) -> Item | None:
    item = _item(layout, row)
    return None if is_expired(layout.table, item, now_seconds) else item


def _with_wide(layout: Layout, row: Record) -> bytes:
    wide: dict[str, str] = {
        name: row[position] for position, name in enumerate(layout.table.wide, 1) if row[position] is not None
    }
    encoded: bytes = row[0]
    return encoded[:-1] + b"," + msgspec.json.encode(wide)[1:] if wide else encoded
