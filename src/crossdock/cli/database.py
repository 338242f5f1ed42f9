"""The database of a command: the one named by `DATABASE_URL`, or the one embedded in the data directory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from crossdock.engines.sql.embedded import EmbeddedPostgres, attached
from crossdock.engines.sql.target import PostgresTarget
from crossdock.settings import Settings

CONNECTIONS_LEFT_FREE = 10
"""For commands, backups and whoever has to look what is wrong."""


@contextmanager
def database_of_command(settings: Settings) -> Iterator[PostgresTarget]:
    """The running server; an embedded one that doesn't run is started for as long as the command takes."""
    if settings.database_url is not None:
        yield PostgresTarget(settings.database_url)
    else:
        with attached(settings.data_dir) as target:
            yield target


@dataclass(frozen=True, slots=True)
class OwnDatabase:
    target: PostgresTarget
    keep_alive: Callable[[], object] | None
    """Starts it again if it died; None: it isn't ours to start."""


@contextmanager
def database_of_server(settings: Settings) -> Iterator[OwnDatabase]:
    """The embedded server is owned, and stopped at the end."""
    if settings.database_url is not None:
        yield OwnDatabase(PostgresTarget(settings.database_url), None)
        return
    server = EmbeddedPostgres(settings.data_dir)
    target = server.start()
    try:
        yield OwnDatabase(target, server.ensure_running)
    finally:
        server.stop()


def connections_problem(workers: int, per_process: int, max_connections: int) -> str | None:
    """Pure: whether the pools of all processes, each full, leave the database enough connections."""
    available = max_connections - CONNECTIONS_LEFT_FREE
    needed = (workers + 1) * per_process
    if needed <= available:
        return None
    fitting = available // per_process - 1
    at_most = f"at most {fitting} lane processes" if fitting > 0 else "not one lane process"
    return (
        f"{workers} lane processes and the worker may open {needed} connections, and PostgreSQL allows "
        f"{max_connections}, of which {CONNECTIONS_LEFT_FREE} stay free: that is enough for {at_most}. "
        "Lower --workers, or raise max_connections in PostgreSQL."
    )
