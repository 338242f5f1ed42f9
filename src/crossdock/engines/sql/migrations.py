"""Forward-only schema changes, from numbered SQL files.

Guarantees:

- All pending files of all sources are applied in one transaction: after any crash or error the database is
  as it was before, or wholly up to date.
- Two processes that migrate at once do it one after the other; the second finds nothing left to do.
- What was applied is never edited: a file that changed or vanished since, or a database that was migrated by
  newer code, is refused before anything is done.

A source is a package with files `0001_name.sql`, numbered without gaps. A file may hold any number of
statements that PostgreSQL lets run in a transaction, and runs with the source's schema first on the search
path. Line endings don't count as a change: a checkout may convert them.

When the server is away, asyncpg's connection errors pass through; see `target.CONNECTION_ERRORS`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources

from crossdock.engines.sql.target import Connection, quote_schema
from crossdock.kit.errors import Conflict

_FILE_NAME = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")

# Any constant will do, as long as every version of the product uses the same.
_ADVISORY_LOCK = 0x63726F7373646F63

# Building an index on a large table, or waiting for another node that does, takes its time.
_TIMEOUT_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Migrations:
    """One source: the SQL files in `package`, which run in `schema`. Several sources may share a schema."""

    schema: str
    package: str

    @property
    def name(self) -> str:
        """What the bookkeeping knows the source by: never rename a package that has migrations."""
        return self.package.removeprefix("crossdock.").removesuffix(".migrations")


@dataclass(frozen=True, slots=True)
class Migration:
    source: str
    number: int
    name: str
    sql: str = field(repr=False)

    @property
    def label(self) -> str:
        return f"{self.source}/{self.number:04}_{self.name}"

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.replace("\r\n", "\n").encode()).hexdigest()


async def migrate(connection: Connection, sources: Sequence[Migrations]) -> list[Migration]:
    """Applies what is pending, source by source in the order given, and returns it."""
    available = {source: read_migrations(source) for source in sources}
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _ADVISORY_LOCK, timeout=_TIMEOUT_SECONDS)
        await _create_bookkeeping(connection)
        applied = await _applied(connection)
        todo = _pending(applied, available)
        for source in sources:
            await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quote_schema(source.schema)}")
        for source in sources:
            for migration in todo[source]:
                await _apply(connection, source.schema, migration)
    return [migration for source in sources for migration in todo[source]]


async def pending(connection: Connection, sources: Sequence[Migrations]) -> list[Migration]:
    """What `migrate` would apply. Changes nothing; refuses what `migrate` would refuse."""
    available = {source: read_migrations(source) for source in sources}
    exists = await connection.fetchval("SELECT to_regclass('platform.migrations') IS NOT NULL")
    applied = await _applied(connection) if exists else {}
    todo = _pending(applied, available)
    return [migration for source in sources for migration in todo[source]]


def read_migrations(source: Migrations) -> list[Migration]:
    """The source's files in order. Raises ValueError for names or numbers that break the rules."""
    entries = resources.files(source.package).iterdir()
    return order_files(
        source, {entry.name: entry.read_text("utf-8") for entry in entries if entry.name.endswith(".sql")}
    )


def order_files(source: Migrations, files: Mapping[str, str]) -> list[Migration]:
    """`files`: name to SQL."""
    found = []
    for file_name, sql in files.items():
        match = _FILE_NAME.fullmatch(file_name)
        if match is None:
            raise ValueError(f"{source.package}: {file_name} is not named like 0001_what_it_does.sql")
        found.append(Migration(source.name, int(match[1]), match[2], sql))
    found.sort(key=lambda migration: migration.number)
    if [migration.number for migration in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"{source.package}: migrations are not numbered 1, 2, 3 … without gaps or repeats")
    return found


def choose_pending(
    applied: Mapping[int, str], available: Sequence[Migration], source: str
) -> list[Migration]:
    """`applied`: number to checksum. Raises `Conflict` where the database and the files disagree."""
    known = {migration.number: migration for migration in available}
    for number, checksum in sorted(applied.items()):
        if number > len(available):
            raise Conflict(
                "database_is_newer",
                f"The database has migration {number:04} of {source!r}, which this version does not know: "
                "a newer version migrated it. Run that version, or restore a backup from before.",
            )
        if known[number].checksum != checksum:
            raise Conflict(
                "migration_changed",
                f"{known[number].label}.sql is not what was applied to this database. Restore the file as it "
                "was, and put the change into a new migration.",
            )
    return [migration for migration in available if migration.number not in applied]


def _pending(
    applied: Mapping[str, Mapping[int, str]], available: Mapping[Migrations, Sequence[Migration]]
) -> dict[Migrations, list[Migration]]:
    return {
        source: choose_pending(applied.get(source.name, {}), files, source.name)
        for source, files in available.items()
    }


async def _create_bookkeeping(connection: Connection) -> None:
    await connection.execute(
        """
        CREATE SCHEMA IF NOT EXISTS platform;
        CREATE TABLE IF NOT EXISTS platform.migrations (
            source     text        NOT NULL,
            number     integer     NOT NULL,
            name       text        NOT NULL,
            checksum   text        NOT NULL,
            applied_at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (source, number)
        );
        """
    )


async def _applied(connection: Connection) -> dict[str, dict[int, str]]:
    applied: dict[str, dict[int, str]] = {}
    for row in await connection.fetch("SELECT source, number, checksum FROM platform.migrations"):
        applied.setdefault(row["source"], {})[row["number"]] = row["checksum"]
    return applied


async def _apply(connection: Connection, schema: str, migration: Migration) -> None:
    # Set before each file, so that what one file sets does not reach the next.
    await connection.execute(f"SET LOCAL search_path = {quote_schema(schema)}")
    await connection.execute(migration.sql, timeout=_TIMEOUT_SECONDS)
    await connection.execute(
        "INSERT INTO platform.migrations (source, number, name, checksum) VALUES ($1, $2, $3, $4)",
        migration.source,
        migration.number,
        migration.name,
        migration.checksum,
    )
