"""The Items port on PostgreSQL."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence

from crossdock.engines.items.conditions import ALWAYS, Condition
from crossdock.engines.items.port import (
    Change,
    Delete,
    ExpiryHandler,
    Item,
    ItemRejected,
    JsonPage,
    Key,
    Outcome,
    Page,
    Put,
    Query,
    Table,
    Transaction,
    Update,
)
from crossdock.engines.items.postgres import expiry, reads
from crossdock.engines.items.postgres.committer import Committer
from crossdock.engines.items.postgres.layout import SCHEMA, Layout
from crossdock.engines.items.postgres.prepared import Prepared, prepare
from crossdock.engines.leases import Leases
from crossdock.engines.sql.failures import reaching_database
from crossdock.engines.sql.target import Connection, Pool
from crossdock.kit.clock import Clock
from crossdock.kit.errors import CrossdockError


class PostgresItems:
    """`pool` is one opened with `prepare_connection` and the settings of `reads.SESSION`."""

    def __init__(self, pool: Pool, tables: Sequence[Table], clock: Clock, *, table_prefix: str = "") -> None:
        self._pool = pool
        self._clock = clock
        self._layouts = {table.name: Layout(table, table_prefix) for table in tables}
        self._committer = Committer(pool, self._layouts, clock)
        self._handlers: dict[str, ExpiryHandler] = {}

    async def get(self, table: Table, key: Key) -> Item | None:
        with reaching_database():
            return await reads.get(self._pool, self._layouts[table.name], key, self._now_seconds())

    async def get_many(self, table: Table, keys: Sequence[Key]) -> list[Item | None]:
        with reaching_database():
            return await reads.get_many(self._pool, self._layouts[table.name], keys, self._now_seconds())

    async def query(self, query: Query) -> Page:
        layout = self._layouts[query.table.name]
        with reaching_database():
            return await reads.query(self._pool, layout, query, self._now_seconds())

    async def query_json(self, query: Query) -> JsonPage:
        with reaching_database():
            return await reads.query_json(
                self._pool, self._layouts[query.table.name], query, self._now_seconds()
            )

    async def put(self, table: Table, item: Item, condition: Condition = ALWAYS) -> Outcome:
        return await self.transact([Put(table, item, condition)])

    async def update(
        self, table: Table, key: Key, *changes: Change, condition: Condition = ALWAYS
    ) -> Outcome:
        return await self.transact([Update(table, key, changes, condition)])

    async def delete(self, table: Table, key: Key, condition: Condition = ALWAYS) -> Outcome:
        return await self.transact([Delete(table, key, condition)])

    async def transact(self, writes: Transaction) -> Outcome:
        [result] = await self._committer.submit([prepare(writes, self._layouts)])
        if isinstance(result, CrossdockError):
            raise result
        return result

    async def transact_many(self, transactions: Sequence[Transaction]) -> list[Outcome | CrossdockError]:
        results: list[Outcome | CrossdockError | None] = [None] * len(transactions)
        accepted: list[tuple[int, Prepared]] = []
        for position, transaction in enumerate(transactions):
            try:
                accepted.append((position, prepare(transaction, self._layouts)))
            except ItemRejected as rejected:
                results[position] = rejected
        if accepted:
            outcomes = await self._committer.submit([prepared for _, prepared in accepted])
            for (position, _), outcome in zip(accepted, outcomes, strict=True):
                results[position] = outcome
        return [result for result in results if result is not None]

    async def write_many(self, table: Table, items: Sequence[Item]) -> None:
        layout = self._layouts[table.name]
        last = {layout.key_of(item): item for item in items}
        if not last:
            return
        puts = [prepare([Put(table, item)], self._layouts) for item in last.values()]
        for result in await self._committer.submit(puts):
            if isinstance(result, CrossdockError):
                raise result

    def on_expired(self, table: Table, handler: ExpiryHandler) -> None:
        if not table.stream or table.ttl is None:
            raise ValueError(f"{table.name} has no stream of expired items")
        self._handlers[table.name] = handler

    async def run_expiry(self, leases: Leases) -> None:
        """The background role: until cancelled. The lease is the role's own; no more are needed here."""
        del leases
        await expiry.run(self._pool, self._layouts, self._handlers, self._clock)

    async def run_tallies(self, leases: Leases) -> None:
        """Nothing is left to count: tallies are counted in the commit that they ride on."""
        del leases
        await asyncio.Event().wait()

    async def close(self) -> None:
        await self._committer.close()

    def _now_seconds(self) -> int:
        return self._clock.now_ms() // 1000


async def prepare_connection(connection: Connection) -> None:
    """Items travel as the bytes they are stored as."""
    await connection.set_type_codec(
        "json", schema="pg_catalog", format="binary", encoder=bytes, decoder=bytes
    )


async def create_tables(connection: Connection, tables: Sequence[Table], *, table_prefix: str = "") -> None:
    """Makes what is missing; what is there stays. Several may run at once.

    A table that is as it was last defined is not touched: defining it again would lock out, and perhaps
    deadlock with, processes that are at work on it.
    """
    definitions = {expiry.RELATION: list(expiry.DEFINITIONS)}
    for table in tables:
        layout = Layout(table, table_prefix)
        definitions[layout.relation] = layout.definitions()
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('crossdock.items', 0))")
        await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        for relation, statements in definitions.items():
            await _define(connection, relation, statements)


async def _define(connection: Connection, relation: str, statements: Sequence[str]) -> None:
    digest = hashlib.sha256("\n".join(statements).encode()).hexdigest()
    known = await connection.fetchval("SELECT obj_description(to_regclass($1), 'pg_class')", relation)
    if known == digest:
        return
    for statement in statements:
        await connection.execute(statement)
    await connection.execute(f"COMMENT ON TABLE {relation} IS '{digest}'")


async def missing_tables(
    connection: Connection, tables: Sequence[Table], *, table_prefix: str = ""
) -> list[str]:
    """The names of those that `create_tables` would make."""
    relations = {Layout(table, table_prefix).relation: table_prefix + table.name for table in tables}
    rows = await connection.fetch(
        "SELECT name FROM unnest($1::text[]) AS name WHERE to_regclass(name) IS NULL", list(relations)
    )
    return [relations[row["name"]] for row in rows]
