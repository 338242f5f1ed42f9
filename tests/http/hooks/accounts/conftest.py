"""The accounts API over every backend: ask for `shared` (one store a module) or `served` (one a test)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import pytest
from tests.support.hooks_accounts import INDEX_LAG_SECONDS, Served, serving_dynamodb, serving_postgres
from tests.support.postgres import TestPostgres

POSTGRES, LAGGING, DYNAMODB = "postgres", "postgres-lagging-indexes", "dynamodb"
ON_BOTH = [POSTGRES, pytest.param(DYNAMODB, marks=pytest.mark.dynamodb)]
ON_ALL = [POSTGRES, LAGGING, pytest.param(DYNAMODB, marks=pytest.mark.dynamodb)]


def serving(request: pytest.FixtureRequest, backend: str) -> AbstractAsyncContextManager[Served]:
    if backend == DYNAMODB:
        return serving_dynamodb(request.getfixturevalue("dynamodb_endpoint"))
    server: TestPostgres = request.getfixturevalue("postgres")
    return serving_postgres(server, INDEX_LAG_SECONDS if backend == LAGGING else None)


@pytest.fixture(scope="module", params=ON_BOTH)
async def shared(request: pytest.FixtureRequest) -> AsyncIterator[Served]:
    """For tests that don't care what others left in the store, nor move the clock by much."""
    async with serving(request, request.param) as found:
        yield found


@pytest.fixture(params=ON_BOTH)
async def served(request: pytest.FixtureRequest) -> AsyncIterator[Served]:
    async with serving(request, request.param) as found:
        yield found


@pytest.fixture(params=ON_ALL)
async def lagging(request: pytest.FixtureRequest) -> AsyncIterator[Served]:
    """`served`, also with indexes that answer as of 500 ms ago: for what is found by an index."""
    async with serving(request, request.param) as found:
        yield found
