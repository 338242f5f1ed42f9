"""The contract of the device tables, looked at from outside: what a server leaves in DynamoDB, to the type.

Other programs read these tables. So every table is compared whole, every record has exactly the attributes
of the contract's examples and those named here, and the contract's own queries are asked with AWS's client.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.support.server import Server

pytestmark = pytest.mark.dynamodb

DEVICE = "AA:BB:CC:DD:EE:FF"
BARE_DEVICE = "AA:BB:CC:DD:EE:00"
"""Told only what it must be told."""
YEAR_2001_MS = 978_307_200_000
"""One digit short of thirteen."""
BOOT_ID = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
BATCH_ID = f"{DEVICE}_{BOOT_ID}_1704067200000_1704067800000"
DESCRIPTION = "Production devices - greenhouse cluster"
REGISTRATION: Mapping[str, Any] = {
    "hardware_id": DEVICE,
    "boot_id": BOOT_ID,
    "firmware_version": "1.0.16",
    "friendly_name": "greenhouse-sensor-01",
    "capabilities": {
        "sensors": ["bme280", "ds18b20", "soil_moisture"],
        "features": {"tft_display": True, "offline_buffering": True},
    },
}
READING: Mapping[str, Any] = {
    "batch_id": BATCH_ID,
    "timestamp_ms": 1704067800000,
    "boot_id": BOOT_ID,
    "firmware_version": "1.0.16",
    "sensors": {
        "bme280_temp_c": 22.5,
        "ds18b20_temp_c": 21.8,
        "humidity_pct": 45.2,
        "pressure_hpa": 1013.25,
        "soil_moisture_pct": 62.3,
    },
    "sensor_status": {"bme280": "ok", "ds18b20": "ok", "soil_moisture": "ok"},
}

RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
DAY_SECONDS = 86_400

Record = Mapping[str, Mapping[str, Any]]
"""As DynamoDB's own protocol has it: `{"batch_id": {"S": "…"}}`."""


@dataclass(frozen=True)
class Written:
    """What the server answered."""

    key: Mapping[str, Any]
    device: Mapping[str, Any]
    bare_key: Mapping[str, Any]


@pytest.fixture(scope="module")
def written(dynamodb_server: Server) -> Written:
    operator = dynamodb_server.client()
    key = operator.post("/v1/devices/keys", {"description": DESCRIPTION})
    sensor = dynamodb_server.client(key["api_key"])
    device = sensor.post("/v1/devices/register", REGISTRATION)
    verdict = sensor.post("/v1/devices/readings", {"hardware_id": DEVICE, "readings": [READING]})
    assert verdict == {"acknowledged": [BATCH_ID], "duplicates": [], "rejected": []}
    sensor.post("/v1/devices/register", without(REGISTRATION, "friendly_name") | {"hardware_id": BARE_DEVICE})
    reading = {**READING, "batch_id": "bare", "timestamp_ms": YEAR_2001_MS}
    sensor.post("/v1/devices/readings", {"hardware_id": BARE_DEVICE, "readings": [reading]})
    return Written(key, device, bare_key=operator.post("/v1/devices/keys", {}))


def without(values: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def record(dynamodb: Any, table: str, **key: str) -> Record:
    typed = {name: {"S": value} for name, value in key.items()}
    found: Record = dynamodb.get_item(TableName=table, Key=typed, ConsistentRead=True)["Item"]
    return found


def types(item: Record) -> dict[str, str]:
    return {name: kind for name, value in item.items() for kind in value}


def text(item: Record, name: str) -> str:
    return str(item[name]["S"])


def number(item: Record, name: str) -> int:
    """A whole one, written as such."""
    return int(item[name]["N"])


def epoch_seconds(rfc3339: str) -> int:
    assert RFC3339.fullmatch(rfc3339)
    return int(datetime.strptime(rfc3339, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp())


# --- tables ----------------------------------------------------------------------------------------


def gsi(*key: str) -> dict[str, Any]:
    return {"key": list(key), "projection": {"ProjectionType": "ALL"}}


TABLES: dict[str, dict[str, Any]] = {
    "devices": {"key": ["hardware_id"], "indexes": {"gsi1": gsi("gsi1pk", "gsi1sk")}, "ttl": None},
    "device_readings": {"key": ["hardware_id", "ts_batch"], "indexes": {}, "ttl": "expiration_time"},
    "processed_batches": {"key": ["batch_id"], "indexes": {}, "ttl": "expiration_time"},
    "api_keys": {
        "key": ["key_id"],
        "indexes": {"api_key_hash_index": gsi("api_key_hash"), "gsi1": gsi("gsi1pk", "gsi1sk")},
        "ttl": None,
    },
}


def test_the_tables_are_those_of_the_contract_and_our_own_by_their_name(
    dynamodb: Any, written: Written
) -> None:
    names = dynamodb.list_tables()["TableNames"]
    others = ("crossdock-", "ferryhook-")
    assert {name for name in names if not name.startswith(others)} == TABLES.keys()


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_the_keys_indexes_and_ttl_of_the_contract(dynamodb: Any, name: str) -> None:
    table, wanted = dynamodb.describe_table(TableName=name)["Table"], TABLES[name]
    indexes = {index["IndexName"]: index for index in table.get("GlobalSecondaryIndexes", [])}
    assert key_of(table) == wanted["key"]
    assert {
        index_name: {"key": key_of(index), "projection": index["Projection"]}
        for index_name, index in indexes.items()
    } == wanted["indexes"]
    assert "LocalSecondaryIndexes" not in table
    used_in_keys = {*wanted["key"], *(each for index in wanted["indexes"].values() for each in index["key"])}
    types = {each["AttributeName"]: each["AttributeType"] for each in table["AttributeDefinitions"]}
    assert types == dict.fromkeys(used_in_keys, "S")
    ttl = dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    off = {"TimeToLiveStatus": "DISABLED"}
    assert ttl == (
        off if wanted["ttl"] is None else {"TimeToLiveStatus": "ENABLED", "AttributeName": wanted["ttl"]}
    )


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_billed_by_request_and_asks_for_nothing_more(dynamodb: Any, name: str) -> None:
    table = dynamodb.describe_table(TableName=name)["Table"]
    assert table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert table["ProvisionedThroughput"]["WriteCapacityUnits"] == 0
    assert "StreamSpecification" not in table


def key_of(described: Mapping[str, Any]) -> list[str]:
    assert [each["KeyType"] for each in described["KeySchema"]] == ["HASH", "RANGE"][
        : len(described["KeySchema"])
    ]
    return [each["AttributeName"] for each in described["KeySchema"]]


# --- records ---------------------------------------------------------------------------------------

DEVICE_TYPES = {
    "hardware_id": "S",
    "confirmation_id": "S",
    "capabilities": "M",
    "first_registered_at": "S",
    "last_seen_at": "S",
    "last_boot_id": "S",
    "firmware_version": "S",
    "friendly_name": "S",
    "gsi1pk": "S",
    "gsi1sk": "S",
}
READING_TYPES = {
    "hardware_id": "S",
    "ts_batch": "S",
    "timestamp_ms": "N",
    "batch_id": "S",
    "boot_id": "S",
    "firmware_version": "S",
    "friendly_name": "S",
    "sensors": "M",
    "sensor_status": "M",
    "expiration_time": "N",
}
MARKER_TYPES = {
    "batch_id": "S",
    "hardware_id": "S",
    "received_at": "S",
    "expiration_time": "N",
    "content_sha256": "S",
}
KEY_TYPES = {
    "key_id": "S",
    "api_key_hash": "S",
    "created_at": "S",
    "last_used_at": "S",
    "is_active": "BOOL",
    "description": "S",
    "gsi1pk": "S",
    "gsi1sk": "S",
}


def test_a_device_is_the_record_of_the_contract(dynamodb: Any, written: Written) -> None:
    item = record(dynamodb, "devices", hardware_id=DEVICE)
    assert types(item) == DEVICE_TYPES
    assert UUID4.fullmatch(text(item, "confirmation_id"))
    assert text(item, "confirmation_id") == written.device["confirmation_id"]
    assert RFC3339.fullmatch(text(item, "first_registered_at"))
    assert epoch_seconds(text(item, "last_seen_at")) >= epoch_seconds(text(item, "first_registered_at"))
    assert text(item, "gsi1sk") == text(item, "last_seen_at")
    assert text(item, "gsi1pk") == "devices"
    assert text(item, "last_boot_id") == BOOT_ID
    assert text(item, "firmware_version") == "1.0.16"
    assert text(item, "friendly_name") == "greenhouse-sensor-01"
    assert item["capabilities"] == {
        "M": {
            "sensors": {"L": [{"S": "bme280"}, {"S": "ds18b20"}, {"S": "soil_moisture"}]},
            "features": {"M": {"tft_display": {"BOOL": True}, "offline_buffering": {"BOOL": True}}},
        }
    }


def test_a_reading_is_the_record_of_the_contract(dynamodb: Any, written: Written) -> None:
    ts_batch = f"1704067800000#{BATCH_ID}"
    item = record(dynamodb, "device_readings", hardware_id=DEVICE, ts_batch=ts_batch)
    assert item == {
        "hardware_id": {"S": DEVICE},
        "ts_batch": {"S": ts_batch},
        "timestamp_ms": {"N": "1704067800000"},
        "batch_id": {"S": BATCH_ID},
        "boot_id": {"S": BOOT_ID},
        "firmware_version": {"S": "1.0.16"},
        "friendly_name": {"S": "greenhouse-sensor-01"},
        "sensors": {
            "M": {
                "bme280_temp_c": {"N": "22.5"},
                "ds18b20_temp_c": {"N": "21.8"},
                "humidity_pct": {"N": "45.2"},
                "pressure_hpa": {"N": "1013.25"},
                "soil_moisture_pct": {"N": "62.3"},
            }
        },
        "sensor_status": {"M": {"bme280": {"S": "ok"}, "ds18b20": {"S": "ok"}, "soil_moisture": {"S": "ok"}}},
        "expiration_time": {"N": str(1704067800000 // 1000 + 36_500 * DAY_SECONDS)},
    }


def test_a_batchs_marker_is_the_record_of_the_contract_with_the_hash_of_its_content(
    dynamodb: Any, written: Written
) -> None:
    item = record(dynamodb, "processed_batches", batch_id=BATCH_ID)
    assert types(item) == MARKER_TYPES
    assert text(item, "hardware_id") == DEVICE
    received = epoch_seconds(text(item, "received_at"))
    assert number(item, "expiration_time") == received + 30 * 24 * 3600
    assert re.fullmatch(r"[0-9a-f]{64}", text(item, "content_sha256"))


def test_a_key_is_the_record_of_the_contract(
    dynamodb: Any, dynamodb_server: Server, written: Written
) -> None:
    item = record(dynamodb, "api_keys", key_id=written.key["key_id"])
    assert types(item) == KEY_TYPES
    assert UUID4.fullmatch(text(item, "key_id"))
    pepper = dynamodb_server.environ["CROSSDOCK_DEVICES_KEY_PEPPER"]
    assert re.fullmatch(r"[0-9a-f]{64}", written.key["api_key"])
    wanted_hash = hashlib.sha256((pepper + written.key["api_key"]).encode()).hexdigest()
    assert text(item, "api_key_hash") == wanted_hash
    assert item["is_active"] == {"BOOL": True}
    assert epoch_seconds(text(item, "last_used_at")) >= epoch_seconds(text(item, "created_at"))
    assert text(item, "gsi1sk") == text(item, "created_at")
    assert text(item, "gsi1pk") == "api_keys"
    assert text(item, "description") == DESCRIPTION


def test_what_was_not_told_is_no_attribute(dynamodb: Any, written: Written) -> None:
    device = record(dynamodb, "devices", hardware_id=BARE_DEVICE)
    assert types(device) == without(DEVICE_TYPES, "friendly_name")
    reading = record(dynamodb, "device_readings", hardware_id=BARE_DEVICE, ts_batch="0978307200000#bare")
    assert types(reading) == without(READING_TYPES, "friendly_name")
    key = record(dynamodb, "api_keys", key_id=written.bare_key["key_id"])
    assert types(key) == without(KEY_TYPES, "description", "last_used_at")


def test_a_setting_of_ones_own_is_one_attribute_more(
    dynamodb: Any, dynamodb_server: Server, written: Written
) -> None:
    operator, hardware_id = dynamodb_server.client(), "AA:BB:CC:DD:EE:01"
    sensor = dynamodb_server.client(written.key["api_key"])
    sensor.post("/v1/devices/register", {**REGISTRATION, "hardware_id": hardware_id})
    operator.patch(f"/v1/devices/{hardware_id}", {"offline_after_seconds": 60})
    device = record(dynamodb, "devices", hardware_id=hardware_id)
    assert device["offline_after_seconds"] == {"N": "60"}
    assert types(device) == {**DEVICE_TYPES, "offline_after_seconds": "N"}
    bound = operator.post("/v1/devices/keys", {"hardware_id": hardware_id})
    key = record(dynamodb, "api_keys", key_id=bound["key_id"])
    assert key["hardware_id"] == {"S": hardware_id}
    assert types(key) == {**without(KEY_TYPES, "description", "last_used_at"), "hardware_id": "S"}


def test_revoking_a_key_changes_only_whether_it_is_active(dynamodb: Any, dynamodb_server: Server) -> None:
    operator = dynamodb_server.client()
    key_id = operator.post("/v1/devices/keys", {"description": "to be revoked"})["key_id"]
    before = record(dynamodb, "api_keys", key_id=key_id)
    operator.post(f"/v1/devices/keys/{key_id}/revoke")
    assert record(dynamodb, "api_keys", key_id=key_id) == {**before, "is_active": {"BOOL": False}}


def test_no_raw_key_is_in_any_table(dynamodb: Any, written: Written) -> None:
    for table in dynamodb.list_tables()["TableNames"]:
        for page in dynamodb.get_paginator("scan").paginate(TableName=table):
            assert written.key["api_key"] not in repr(page["Items"])


# --- the contract's queries ------------------------------------------------------------------------


def test_the_contracts_queries_find_what_was_written(
    dynamodb: Any, dynamodb_server: Server, written: Written
) -> None:
    def query(table: str, condition: str, values: Mapping[str, str], **more: Any) -> list[Record]:
        typed = {name: {"S": value} for name, value in values.items()}
        found: list[Record] = dynamodb.query(
            TableName=table, KeyConditionExpression=condition, ExpressionAttributeValues=typed, **more
        )["Items"]
        return found

    newest_first = {"IndexName": "gsi1", "ScanIndexForward": False}
    devices = query("devices", "gsi1pk = :all", {":all": "devices"}, **newest_first)
    seen = [text(each, "gsi1sk") for each in devices]
    assert DEVICE in [text(each, "hardware_id") for each in devices]
    assert seen == sorted(seen, reverse=True)

    of_device = "hardware_id = :hw_id"
    latest = {"ScanIndexForward": False, "Limit": 1}
    [reading] = query("device_readings", of_device, {":hw_id": DEVICE}, **latest)
    between = {":hw_id": DEVICE, ":from": "1704067200000#", ":to": "1704067800000#\uffff"}
    assert query("device_readings", f"{of_device} AND ts_batch BETWEEN :from AND :to", between) == [reading]
    assert text(reading, "batch_id") == BATCH_ID

    by_hash = {":hash": text(record(dynamodb, "api_keys", key_id=written.key["key_id"]), "api_key_hash")}
    [key] = query("api_keys", "api_key_hash = :hash", by_hash, IndexName="api_key_hash_index")
    assert text(key, "key_id") == written.key["key_id"]
    keys = query("api_keys", "gsi1pk = :all", {":all": "api_keys"}, **newest_first)
    assert written.key["key_id"] in [text(each, "key_id") for each in keys]
