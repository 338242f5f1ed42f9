"""The contract's records and queries, as another program sees them in DynamoDB with AWS's own client."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import boto3
import pytest
from tests.support.hooks_accounts import REGION, Served, new_email, serving_dynamodb

pytestmark = pytest.mark.dynamodb

TABLE = "ferryhook-main"


@dataclass
class Contract:
    served: Served
    dynamodb: Any

    async def item(self, **key: str) -> dict[str, Any]:
        typed = {name: {"S": value} for name, value in key.items()}
        found = await asyncio.to_thread(
            self.dynamodb.get_item, TableName=TABLE, Key=typed, ConsistentRead=True
        )
        item: dict[str, Any] = found["Item"]
        return item

    async def query(self, condition: str, index: str | None = None, **values: str) -> list[dict[str, Any]]:
        asked: dict[str, Any] = {"TableName": TABLE, "KeyConditionExpression": condition}
        asked["ExpressionAttributeValues"] = {f":{name}": {"S": value} for name, value in values.items()}
        if index is not None:
            asked["IndexName"] = index
        found = await asyncio.to_thread(self.dynamodb.query, **asked)
        items: list[dict[str, Any]] = found["Items"]
        return items


@pytest.fixture(scope="module")
async def contract(dynamodb_endpoint: str) -> AsyncIterator[Contract]:
    access_key = uuid4().hex
    client = boto3.client(
        "dynamodb",
        endpoint_url=dynamodb_endpoint,
        region_name=REGION,
        aws_access_key_id=access_key,
        aws_secret_access_key="local",
    )
    async with serving_dynamodb(dynamodb_endpoint, access_key) as served:
        yield Contract(served, client)
    client.close()


def types(item: dict[str, Any]) -> dict[str, str]:
    return {name: kind for name, value in item.items() for kind in value}


async def test_a_user_has_the_contracts_attributes_and_types(contract: Contract) -> None:
    user = await contract.served.user(stripe_customer_id="cus_1", alert_url="https://example.com")
    item = await contract.item(PK=f"USER#{user['user_id']}", SK="PROFILE")
    texts = ("PK", "SK", "GSI1PK", "GSI1SK", "GSI2PK", "GSI2SK", "userId", "email", "name", "passwordHash")
    more = ("plan", "stripeCustomerId", "usagePeriodStart", "createdAt", "updatedAt", "alertUrl")
    assert types(item) == {
        **dict.fromkeys((*texts, *more), "S"),
        "usageThisMonth": "N",
        "emailProven": "BOOL",
    }


async def test_a_user_without_a_password_has_null_as_its_hash(contract: Contract) -> None:
    user = await contract.served.user(password=None)
    item = await contract.item(PK=f"USER#{user['user_id']}", SK="PROFILE")
    assert item["passwordHash"] == {"NULL": True}


async def test_a_key_has_the_contracts_attributes_and_types(contract: Contract) -> None:
    user = await contract.served.user()
    key = await contract.served.key(user["user_id"])
    item = await contract.item(PK=f"USER#{user['user_id']}", SK=f"KEY#{key['key_id']}")
    names = ("PK", "SK", "GSI2PK", "GSI2SK", "keyId", "userId", "name", "keyHash", "keyPrefix", "permissions")
    assert types(item) == dict.fromkeys((*names, "createdAt"), "S")


async def test_the_contracts_access_patterns_find_users_and_keys(contract: Contract) -> None:
    email = new_email().replace("ann", "Ann")
    user = await contract.served.user(email=email)
    keys = [await contract.served.key(user["user_id"]) for _ in range(2)]
    partition = f"USER#{user['user_id']}"
    by_email = await contract.query("GSI1PK = :email", "GSI1", email=f"EMAIL#{email.lower()}")
    assert [item["userId"]["S"] for item in by_email] == [user["user_id"]]
    for key in keys:
        key_hash = hashlib.sha256(key["api_key"].encode()).hexdigest()
        by_hash = await contract.query("GSI2PK = :hash", "GSI2", hash=f"KEYHASH#{key_hash}")
        assert [item["keyId"]["S"] for item in by_hash] == [key["key_id"]]
    own = await contract.query("PK = :user AND begins_with(SK, :key)", user=partition, key="KEY#")
    assert {item["keyId"]["S"] for item in own} == {key["key_id"] for key in keys}
    sources = await contract.query("PK = :user AND begins_with(SK, :src)", user=partition, src="SRC#")
    assert sources == []


async def test_a_session_expires_by_the_tables_ttl(contract: Contract) -> None:
    user = await contract.served.user()
    token = await contract.served.token(user["email"])
    item = await contract.item(PK=f"SESSION#{hashlib.sha256(token.encode()).hexdigest()}", SK="SESSION")
    assert item["expiresAt"] == {"N": str(contract.served.now_ms // 1000 + 86_400)}
    described = contract.dynamodb.describe_time_to_live(TableName=TABLE)["TimeToLiveDescription"]
    assert described["AttributeName"] == "expiresAt"
