"""The two ways a group of transactions is written, each in one commit.

`insert_group`: the group is nothing but puts of distinct keys: one INSERT a table. A put-if-absent whose key
is taken makes the whole attempt roll back (`Contended`), and the group is evaluated instead.

`evaluate_group`: lock the rows in key order, read them, evaluate the transactions one after the other in
memory, write the final states. Keys that were absent are inserted with ON CONFLICT DO NOTHING and counted: if
somebody else created one meanwhile, roll back and do it again, with that row locked. An absence that a
condition relied on without writing there is held by inserting a placeholder and deleting it before the
commit, so that two transactions can't each decide on an absence that the other ends.

`count_group` comes after either of them, in the same transaction: it adds up the tallies of what was written,
locks the items that they name and writes each of them once. These rows are many groups' and are locked last,
so that groups wait for each other for no longer than a commit.

All of them sort their rows, so two groups wait for each other in one direction only. What deadlocks all the
same (upserts against row locks, items that one group writes and another tallies) the caller tries again.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import TypeAlias

from asyncpg import Record

from crossdock.engines.items.apply import Place, State, changed, evaluate, reads_wide
from crossdock.engines.items.lifetime import is_expired
from crossdock.engines.items.limits import decode_item, encode_item
from crossdock.engines.items.port import Item, ItemRejected, Outcome, Table, Written
from crossdock.engines.items.postgres.layout import SCHEMA, Layout, Row, RowKey, transposed
from crossdock.engines.items.postgres.prepared import Prepared
from crossdock.engines.items.tallies import counted, summed, warn_of_refused
from crossdock.engines.sql.target import Connection

Result: TypeAlias = Outcome | ItemRejected
WRITTEN = Written()


class ContendedError(Exception):
    """Another group created one of our keys while we worked: nothing was written, look again."""


async def insert_group(connection: Connection, group: Sequence[Prepared]) -> list[Result]:
    rows: dict[tuple[Layout, bool], list[Row]] = {}
    for prepared in group:
        for insert in prepared.inserts or ():
            rows.setdefault((insert.layout, insert.overwrites), []).append(insert.row)
    for (layout, overwrites), batch in sorted(rows.items(), key=lambda entry: entry[0][0].relation):
        statement = layout.upsert if overwrites else layout.insert_if_absent
        await _insert(connection, layout, statement, batch)
    return [WRITTEN] * len(group)


async def evaluate_group(
    connection: Connection, group: Sequence[Prepared], layouts: Mapping[str, Layout], now_seconds: int
) -> list[Result]:
    states = {
        place: State(write.table)
        for prepared in group
        for place, write in zip(prepared.places, prepared.writes, strict=True)
    }
    await _lock(connection, states, layouts, _read_whole(group, layouts))
    results = [_evaluate(prepared, states, now_seconds) for prepared in group]
    await _write(connection, states, layouts, now_seconds)
    return results


async def count_group(
    connection: Connection,
    group: Sequence[Prepared],
    results: Sequence[Result],
    layouts: Mapping[str, Layout],
    now_seconds: int,
) -> None:
    tallied = summed(
        tally
        for prepared, result in zip(group, results, strict=True)
        if prepared.tallies and isinstance(result, Written)
        for tally in prepared.tallies
    )
    if not tallied:
        return
    states = {place: State(layouts[place[0]].table) for place in tallied}
    await _lock(connection, states, layouts)
    for place, state in states.items():
        item = state.live(now_seconds)
        result = counted(state.table, item, tallied[place], state.hidden_bytes)
        if result.refused:
            warn_of_refused(state.table, place[1], result.refused)
        if item is not None and result.changes:
            state.current, state.touched = changed(item, {}, result.changes), True
    for name, states_of_table in _by_table(states).items():
        await _amend(connection, layouts[name], states_of_table)


def _evaluate(prepared: Prepared, states: Mapping[Place, State], now_seconds: int) -> Result:
    try:
        outcome = evaluate(prepared.writes, states, now_seconds, _check)
    except ItemRejected as rejected:
        return rejected
    return WRITTEN if prepared.tallies and isinstance(outcome, Written) else outcome


def _check(table: Table, item: Item, hidden_bytes: int) -> None:
    encode_item(table, item, hidden_bytes)


def _read_whole(group: Sequence[Prepared], layouts: Mapping[str, Layout]) -> set[str]:
    """The tables whose wide attributes are wanted, too."""
    # An expired item is told to the handlers as it was, so a table with a stream is always read whole.
    whole = {name for name, layout in layouts.items() if layout.table.stream}
    return whole | {write.table.name for prepared in group for write in prepared.writes if reads_wide(write)}


async def _lock(
    connection: Connection,
    states: Mapping[Place, State],
    layouts: Mapping[str, Layout],
    whole: Container[str] = (),
) -> None:
    for name, of_table in _by_table(states).items():
        statement = layouts[name].lock(with_wide=name in whole)
        for row in await connection.fetch(statement, *transposed(of_table)):
            _note_row(layouts[name], row, states, with_wide=name in whole)


def _by_table(states: Mapping[Place, State]) -> dict[str, dict[RowKey, State]]:
    """In the order of tables and keys."""
    by_table: dict[str, dict[RowKey, State]] = {}
    for (name, key), state in sorted(states.items(), key=lambda entry: entry[0]):
        by_table.setdefault(name, {})[key] = state
    return by_table


def _note_row(layout: Layout, row: Record, states: Mapping[Place, State], *, with_wide: bool) -> None:
    item = decode_item(row[0])
    wide = {name: value for name, value in zip(layout.table.wide, row[1:], strict=True) if value is not None}
    state = states[layout.table.name, layout.key_of(item)]
    if with_wide:
        item |= wide
    else:
        state.hidden = wide
    state.stored = state.current = item


async def _write(
    connection: Connection, states: Mapping[Place, State], layouts: Mapping[str, Layout], now_seconds: int
) -> None:
    by_table = _by_table(
        {place: state for place, state in states.items() if state.touched or state.relied_on}
    )
    for name, touched in by_table.items():
        layout = layouts[name]
        await _insert_new(connection, layout, touched)
        await _amend(connection, layout, touched)
        await _note_overwritten(connection, layout, touched, now_seconds)
    for name, touched in by_table.items():
        await _remove(connection, layouts[name], touched)


async def _insert_new(connection: Connection, layout: Layout, states: Mapping[RowKey, State]) -> None:
    rows = [
        layout.row(state.current) if state.current is not None else _placeholder(layout, key)
        for key, state in states.items()
        if state.stored is None and (state.current is not None or state.relied_on)
    ]
    if rows:
        await _insert(connection, layout, layout.insert_if_absent, rows)


def _placeholder(layout: Layout, key: RowKey) -> Row:
    missing = (None,) * (len(layout.columns) - len(key) - 2 - len(layout.table.wide))
    return (*key, *missing, None, b"{}", *(None,) * len(layout.table.wide))


async def _insert(connection: Connection, layout: Layout, statement: str, rows: list[Row]) -> None:
    rows.sort(key=lambda row: row[: len(layout.keys)])
    status = await connection.execute(statement, *transposed(rows))
    if int(status.rpartition(" ")[2]) != len(rows):
        raise ContendedError


async def _amend(connection: Connection, layout: Layout, states: Mapping[RowKey, State]) -> None:
    narrow_columns = len(layout.columns) - len(layout.table.wide)
    rows: list[Row] = []
    for state in states.values():
        if state.stored is None or state.current is None or not state.touched:
            continue
        row = layout.row(state.current)
        flags = tuple(state.replaced or name in state.wide_changed for name in layout.table.wide)
        rows.append((*row[:narrow_columns], *flags, *row[narrow_columns:]))
    if rows:
        await connection.execute(layout.amend, *transposed(rows))


async def _note_overwritten(
    connection: Connection, layout: Layout, states: Mapping[RowKey, State], now_seconds: int
) -> None:
    """An expired item that a write replaced or removed is told to the expiry handlers like a swept one."""
    if not layout.table.stream:
        return
    gone = [
        encode_item(layout.table, state.stored)
        for state in states.values()
        if state.touched and state.stored is not None and is_expired(layout.table, state.stored, now_seconds)
    ]
    if gone:
        await connection.execute(
            f"INSERT INTO {SCHEMA}.expired (table_name, item) SELECT $1, unnest($2::json[])",
            layout.table.name,
            gone,
        )


async def _remove(connection: Connection, layout: Layout, states: Mapping[RowKey, State]) -> None:
    keys = [
        key
        for key, state in states.items()
        if state.current is None and (state.relied_on if state.stored is None else state.touched)
    ]
    if keys:
        await connection.execute(layout.remove, *transposed(keys))
