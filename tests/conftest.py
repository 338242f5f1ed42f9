"""Engines that suites share: each started once, when the first test asks for it, and always stopped."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.support.clock import ManualClock
from tests.support.dynamodb_local import DynamoDBLocal, EngineMissing
from tests.support.engines import missing_engine
from tests.support.postgres import TestPostgres
from tests.support.redis_server import MEND as MEND_REDIS
from tests.support.redis_server import RedisServer, find_redis_server

from crossdock.engines.sql.target import PostgresTarget


@pytest.fixture(scope="session")
def postgres() -> Iterator[TestPostgres]:
    with TestPostgres() as server:
        yield server


@pytest.fixture
async def database(postgres: TestPostgres) -> AsyncIterator[PostgresTarget]:
    """An empty database of the test's own. For one per module, call `postgres.create_database` yourself."""
    target = await postgres.create_database()
    yield target
    await postgres.drop_database(target)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    if find_redis_server() is None:
        missing_engine("redis-server", MEND_REDIS)
    with RedisServer() as server:
        yield server


@pytest.fixture
def redis_url(redis_server: RedisServer) -> str:
    return redis_server.url


@pytest.fixture(scope="session")
def dynamodb_endpoint() -> Iterator[str]:
    """Mark what asks for it `dynamodb`. DynamoDB Local keeps the tables of each access key apart."""
    engine = DynamoDBLocal()
    try:
        engine.start()
    except EngineMissing as missing:
        missing_engine("DynamoDB Local", str(missing))
    yield engine.endpoint
    engine.stop()
