"""Servers that several of these modules ask, and what they keep in DynamoDB.

They are shared for the whole session: a test compares with what it found, and takes nothing for its own but
what it made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from tests.crash.stores import DynamoStore
from tests.support.server import Server


@pytest.fixture(scope="session")
def embedded_server() -> Iterator[Server]:
    """On its own PostgreSQL, with two lanes."""
    with Server("--workers", "2") as server:
        yield server


@pytest.fixture(scope="session")
def dynamodb_store(dynamodb_endpoint: str) -> DynamoStore:
    return DynamoStore(dynamodb_endpoint)


@pytest.fixture(scope="session")
def dynamodb_server(dynamodb_store: DynamoStore) -> Iterator[Server]:
    """It keeps readings for a hundred years: what a contract gives as an example is old."""
    own = {"CROSSDOCK_DEVICES_RETENTION_DAYS": "36500", "CROSSDOCK_DEVICES_KEY_PEPPER": "pepper"}
    with Server(environ={**dynamodb_store.environ, **own}) as server:
        yield server


@pytest.fixture(scope="session")
def dynamodb(dynamodb_server: Server) -> Iterator[Any]:
    """AWS's own client, looking at that server's tables."""
    environ = dynamodb_server.environ
    client: Any = boto3.client(
        "dynamodb",
        endpoint_url=environ["CROSSDOCK_DYNAMODB_ENDPOINT"],
        region_name=environ["AWS_REGION"],
        aws_access_key_id=environ["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environ["AWS_SECRET_ACCESS_KEY"],
    )
    yield client
    client.close()
