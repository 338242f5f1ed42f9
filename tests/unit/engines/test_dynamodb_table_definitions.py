"""What tables are asked for, and which differences of existing ones are named."""

from dataclasses import replace
from typing import Any

import pytest

from crossdock.engines.items.dynamodb.tables import creation_request, differences_of
from crossdock.engines.items.port import Index, Table

TABLE = Table(
    "devices",
    partition="hardware_id",
    sort="ts_batch",
    indexes=(Index("gsi1", "gsi1pk", "gsi1sk"), Index("by_owner", "owner", projection="keys")),
    ttl="expiration_time",
    stream=True,
)


def description(table: Table = TABLE) -> dict[str, Any]:
    """As DynamoDB would describe a table made from the request: it repeats these parts."""
    return creation_request(table, "")


def test_a_table_is_asked_for_with_keys_indexes_and_stream_and_paid_by_use() -> None:
    assert creation_request(TABLE, "test-") == {
        "TableName": "test-devices",
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [
            {"AttributeName": "hardware_id", "KeyType": "HASH"},
            {"AttributeName": "ts_batch", "KeyType": "RANGE"},
        ],
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": "S"}
            for name in ("hardware_id", "ts_batch", "gsi1pk", "gsi1sk", "owner")
        ],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": "gsi1",
                "KeySchema": [
                    {"AttributeName": "gsi1pk", "KeyType": "HASH"},
                    {"AttributeName": "gsi1sk", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            },
            {
                "IndexName": "by_owner",
                "KeySchema": [{"AttributeName": "owner", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            },
        ],
        "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    }


def test_a_table_without_indexes_and_stream_does_not_mention_them() -> None:
    request = creation_request(Table("plain", partition="id"), "")
    assert set(request) == {"TableName", "BillingMode", "KeySchema", "AttributeDefinitions"}


@pytest.mark.parametrize(
    ("existing", "ttl"),
    [
        (TABLE, "expiration_time"),
        (TABLE, None),
        (replace(TABLE, indexes=()), None),
        (replace(TABLE, stream=False), None),
        (replace(TABLE, indexes=(*TABLE.indexes, Index("somebody_elses", "x"))), "expiration_time"),
    ],
    ids=["the same", "no ttl yet", "no indexes yet", "no stream yet", "an index more"],
)
def test_what_is_missing_or_extra_is_no_difference(existing: Table, ttl: str | None) -> None:
    assert differences_of(TABLE, description(existing), ttl) == []


@pytest.mark.parametrize(
    ("existing", "ttl", "expected"),
    [
        (
            replace(TABLE, sort=None),
            None,
            "the key is hardware_id (S), should be hardware_id (S) + ts_batch (S)",
        ),
        (replace(TABLE, partition="id"), None, "the key is id (S) + ts_batch (S)"),
        (TABLE, "ttl", "the TTL attribute is ttl, should be expiration_time"),
        (
            replace(TABLE, indexes=(Index("gsi1", "gsi1pk"),)),
            None,
            "index gsi1: the key is gsi1pk (S), should be gsi1pk (S) + gsi1sk (S)",
        ),
        (
            replace(TABLE, indexes=(Index("by_owner", "owner", projection="all"),)),
            None,
            "index by_owner: the projection is ALL, should be KEYS_ONLY",
        ),
    ],
)
def test_each_difference_is_named(existing: Table, ttl: str | None, expected: str) -> None:
    (found,) = differences_of(TABLE, description(existing), ttl)
    assert found.startswith(expected)


def test_a_key_of_another_type_is_named() -> None:
    existing = description()
    existing["AttributeDefinitions"][1]["AttributeType"] = "N"
    (found,) = differences_of(TABLE, existing, None)
    assert found == "the key is hardware_id (S) + ts_batch (N), should be hardware_id (S) + ts_batch (S)"


def test_a_stream_without_old_images_is_named() -> None:
    existing = description()
    existing["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    assert differences_of(TABLE, existing, None) == [
        "the stream holds KEYS_ONLY, should be NEW_AND_OLD_IMAGES"
    ]


def test_a_ttl_where_there_should_be_none_is_named() -> None:
    plain = replace(TABLE, ttl=None)
    assert differences_of(plain, description(plain), "expires") == [
        "the TTL attribute is expires, there should be none"
    ]


def test_all_differences_are_named_at_once() -> None:
    existing = replace(TABLE, sort=None, indexes=(Index("gsi1", "other", projection="keys"),))
    assert len(differences_of(TABLE, description(existing), "ttl")) == 4
