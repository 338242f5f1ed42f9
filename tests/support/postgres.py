"""A real PostgreSQL for a test session, and databases of one's own in it."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit, urlunsplit

from crossdock.engines.sql.embedded import EmbeddedPostgres
from crossdock.engines.sql.target import PostgresTarget, connect

# A test that kills the server loses nothing by this: only a power cut makes a difference.
FASTER_THAN_DURABLE = {"fsync": "off", "shared_buffers": "64MB"}


class TestPostgres:
    """One embedded server in a temporary directory; `create_database` is a matter of milliseconds."""

    __test__ = False

    def __init__(self) -> None:
        # Not pytest's own temporary directory: each new session closes that to other accounts again, and
        # as root the server runs as another account.
        self._directory = Path(tempfile.mkdtemp(prefix="crossdock-test-"))
        self._server = EmbeddedPostgres(self._directory, settings=FASTER_THAN_DURABLE)
        self._numbers = itertools.count(1)
        self._admin: PostgresTarget | None = None

    def start(self) -> None:
        self._admin = self._server.start()

    def stop(self) -> None:
        self._server.stop()
        shutil.rmtree(self._directory)

    def restart(self, while_stopped: Callable[[], None] = lambda: None) -> None:
        """Every connection breaks; data stays."""
        self._server.stop()
        while_stopped()
        self._server.start()

    async def create_database(self) -> PostgresTarget:
        name = f"test_{os.getpid()}_{next(self._numbers)}"
        await self._administer(f'CREATE DATABASE "{name}" TEMPLATE template0 STRATEGY file_copy')
        return self._named(name)

    async def drop_database(self, target: PostgresTarget) -> None:
        await self._administer(f'DROP DATABASE "{database_name(target)}" WITH (FORCE)')

    async def _administer(self, statement: str) -> None:
        assert self._admin is not None
        connection = await connect(self._admin)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    def _named(self, name: str) -> PostgresTarget:
        assert self._admin is not None
        return replace(self._admin, dsn=urlunsplit(urlsplit(self._admin.dsn)._replace(path=f"/{name}")))

    def __enter__(self) -> TestPostgres:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def database_name(target: PostgresTarget) -> str:
    return urlsplit(target.dsn).path.removeprefix("/")
