"""What a start does to tables that other processes are at work on: nothing, if they are as needed."""

from __future__ import annotations

import asyncio

from crossdock.engines.items.port import Index, Table
from crossdock.engines.items.postgres import create_tables, missing_tables
from crossdock.engines.sql.target import PostgresTarget, connect

PLAIN = Table("things", "pk", "sk", ttl="expires_at")
INDEXED = Table("things", "pk", "sk", indexes=(Index("gsi1", "gsi1pk"),), ttl="expires_at", wide=("body",))


async def test_a_second_start_waits_for_nobody(database: PostgresTarget) -> None:
    one, other = await connect(database), await connect(database)
    try:
        await create_tables(one, [PLAIN])
        async with other.transaction():
            await other.execute("INSERT INTO items.things (pk, sk, item) VALUES ($1, $1, $2)", "a", "{}")
            async with asyncio.timeout(5):
                await create_tables(one, [PLAIN])
    finally:
        await one.close()
        await other.close()


async def test_what_a_new_version_adds_is_made(database: PostgresTarget) -> None:
    connection = await connect(database)
    try:
        assert await missing_tables(connection, [PLAIN]) == ["things"]
        await create_tables(connection, [PLAIN])
        assert await missing_tables(connection, [PLAIN]) == []
        await create_tables(connection, [INDEXED])
        columns = await connection.fetch(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = 'items' "
            "AND table_name = 'things'"
        )
        assert {"gsi1pk", "body"} <= {row["column_name"] for row in columns}
        assert await connection.fetchval("SELECT to_regclass('items.things_gsi1') IS NOT NULL")
    finally:
        await connection.close()
