"""Tables in DynamoDB as the slices declare them, seen through boto3."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.contract.dynamodb.opening import Account
from tests.contract.dynamodb.proxy import Answer, Call, Proxy, error

from crossdock.engines.items.dynamodb import DynamoClient, TablesDiffer, check, create_tables
from crossdock.engines.items.port import Index, Query, Table
from crossdock.kit.errors import CrossdockError, Unavailable

pytestmark = pytest.mark.dynamodb

DEVICES = Table(
    "devices",
    partition="hardware_id",
    sort="ts_batch",
    indexes=(Index("gsi1", "gsi1pk", "gsi1sk"), Index("by_owner", "owner", projection="keys")),
    ttl="expiration_time",
    stream=True,
    point_in_time_recovery=True,
)
PLAIN = Table("plain", partition="id")


def described(account: Account, name: str) -> dict[str, Any]:
    found: dict[str, Any] = account.boto3().describe_table(TableName=name)["Table"]
    return found


def ttl_of(account: Account, name: str) -> dict[str, Any]:
    found: dict[str, Any] = account.boto3().describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    return found


def index_shapes(description: dict[str, Any]) -> dict[str, tuple[list[tuple[str, str]], str]]:
    return {
        index["IndexName"]: (keys_of(index), index["Projection"]["ProjectionType"])
        for index in description.get("GlobalSecondaryIndexes", [])
    }


def keys_of(description: dict[str, Any]) -> list[tuple[str, str]]:
    return [(key["AttributeName"], key["KeyType"]) for key in description["KeySchema"]]


EXPECTED_INDEXES = {
    "gsi1": ([("gsi1pk", "HASH"), ("gsi1sk", "RANGE")], "ALL"),
    "by_owner": ([("owner", "HASH")], "KEYS_ONLY"),
}


async def test_a_table_is_made_as_it_is_declared(account: Account, client: DynamoClient) -> None:
    await create_tables(client, [DEVICES, PLAIN])

    devices = described(account, "devices")
    assert devices["TableStatus"] == "ACTIVE"
    assert keys_of(devices) == [("hardware_id", "HASH"), ("ts_batch", "RANGE")]
    assert {
        each["AttributeName"]: each["AttributeType"] for each in devices["AttributeDefinitions"]
    } == dict.fromkeys(("hardware_id", "ts_batch", "gsi1pk", "gsi1sk", "owner"), "S")
    assert index_shapes(devices) == EXPECTED_INDEXES
    assert devices["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert devices["StreamSpecification"] == {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    assert ttl_of(account, "devices") == {"TimeToLiveStatus": "ENABLED", "AttributeName": "expiration_time"}

    plain = described(account, "plain")
    assert keys_of(plain) == [("id", "HASH")]
    assert "StreamSpecification" not in plain
    assert ttl_of(account, "plain")["TimeToLiveStatus"] == "DISABLED"


async def test_the_prefix_is_in_every_name_and_only_there(account: Account, client: DynamoClient) -> None:
    await create_tables(client, [DEVICES], table_prefix="stage-")

    names = account.boto3().list_tables()["TableNames"]
    assert names == ["stage-crossdock-stream-positions", "stage-devices"]

    items = account.items(DEVICES, table_prefix="stage-")
    item = {"hardware_id": "a", "ts_batch": "1", "gsi1pk": "all", "gsi1sk": "1"}
    await items.put(DEVICES, {**item})
    assert await items.get(DEVICES, {"hardware_id": "a", "ts_batch": "1"}) == item
    assert (await items.query(Query(DEVICES, "all", index="gsi1"))).items == [item]
    await items.close()
    assert account.boto3().scan(TableName="stage-devices")["Count"] == 1


async def test_tables_that_are_there_stay_as_they_are(account: Account, client: DynamoClient) -> None:
    await create_tables(client, [DEVICES, PLAIN])
    made = described(account, "devices")

    await create_tables(client, [DEVICES, PLAIN])

    again = described(account, "devices")
    assert again["CreationDateTime"] == made["CreationDateTime"]
    assert again["LatestStreamArn"] == made["LatestStreamArn"]


async def test_what_is_not_there_yet_is_added_to_a_table_and_its_items_stay(
    account: Account, client: DynamoClient
) -> None:
    bare = replace(DEVICES, indexes=(), ttl=None, stream=False)
    await create_tables(client, [bare])
    account.boto3().put_item(TableName="devices", Item={"hardware_id": {"S": "a"}, "ts_batch": {"S": "1"}})

    await create_tables(client, [DEVICES])

    devices = described(account, "devices")
    assert index_shapes(devices) == EXPECTED_INDEXES
    assert devices["StreamSpecification"]["StreamViewType"] == "NEW_AND_OLD_IMAGES"
    assert ttl_of(account, "devices")["AttributeName"] == "expiration_time"
    assert account.boto3().scan(TableName="devices")["Count"] == 1


async def test_a_table_that_differs_is_refused_with_every_difference_and_nothing_is_changed(
    account: Account, client: DynamoClient
) -> None:
    other = replace(DEVICES, sort="timestamp", ttl="ends", indexes=(Index("gsi1", "gsi1pk"),))
    await create_tables(client, [other])

    with pytest.raises(TablesDiffer) as refusal:
        await create_tables(client, [PLAIN, DEVICES])

    assert refusal.value.differences == (
        "devices: the key is hardware_id (S) + timestamp (S), should be hardware_id (S) + ts_batch (S)",
        "devices: index gsi1: the key is gsi1pk (S), should be gsi1pk (S) + gsi1sk (S)",
        "devices: the TTL attribute is ends, should be expiration_time",
    )
    assert all(line in refusal.value.message for line in refusal.value.differences)
    assert "plain" not in account.boto3().list_tables()["TableNames"]
    assert index_shapes(described(account, "devices")) == {"gsi1": ([("gsi1pk", "HASH")], "ALL")}


async def test_two_nodes_may_create_the_same_tables_at_once(
    account: Account, proxy: Proxy, proxied_client: DynamoClient
) -> None:
    """The second to ask is told that the table is in use, and goes on with the first one's."""
    proxy.next("CreateTable", made_by_another)

    await create_tables(proxied_client, [replace(DEVICES, stream=False)])

    assert index_shapes(described(account, "devices")) == EXPECTED_INDEXES


async def made_by_another(call: Call) -> Answer:
    await call.forward(call.body)
    return await call.forward(call.body)


async def test_a_missing_table_is_unavailable_and_the_log_says_what_to_do(account: Account) -> None:
    items = account.items(PLAIN)
    with pytest.raises(Unavailable) as raised:
        await items.get(PLAIN, {"id": "a"})
    await items.close()
    assert "crossdock migrate" in raised.value.internal


async def test_an_endpoint_with_transactions_passes_the_check(client: DynamoClient) -> None:
    await check(client)


async def test_an_endpoint_without_transactions_is_refused(
    proxy: Proxy, proxied_client: DynamoClient
) -> None:
    proxy.next("TransactWriteItems", error("UnknownOperationException"))
    with pytest.raises(CrossdockError) as raised:
        await check(proxied_client)
    assert "transactions" in raised.value.message
    assert not isinstance(raised.value, Unavailable)
