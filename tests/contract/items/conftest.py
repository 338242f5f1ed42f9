"""Every test of the suite runs on every backend: ask for `harness`."""

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.contract.items.backends import INDEX_LAG_SECONDS, open_dynamodb, open_postgres
from tests.contract.items.harness import Harness
from tests.support.dynamodb_local import DynamoDBLocal, EngineMissing
from tests.support.engines import missing_engine
from tests.support.postgres import TestPostgres


@pytest.fixture(scope="session")
async def postgres_harness(postgres: TestPostgres) -> AsyncIterator[Harness]:
    async with open_postgres(postgres) as harness:
        yield harness


@pytest.fixture(scope="session")
async def postgres_lagging_harness(postgres: TestPostgres) -> AsyncIterator[Harness]:
    async with open_postgres(postgres, INDEX_LAG_SECONDS) as harness:
        yield harness


@pytest.fixture(scope="session")
def dynamodb_endpoint() -> Iterator[str]:
    engine = DynamoDBLocal()
    try:
        engine.start()
    except EngineMissing as missing:
        missing_engine("DynamoDB Local", str(missing))
    yield engine.endpoint
    engine.stop()


@pytest.fixture(scope="session")
async def dynamodb_harness(dynamodb_endpoint: str, postgres: TestPostgres) -> AsyncIterator[Harness]:
    async with open_dynamodb(dynamodb_endpoint, postgres) as harness:
        yield harness


@pytest.fixture(
    scope="session",
    params=[
        "postgres_harness",
        "postgres_lagging_harness",
        pytest.param("dynamodb_harness", marks=pytest.mark.dynamodb),
    ],
    ids=["postgres", "postgres-lagging-indexes", "dynamodb"],
)
def harness(request: pytest.FixtureRequest) -> Harness:
    found: Harness = request.getfixturevalue(request.param)
    return found


@pytest.fixture(autouse=True)
def _real_time_again(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test moved the clock by ends with it."""
    if "harness" not in request.fixturenames:
        yield
        return
    harness: Harness = request.getfixturevalue("harness")
    yield
    harness.clock.reset()
