"""What `migrate` promises, on a real server."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest

from crossdock.engines.sql.migrations import Migrations, migrate, pending
from crossdock.engines.sql.target import PostgresTarget, connect
from crossdock.kit.errors import Conflict


class SqlPackage:
    """An importable package of SQL files that a test writes."""

    def __init__(self, root: Path, name: str) -> None:
        self._directory = root / name
        self._directory.mkdir()
        (self._directory / "__init__.py").touch()
        self.source = Migrations(schema=f"{name}_schema", package=name)

    def write(self, file_name: str, sql: str) -> None:
        (self._directory / file_name).write_text(sql)

    def remove(self, file_name: str) -> None:
        (self._directory / file_name).unlink()


@pytest.fixture
def packages(tmp_path: Path) -> Iterator[tuple[SqlPackage, SqlPackage]]:
    names = ("migrated_alpha", "migrated_beta")
    sys.path.insert(0, str(tmp_path))
    importlib.invalidate_caches()
    yield SqlPackage(tmp_path, names[0]), SqlPackage(tmp_path, names[1])
    sys.path.remove(str(tmp_path))
    for name in names:
        sys.modules.pop(name, None)


@pytest.fixture
async def connection(database: PostgresTarget) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    connection = await connect(database)
    yield connection
    await connection.close()


async def tables(connection: asyncpg.Connection[asyncpg.Record]) -> set[str]:
    rows = await connection.fetch(
        "SELECT schemaname, tablename FROM pg_tables WHERE schemaname ~ '^(migrated_.*|platform)$'"
    )
    return {f"{row['schemaname']}.{row['tablename']}" for row in rows}


async def test_each_source_is_applied_in_its_own_schema_in_order(
    connection: asyncpg.Connection[asyncpg.Record], packages: tuple[SqlPackage, SqlPackage]
) -> None:
    alpha, beta = packages
    alpha.write("0001_create.sql", "CREATE TABLE things (id int);")
    alpha.write("0002_fill.sql", "INSERT INTO things VALUES (1); INSERT INTO things VALUES (2);")
    beta.write("0001_create.sql", "CREATE TABLE things AS SELECT * FROM migrated_alpha_schema.things;")
    applied = await migrate(connection, [alpha.source, beta.source])
    assert [migration.label for migration in applied] == [
        "migrated_alpha/0001_create",
        "migrated_alpha/0002_fill",
        "migrated_beta/0001_create",
    ]
    assert await connection.fetchval("SELECT count(*) FROM migrated_beta_schema.things") == 2


async def test_a_second_run_applies_only_what_is_new(
    connection: asyncpg.Connection[asyncpg.Record], packages: tuple[SqlPackage, SqlPackage]
) -> None:
    alpha, _ = packages
    alpha.write("0001_create.sql", "CREATE TABLE things (id int);")
    await migrate(connection, [alpha.source])
    assert await migrate(connection, [alpha.source]) == []
    alpha.write("0002_more.sql", "ALTER TABLE things ADD note text;")
    assert [migration.number for migration in await pending(connection, [alpha.source])] == [2]
    assert [migration.number for migration in await migrate(connection, [alpha.source])] == [2]
    assert await pending(connection, [alpha.source]) == []


async def test_asking_what_is_pending_changes_nothing(
    connection: asyncpg.Connection[asyncpg.Record], packages: tuple[SqlPackage, SqlPackage]
) -> None:
    alpha, _ = packages
    alpha.write("0001_create.sql", "CREATE TABLE things (id int);")
    assert len(await pending(connection, [alpha.source])) == 1
    assert await tables(connection) == set()


async def test_an_error_in_the_last_file_leaves_the_database_as_it_was(
    connection: asyncpg.Connection[asyncpg.Record], packages: tuple[SqlPackage, SqlPackage]
) -> None:
    alpha, beta = packages
    alpha.write("0001_create.sql", "CREATE TABLE things (id int);")
    beta.write("0001_create.sql", "CREATE TABLE others (id int); SELECT 1 / 0;")
    with pytest.raises(asyncpg.DivisionByZeroError):
        await migrate(connection, [alpha.source, beta.source])
    assert await tables(connection) == set()


async def test_an_applied_file_that_changed_is_refused_and_nothing_is_applied(
    connection: asyncpg.Connection[asyncpg.Record], packages: tuple[SqlPackage, SqlPackage]
) -> None:
    alpha, beta = packages
    alpha.write("0001_create.sql", "CREATE TABLE things (id int);")
    await migrate(connection, [alpha.source])
    alpha.write("0001_create.sql", "CREATE TABLE things (id bigint);")
    beta.write("0001_create.sql", "CREATE TABLE others (id int);")
    for refuse in (migrate, pending):
        with pytest.raises(Conflict, match="migrated_alpha/0001_create"):
            await refuse(connection, [beta.source, alpha.source])
    assert "migrated_beta_schema.others" not in await tables(connection)


async def test_a_database_migrated_by_newer_code_is_refused(
    connection: asyncpg.Connection[asyncpg.Record], packages: tuple[SqlPackage, SqlPackage]
) -> None:
    alpha, _ = packages
    alpha.write("0001_create.sql", "CREATE TABLE things (id int);")
    alpha.write("0002_more.sql", "ALTER TABLE things ADD note text;")
    await migrate(connection, [alpha.source])
    alpha.remove("0002_more.sql")
    for refuse in (migrate, pending):
        with pytest.raises(Conflict, match="newer version"):
            await refuse(connection, [alpha.source])


async def test_many_that_migrate_at_once_apply_each_file_once(
    database: PostgresTarget, packages: tuple[SqlPackage, SqlPackage]
) -> None:
    alpha, _ = packages
    alpha.write("0001_create.sql", "SELECT pg_sleep(0.2); CREATE TABLE things (id int);")
    connections = [await connect(database) for _ in range(5)]
    try:
        applied = await asyncio.gather(*(migrate(each, [alpha.source]) for each in connections))
    finally:
        for each in connections:
            await each.close()
    assert sorted(len(each) for each in applied) == [0, 0, 0, 0, 1]


async def test_what_one_file_sets_does_not_reach_the_next(
    connection: asyncpg.Connection[asyncpg.Record], packages: tuple[SqlPackage, SqlPackage]
) -> None:
    alpha, _ = packages
    alpha.write(
        "0001_wander.sql", "CREATE SCHEMA migrated_elsewhere; SET LOCAL search_path = migrated_elsewhere;"
    )
    alpha.write("0002_create.sql", "CREATE TABLE things (id int);")
    await migrate(connection, [alpha.source])
    assert "migrated_alpha_schema.things" in await tables(connection)
