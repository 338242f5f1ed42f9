"""What callers may rely on from a pool of PostgreSQL connections."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.clock import ManualClock
from tests.support.ports import free_port
from tests.support.postgres import TestPostgres

from crossdock.engines.sql.target import Connection, PostgresTarget, open_pool, problems_of
from crossdock.kit.clock import SystemClock
from crossdock.kit.errors import Unavailable


async def test_a_pool_works_in_its_schema_under_our_name(database: PostgresTarget) -> None:
    pool = await open_pool(database, schema="datahub", max_size=2)
    try:
        await pool.execute("CREATE SCHEMA datahub")
        await pool.execute("CREATE TABLE things (id int)")
        where = await pool.fetchval("SELECT schemaname FROM pg_tables WHERE tablename = 'things'")
        name = await pool.fetchval("SELECT current_setting('application_name')")
    finally:
        await pool.close()
    assert (where, name) == ("datahub", "crossdock datahub")


async def test_settings_given_to_a_pool_hold_on_its_connections(database: PostgresTarget) -> None:
    pool = await open_pool(database, schema=None, settings={"lock_timeout": "7s"})
    try:
        assert await pool.fetchval("SHOW lock_timeout") == "7s"
    finally:
        await pool.close()


async def test_init_prepares_every_connection(database: PostgresTarget) -> None:
    async def use_text_for_numeric(connection: Connection) -> None:
        await connection.set_type_codec(
            "numeric", schema="pg_catalog", encoder=str, decoder=str, format="text"
        )

    pool = await open_pool(database, schema=None, init=use_text_for_numeric)
    try:
        assert await pool.fetchval("SELECT 1.50::numeric") == "1.50"
    finally:
        await pool.close()


async def test_a_transaction_left_open_is_rolled_back_on_release(database: PostgresTarget) -> None:
    pool = await open_pool(database, schema=None, min_size=1, max_size=1)
    try:
        await pool.execute("CREATE TABLE things (id int)")
        async with pool.acquire() as connection:
            await connection.execute("BEGIN; INSERT INTO things VALUES (1)")
        assert await pool.fetchval("SELECT count(*) FROM things") == 0
    finally:
        await pool.close()


async def test_a_pool_works_again_after_the_server_was_restarted(
    postgres: TestPostgres, database: PostgresTarget
) -> None:
    pool = await open_pool(database, schema=None, min_size=3, max_size=3)
    try:
        await pool.execute("CREATE TABLE things (id int)")
        await asyncio.to_thread(postgres.restart)
        assert await pool.fetchval("SELECT count(*) FROM things") == 0
    finally:
        await pool.close()


@pytest.mark.parametrize(
    ("dsn", "named_in_the_message"),
    [
        ("postgresql://me:secret@127.0.0.1:{port}/shop", "127.0.0.1:{port}/shop"),
        ("postgresql://me:secret@no-such-host.invalid/shop", "no-such-host.invalid/shop"),
        ("postgresql://me@/shop?host=/nonexistent&password=secret", "/nonexistent"),
    ],
)
async def test_an_unreachable_server_is_unavailable_and_the_message_names_it_without_the_password(
    dsn: str, named_in_the_message: str
) -> None:
    port = free_port()
    with pytest.raises(Unavailable) as raised:
        await open_pool(PostgresTarget(dsn.format(port=port)), schema=None)
    assert named_in_the_message.format(port=port) in raised.value.message
    assert "CROSSDOCK_DATABASE_URL" in raised.value.message
    assert "secret" not in raised.value.message


async def test_a_database_that_does_not_exist_is_unavailable(database: PostgresTarget) -> None:
    missing = PostgresTarget(database.dsn.replace("/test_", "/missing_"))
    with pytest.raises(Unavailable, match="missing_"):
        await open_pool(missing, schema=None)


async def test_the_embedded_server_has_no_problems(database: PostgresTarget) -> None:
    assert await problems_of(database, SystemClock()) == []


async def test_a_clock_that_differs_is_a_problem(database: PostgresTarget, clock: ManualClock) -> None:
    (problem,) = await problems_of(database, clock)
    assert "clock" in problem


async def test_an_unreachable_server_is_a_problem_not_an_exception() -> None:
    (problem,) = await problems_of(PostgresTarget(f"postgresql://127.0.0.1:{free_port()}/x"), SystemClock())
    assert "Can't connect" in problem
