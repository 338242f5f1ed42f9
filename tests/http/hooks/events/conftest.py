"""Events over every backend: ask for `reading`, or `lagging` for what is found by an index.

One store a module: a test makes a source of its own, and does not mind that the clock has moved.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import pytest
from tests.support.hooks_engine import INDEX_LAG_SECONDS
from tests.support.hooks_events import Reading, reading_on_dynamodb, reading_on_postgres
from tests.support.postgres import TestPostgres
from tests.support.receiver import Receiver

POSTGRES, LAGGING, DYNAMODB = "postgres", "postgres-lagging-indexes", "dynamodb"
ON_BOTH = [POSTGRES, pytest.param(DYNAMODB, marks=pytest.mark.dynamodb)]
ON_ALL = [POSTGRES, LAGGING, pytest.param(DYNAMODB, marks=pytest.mark.dynamodb)]


def opened(request: pytest.FixtureRequest, backend: str) -> AbstractAsyncContextManager[Reading]:
    if backend == DYNAMODB:
        return reading_on_dynamodb(request.getfixturevalue("dynamodb_endpoint"))
    server: TestPostgres = request.getfixturevalue("postgres")
    return reading_on_postgres(server, INDEX_LAG_SECONDS if backend == LAGGING else None)


@pytest.fixture(scope="module", params=ON_BOTH)
async def reading(request: pytest.FixtureRequest) -> AsyncIterator[Reading]:
    async with opened(request, request.param) as found:
        yield found


@pytest.fixture(scope="module", params=ON_ALL)
async def lagging(request: pytest.FixtureRequest) -> AsyncIterator[Reading]:
    async with opened(request, request.param) as found:
        yield found


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver() as found:
        yield found
