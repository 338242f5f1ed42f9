"""What is stored, by all slices together: secrets, SQL schemas, items tables. Composed here, without serving.

This is the part of the composition that commands need, too; it imports no server, so that they start fast.
"""

from __future__ import annotations

import os
import random as stdlib_random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crossdock import access, devices
from crossdock.engines.items import postgres
from crossdock.engines.items.port import Table
from crossdock.engines.migrations import PLATFORM
from crossdock.engines.secret_files import SecretFiles
from crossdock.engines.sql.migrations import Migrations
from crossdock.engines.sql.migrations import migrate as apply_migrations
from crossdock.engines.sql.migrations import pending as pending_migrations
from crossdock.engines.sql.target import Connection, PostgresTarget, connect, open_pool
from crossdock.hooks.store.tables import TABLES as HOOKS_TABLES
from crossdock.http.idempotency_items import IDEMPOTENCY
from crossdock.http.idempotency_sql import SqlIdempotency
from crossdock.kit.clock import Clock, SystemClock
from crossdock.kit.configuration import PREFIX, SettingsError
from crossdock.kit.ids import Random, token_hex
from crossdock.kit.lazy_module import lazy_module
from crossdock.kit.sealing import Sealer, parse_secret_key
from crossdock.settings import Settings

if TYPE_CHECKING:
    from crossdock.engines.items import dynamodb
else:
    # With its AWS libraries a quarter of a second and 40 MB, for nothing where items are in PostgreSQL.
    dynamodb = lazy_module("crossdock.engines.items.dynamodb")

MIGRATIONS: tuple[Migrations, ...] = (
    PLATFORM,
    Migrations(schema="platform", package="crossdock.http.migrations"),
    access.MIGRATIONS,
)


def tables_of(settings: Settings) -> tuple[Table, ...]:
    """Of every slice, whichever are on: `SLICES` chooses what serves, not what is stored."""
    own = (dynamodb.POSITIONS, dynamodb.TALLIES) if settings.items == "dynamodb" else ()
    return (*devices.TABLES, *HOOKS_TABLES, IDEMPOTENCY, *own)


# --- connections -----------------------------------------------------------------------------------

ITEMS_CONNECTIONS, SQL_CONNECTIONS, PLATFORM_CONNECTIONS = 8, 4, 3
NOTIFICATION_CONNECTIONS = 1


def connections_per_process(settings: Settings) -> int:
    """How many connections to PostgreSQL the pools of a lane or of the worker may open together."""
    items = ITEMS_CONNECTIONS if settings.items == "postgres" else 0
    return items + SQL_CONNECTIONS + PLATFORM_CONNECTIONS + NOTIFICATION_CONNECTIONS


# --- secrets ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Secrets:
    operator_key: str
    secret_key: str
    devices_key_pepper: str
    operator_key_is_new: bool
    """Made just now: to be shown, this once."""


def secret_files(settings: Settings) -> SecretFiles:
    return SecretFiles(settings.data_dir / "secrets")


def load_secrets(settings: Settings, random: Random) -> Secrets:
    """Those given by settings; the others are made on first use and kept in the data directory."""
    files = secret_files(settings)

    def kept(name: str, given: str | None) -> str:
        return given or files.get_or_create(name, lambda: token_hex(32, random))[0]

    operator_key, is_new = settings.operator_key, False
    if operator_key is None:
        operator_key, is_new = files.get_or_create("operator_key", lambda: access.make_key(random))
    return Secrets(
        operator_key=operator_key,
        secret_key=kept("secret_key", settings.secret_key),
        devices_key_pepper=kept("devices_key_pepper", settings.devices.key_pepper),
        operator_key_is_new=is_new,
    )


def check_secrets(settings: Settings) -> None:
    """Those that are given, or made already, are usable. Raises SettingsError saying which is not."""
    files = secret_files(settings)
    checks = (
        ("operator_key", settings.operator_key, access.check_operator_key),
        ("secret_key", settings.secret_key, parse_secret_key),
    )
    problems: list[str] = []
    for name, given, check in checks:
        value = given or files.get(name)
        try:
            if value is not None:
                check(value)
        except ValueError as error:
            problems.append(f"{PREFIX + name.upper() if given else files.path(name)} {error}.")
    if problems:
        raise SettingsError(*problems)


async def put_operator_key(secrets: Secrets, target: PostgresTarget) -> None:
    """The configured operator key is the one that the database knows."""
    clock, random = SystemClock(), os.urandom
    pool = await open_pool(target, schema=access.SCHEMA, max_size=1)
    try:
        service = access.AccessService(
            pool,
            SqlIdempotency(pool, Sealer(parse_secret_key(secrets.secret_key), random=random), clock),
            keys=access.KeyResolver(pool, clock),
            sessions=access.SessionResolver(pool, clock),
            clock=clock,
            random=random,
        )
        await service.ensure_operator_key(secrets.operator_key)
    finally:
        await pool.close()


# --- schemas and tables ----------------------------------------------------------------------------


async def migrate(settings: Settings, target: PostgresTarget, environ: Mapping[str, str]) -> list[str]:
    """Bring every store up to what this version needs. The names of what was applied in PostgreSQL."""
    async with _connected(target) as connection:
        applied = await apply_migrations(connection, MIGRATIONS)
        if settings.items == "postgres":
            await postgres.create_tables(connection, tables_of(settings), table_prefix=settings.table_prefix)
    if settings.items == "dynamodb":
        async with _dynamo_client(settings, environ) as client:
            await dynamodb.create_tables(client, tables_of(settings), table_prefix=settings.table_prefix)
    return [migration.label for migration in applied]


async def pending(connection: Connection) -> list[str]:
    """The names of the SQL migrations that `migrate` would apply."""
    return [migration.label for migration in await pending_migrations(connection, MIGRATIONS)]


async def items_problems(
    settings: Settings, target: PostgresTarget | None, environ: Mapping[str, str]
) -> Sequence[str]:
    """What is wrong with the items tables, or with the engine that has them: a sentence each."""
    tables, prefix = tables_of(settings), settings.table_prefix
    if settings.items == "dynamodb":
        async with _dynamo_client(settings, environ) as client:
            return await dynamodb.problems_of(client, tables, table_prefix=prefix)
    if target is None:
        return []
    async with _connected(target) as connection:
        missing = await postgres.missing_tables(connection, tables, table_prefix=prefix)
    return [f"Table {name} is missing: run crossdock migrate." for name in missing]


def dynamo_client(settings: Settings, environ: Mapping[str, str], clock: Clock) -> dynamodb.DynamoClient:
    return dynamodb.DynamoClient.from_environment(
        environ, settings.dynamodb_endpoint, clock, stdlib_random.random
    )


@asynccontextmanager
async def _dynamo_client(
    settings: Settings, environ: Mapping[str, str]
) -> AsyncIterator[dynamodb.DynamoClient]:
    client = dynamo_client(settings, environ, SystemClock())
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def _connected(target: PostgresTarget) -> AsyncIterator[Connection]:
    connection = await connect(target)
    try:
        yield connection
    finally:
        await connection.close()
