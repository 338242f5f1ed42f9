"""The backends that the suite runs on, each opened whole: this is all that is particular to one."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Any
from uuid import uuid4

from tests.contract.items.harness import Harness, ShiftedClock
from tests.contract.items.tables import Tables, declare
from tests.support.lagging import LaggingIndexes
from tests.support.postgres import TestPostgres

from crossdock.engines.items import dynamodb, postgres
from crossdock.engines.items.port import ExpiryHandler, Items, ItemsEngine, Table
from crossdock.engines.leases import Leases
from crossdock.engines.migrations import PLATFORM
from crossdock.engines.sql.migrations import migrate
from crossdock.engines.sql.target import PostgresTarget, connect, open_pool

INDEX_LAG_SECONDS = 0.5


async def nothing_waits() -> None:
    pass


class OpenedBackend:
    """A harness around anything that can open one more instance of itself."""

    def __init__(
        self,
        name: str,
        tables: Tables,
        clock: ShiftedClock,
        open_one: Callable[[], Awaitable[ItemsEngine]],
        leases: Leases,
        *,
        settle: Callable[[], Coroutine[Any, Any, None]] = nothing_waits,
        lag_seconds: float | None = None,
    ) -> None:
        self.name = name
        self.tables = tables
        self.clock = clock
        # DynamoDB Local looks at some two dozen of its expired items every ten seconds, oldest first.
        self.expiry_patience_seconds = 100.0
        self._open_one = open_one
        self._leases = leases
        self.settle = settle
        self._lag_seconds = lag_seconds
        self._items: Items | None = None
        self._another: Items | None = None

    @property
    def items(self) -> Items:
        assert self._items is not None
        return self._items

    async def start(self) -> None:
        self._items = self._lagging(await self._open_one())

    async def another(self) -> Items:
        if self._another is None:
            self._another = self._lagging(await self._open_one())
        return self._another

    @asynccontextmanager
    async def telling(self, table: Table, handler: ExpiryHandler) -> AsyncIterator[None]:
        teller = await self._open_one()
        teller.on_expired(table, handler)
        async with _running(teller.run_expiry(self._leases)):
            yield

    @asynccontextmanager
    async def counting(self) -> AsyncIterator[None]:
        async with _running((await self._open_one()).run_tallies(self._leases)):
            yield

    def _lagging(self, backend: ItemsEngine) -> Items:
        if self._lag_seconds is None:
            return backend
        return LaggingIndexes(backend, self._lag_seconds, self.clock.monotonic, self.clock)


@asynccontextmanager
async def _running(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    role = asyncio.create_task(work)
    try:
        yield
        assert not role.done(), role
    finally:
        role.cancel()
        with suppress(asyncio.CancelledError):
            await role


@asynccontextmanager
async def open_postgres(server: TestPostgres, lag_seconds: float | None = None) -> AsyncIterator[Harness]:
    tables, clock = declare(), ShiftedClock()
    async with AsyncExitStack() as opened:
        database = await server.create_database()
        opened.push_async_callback(server.drop_database, database)
        connection = await connect(database)
        try:
            await postgres.create_tables(connection, tuple(tables))
        finally:
            await connection.close()

        async def open_one() -> ItemsEngine:
            pool = await open_pool(
                database,
                schema=None,
                min_size=1,
                max_size=6,
                settings=postgres.SESSION,
                init=postgres.prepare_connection,
            )
            opened.push_async_callback(pool.close)
            items = postgres.PostgresItems(pool, tuple(tables), clock)
            opened.push_async_callback(items.close)
            return items

        name = "postgres" if lag_seconds is None else "postgres-lagging-indexes"
        leases = await _leases(database, opened)
        harness = OpenedBackend(name, tables, clock, open_one, leases, lag_seconds=lag_seconds)
        await harness.start()
        yield harness


@asynccontextmanager
async def open_dynamodb(endpoint: str, server: TestPostgres) -> AsyncIterator[Harness]:
    """`server` keeps the leases of the stream readers, as it does in the product."""
    tables, clock = declare(), ShiftedClock()
    environ = {"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": uuid4().hex, "AWS_SECRET_ACCESS_KEY": "local"}
    open_client = partial(dynamodb.DynamoClient.from_environment, environ, endpoint, clock, random.random)
    async with AsyncExitStack() as opened:
        database = await server.create_database()
        opened.push_async_callback(server.drop_database, database)
        client = open_client()
        try:
            await dynamodb.create_tables(client, (*tables, dynamodb.TALLIES))
        finally:
            await client.close()

        async def open_one() -> dynamodb.DynamoItems:
            items = dynamodb.DynamoItems(open_client(), tuple(tables), clock, os.urandom)
            opened.push_async_callback(items.close)
            return items

        counter = await open_one()
        leases = await _leases(database, opened)
        harness = OpenedBackend("dynamodb", tables, clock, open_one, leases, settle=counter.fold_tallies)
        await harness.start()
        yield harness


async def _leases(database: PostgresTarget, opened: AsyncExitStack) -> Leases:
    connection = await connect(database)
    try:
        await migrate(connection, [PLATFORM])
    finally:
        await connection.close()
    pool = await open_pool(database, schema="platform", min_size=1, max_size=2)
    opened.push_async_callback(pool.close)
    return Leases(pool, ShiftedClock(), "suite")
