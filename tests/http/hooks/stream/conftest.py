from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from tests.http.hooks.stream.listeners import World
from tests.support.hooks_sources import Served, serving_postgres
from tests.support.postgres import TestPostgres

from crossdock.engines.sql.target import PostgresTarget


@pytest.fixture(scope="module")
async def served(postgres: TestPostgres) -> AsyncIterator[Served]:
    async with serving_postgres(postgres) as found:
        yield found


@pytest.fixture
async def world(served: Served, database: PostgresTarget) -> AsyncIterator[World]:
    """The store is the module's, processes and their connections are the test's own."""
    async with AsyncExitStack() as stack:
        yield World(served, database, stack)


@pytest.fixture
async def source_id(served: Served) -> str:
    return (await served.any_source())[1]
