"""Where PostgreSQL is, and pools of connections to it.

A pool never resets a connection on release (asyncpg's default costs one round trip each time), so what a
borrower changes must end with its transaction: `SET LOCAL`, `pg_advisory_xact_lock`, no `LISTEN`. An open
transaction is still rolled back on release. Listeners and session locks take a connection of their own.

A pool outlives a restart of the server: broken connections are replaced on the next acquire.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

import asyncpg
import asyncpg.pool

from crossdock.kit.clock import Clock
from crossdock.kit.errors import Unavailable

if TYPE_CHECKING:
    Connection: TypeAlias = (
        asyncpg.Connection[asyncpg.Record] | asyncpg.pool.PoolConnectionProxy[asyncpg.Record]
    )
    Pool: TypeAlias = asyncpg.Pool[asyncpg.Record]
else:
    Connection = asyncpg.Connection | asyncpg.pool.PoolConnectionProxy
    Pool = asyncpg.Pool

CONNECTION_ERRORS: tuple[type[Exception], ...] = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.TooManyConnectionsError,
)
"""What asyncpg raises when the server is away, restarting, full, or does not let us in."""

# A URL that asyncpg can't read is a ValueError or TypeError of its parser.
_CONNECT_ERRORS: tuple[type[Exception], ...] = (*CONNECTION_ERRORS, ValueError, TypeError)

OLDEST_VERSION = 15
CLOCKS_AGREE_WITHIN_MS = 2_000

_SCHEMA_NAME = re.compile(r"[a-z_][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class PostgresTarget:
    """A database by its URL. The URL may carry a password, so it is not in `repr`; log `label`."""

    dsn: str = field(repr=False)

    @property
    def label(self) -> str:
        parts = urlsplit(self.dsn)
        where = parts.hostname or parse_qs(parts.query).get("host", ["localhost"])[0]
        port = f":{parts.port}" if parts.port else ""
        return f"{where}{port}{parts.path}"


async def open_pool(
    target: PostgresTarget,
    *,
    schema: str | None,
    min_size: int = 1,
    max_size: int = 10,
    settings: Mapping[str, str] = {},
    init: Callable[[Connection], Coroutine[Any, Any, None]] | None = None,
    command_timeout_seconds: float = 30,
    connect_timeout_seconds: float = 10,
) -> Pool:
    """A pool whose connections see `schema` first. Raises `Unavailable` when the server can't be reached."""
    server_settings = {"application_name": f"crossdock {schema or ''}".strip(), **settings}
    if schema is not None:
        server_settings["search_path"] = quote_schema(schema)
    try:
        pool = await asyncpg.create_pool(
            target.dsn,
            min_size=min_size,
            max_size=max_size,
            server_settings=server_settings,
            init=init,
            reset=_keep_session,
            command_timeout=command_timeout_seconds,
            timeout=connect_timeout_seconds,
        )
    except _CONNECT_ERRORS as error:
        raise cannot_connect(target, error) from error
    return pool


async def connect(
    target: PostgresTarget, *, schema: str | None = None, connect_timeout_seconds: float = 10
) -> asyncpg.Connection[asyncpg.Record]:
    """One connection outside any pool: for migrations, checks, listeners."""
    server_settings = {"application_name": "crossdock"}
    if schema is not None:
        server_settings["search_path"] = quote_schema(schema)
    try:
        return await asyncpg.connect(
            target.dsn, server_settings=server_settings, timeout=connect_timeout_seconds
        )
    except _CONNECT_ERRORS as error:
        raise cannot_connect(target, error) from error


def quote_schema(schema: str) -> str:
    if _SCHEMA_NAME.fullmatch(schema) is None:
        raise ValueError(f"{schema!r} is not a plain lower-case schema name")
    return f'"{schema}"'


def cannot_connect(target: PostgresTarget, error: Exception) -> Unavailable:
    reason = str(error) or type(error).__name__
    return Unavailable(
        "postgres_unavailable",
        f"Can't connect to PostgreSQL at {target.label}: {reason}. "
        "Check that it runs and that CROSSDOCK_DATABASE_URL names its host, user, password and database.",
    )


async def problems_of(target: PostgresTarget, clock: Clock) -> list[str]:
    """What would keep this server from serving us, each as a sentence that says how to mend it."""
    try:
        connection = await connect(target)
    except Unavailable as error:
        return [error.message]
    try:
        row = await connection.fetchrow(
            """
            SELECT current_setting('server_version_num')::int / 10000 AS version,
                   current_setting('server_version') AS version_text,
                   current_setting('server_encoding') AS encoding,
                   pg_is_in_recovery() AS is_standby,
                   has_database_privilege(current_database(), 'CREATE') AS may_create,
                   (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms
            """
        )
        our_now_ms = clock.now_ms()
    finally:
        await connection.close()
    assert row is not None
    return judge_server(dict(row), our_now_ms)


def judge_server(server: Mapping[str, Any], our_now_ms: int) -> list[str]:
    problems = []
    if server["version"] < OLDEST_VERSION:
        problems.append(
            f"PostgreSQL is {server['version_text']}; {OLDEST_VERSION} or newer is needed: upgrade it."
        )
    if server["encoding"] != "UTF8":
        problems.append(f"The database's encoding is {server['encoding']}: create it with ENCODING 'UTF8'.")
    if server["is_standby"]:
        problems.append("The server is a read-only standby: name the primary in CROSSDOCK_DATABASE_URL.")
    if not server["may_create"]:
        problems.append("The user may not create schemas: GRANT CREATE ON DATABASE … TO the user.")
    difference_ms = abs(server["now_ms"] - our_now_ms)
    if difference_ms > CLOCKS_AGREE_WITHIN_MS:
        problems.append(
            f"This machine's clock and the database's differ by {difference_ms} ms; "
            f"{CLOCKS_AGREE_WITHIN_MS} are tolerated: set both by NTP."
        )
    return problems


async def _keep_session(_connection: object) -> None:
    """In place of asyncpg's RESET ALL; see the module's docstring."""
