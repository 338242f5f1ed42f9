"""One DynamoDB Local for these tests, and an account of its own for each."""

from collections.abc import AsyncIterator

import pytest
from tests.contract.dynamodb.opening import Account, new_account
from tests.contract.dynamodb.proxy import Proxy, open_proxy

from crossdock.engines.items.dynamodb import DynamoClient


@pytest.fixture
def account(dynamodb_endpoint: str) -> Account:
    return new_account(dynamodb_endpoint)


@pytest.fixture
async def client(account: Account) -> AsyncIterator[DynamoClient]:
    client = account.client()
    yield client
    await client.close()


@pytest.fixture
async def proxy(dynamodb_endpoint: str) -> AsyncIterator[Proxy]:
    async with open_proxy(dynamodb_endpoint) as proxy:
        yield proxy


@pytest.fixture
async def proxied_client(account: Account, proxy: Proxy) -> AsyncIterator[DynamoClient]:
    client = account.client(endpoint=proxy.endpoint)
    yield client
    await client.close()
