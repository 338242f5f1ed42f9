"""Stores of items for tests in-process: each empty, of the test's own, and gone at its end.

async with postgres_store(server, TABLES) as store:
    items = await store.open()       # as often as there are nodes: connections of its own, the store shared
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from uuid import uuid4

from tests.support.clock import ManualClock
from tests.support.lagging import LaggingIndexes
from tests.support.postgres import TestPostgres

from crossdock.engines.items import dynamodb, postgres
from crossdock.engines.items.port import Items, Table
from crossdock.engines.sql.target import connect, open_pool

REGION = "us-east-1"


@dataclass(frozen=True)
class ItemsStore:
    clock: ManualClock
    open: Callable[[], Awaitable[Items]]
    stack: AsyncExitStack
    """For what is to be closed before the store is."""


def present_clock() -> ManualClock:
    """At a whole second of today: DynamoDB Local expires items by the real time."""
    return ManualClock(int(time.time()) * 1000)


@asynccontextmanager
async def postgres_store(
    server: TestPostgres, tables: Sequence[Table], lag_seconds: float | None = None
) -> AsyncIterator[ItemsStore]:
    """`lag_seconds`: indexes answer as of so long ago."""
    clock = present_clock()
    async with AsyncExitStack() as stack:
        database = await server.create_database()
        stack.push_async_callback(server.drop_database, database)
        connection = await connect(database)
        try:
            await postgres.create_tables(connection, tables)
        finally:
            await connection.close()

        async def open_items() -> Items:
            pool = await open_pool(
                database,
                schema=None,
                min_size=1,
                max_size=6,
                settings=postgres.SESSION,
                init=postgres.prepare_connection,
            )
            stack.push_async_callback(pool.close)
            items = postgres.PostgresItems(pool, tables, clock)
            stack.push_async_callback(items.close)
            return items if lag_seconds is None else LaggingIndexes(items, lag_seconds, time.monotonic, clock)

        yield ItemsStore(clock, open_items, stack)


@asynccontextmanager
async def dynamodb_store(
    endpoint: str, tables: Sequence[Table], access_key: str | None = None
) -> AsyncIterator[ItemsStore]:
    """DynamoDB Local keeps the tables of each access key apart: one of the test's own, unless given."""
    clock = present_clock()
    environ = {
        "AWS_REGION": REGION,
        "AWS_ACCESS_KEY_ID": access_key or uuid4().hex,
        "AWS_SECRET_ACCESS_KEY": "local",
    }
    all_tables = (*tables, dynamodb.TALLIES)

    def open_client() -> dynamodb.DynamoClient:
        return dynamodb.DynamoClient.from_environment(environ, endpoint, clock, random.random)

    async with AsyncExitStack() as stack:
        client = open_client()
        stack.push_async_callback(client.close)
        await dynamodb.create_tables(client, all_tables)

        async def open_items() -> Items:
            items = dynamodb.DynamoItems(open_client(), all_tables, clock, os.urandom)
            stack.push_async_callback(items.close)
            return items

        yield ItemsStore(clock, open_items, stack)
