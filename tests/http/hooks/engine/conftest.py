"""The data path over every backend: ask for `world`."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.support.hooks_engine import (
    INDEX_LAG_SECONDS,
    HooksNode,
    HooksWorld,
    hooks_on_dynamodb,
    hooks_on_postgres,
)
from tests.support.postgres import TestPostgres
from tests.support.receiver import Receiver

POSTGRES, LAGGING, DYNAMODB = "postgres", "postgres-lagging-indexes", "dynamodb"
ON_BOTH = [POSTGRES, pytest.param(DYNAMODB, marks=pytest.mark.dynamodb)]


@pytest.fixture(params=ON_BOTH)
async def world(request: pytest.FixtureRequest) -> AsyncIterator[HooksWorld]:
    if request.param == DYNAMODB:
        async with hooks_on_dynamodb(request.getfixturevalue("dynamodb_endpoint")) as found:
            yield found
    else:
        server: TestPostgres = request.getfixturevalue("postgres")
        lag = INDEX_LAG_SECONDS if request.param == LAGGING else None
        async with hooks_on_postgres(server, lag) as found:
            yield found


@pytest.fixture
async def node(world: HooksWorld) -> HooksNode:
    return await world.node()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver() as found:
        yield found
