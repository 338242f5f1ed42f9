"""What is written, compared with the contract's example records attribute for attribute."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from tests.support.devices import BOOT_ID

from crossdock.devices import store
from crossdock.devices.model import SentReading
from crossdock.devices.rules.batches import Batch
from crossdock.engines.items.conditions import holds
from crossdock.engines.items.port import Index, Item, Put, SortBetween, Table, Update
from crossdock.kit.clock import ms_from_rfc3339

DEVICE = "AA:BB:CC:DD:EE:FF"
BATCH_ID = f"{DEVICE}_{BOOT_ID}_1704067200000_1704067800000"
SENSORS = {
    "bme280_temp_c": 22.5,
    "ds18b20_temp_c": 21.8,
    "humidity_pct": 45.2,
    "pressure_hpa": 1013.25,
    "soil_moisture_pct": 62.3,
}
STATUS = {"bme280": "ok", "ds18b20": "ok", "soil_moisture": "ok"}
CAPABILITIES: dict[str, Any] = {
    "sensors": ["bme280", "ds18b20", "soil_moisture"],
    "features": {"tft_display": True, "offline_buffering": True},
}
# The example's expiration_time is its readings' time plus this much.
RETENTION_SECONDS = 1_707_235_320 - 1_704_067_800

READING_RECORD: dict[str, Any] = {
    "hardware_id": DEVICE,
    "ts_batch": f"1704067800000#{BATCH_ID}",
    "timestamp_ms": 1_704_067_800_000,
    "batch_id": BATCH_ID,
    "boot_id": BOOT_ID,
    "firmware_version": "1.0.16",
    "friendly_name": "greenhouse-sensor-01",
    "sensors": SENSORS,
    "sensor_status": STATUS,
    "expiration_time": 1_707_235_320,
}
MARKER_RECORD: dict[str, Any] = {
    "batch_id": BATCH_ID,
    "hardware_id": DEVICE,
    "received_at": "2024-01-15T14:22:00Z",
    "expiration_time": ms_from_rfc3339("2024-01-15T14:22:00Z") // 1000 + 30 * 24 * 3600,
}
DEVICE_RECORD: dict[str, Any] = {
    "hardware_id": DEVICE,
    "confirmation_id": "550e8400-e29b-41d4-a716-446655440000",
    "friendly_name": "greenhouse-sensor-01",
    "firmware_version": "1.0.16",
    "capabilities": CAPABILITIES,
    "first_registered_at": "2024-01-15T10:30:00Z",
    "last_seen_at": "2024-01-15T10:30:00Z",
    "last_boot_id": BOOT_ID,
    "gsi1pk": "devices",
    "gsi1sk": "2024-01-15T10:30:00Z",
}
KEY_RECORD: dict[str, Any] = {
    "key_id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
    "api_key_hash": hashlib.sha256(b"x").hexdigest(),
    "created_at": "2024-01-10T08:00:00Z",
    "is_active": True,
    "description": "Production devices - greenhouse cluster",
    "gsi1pk": "api_keys",
    "gsi1sk": "2024-01-10T08:00:00Z",
}

READING = SentReading(BATCH_ID, 1_704_067_800_000, BOOT_ID, "1.0.16", SENSORS, STATUS)  # type: ignore[arg-type]
BATCH = Batch(BATCH_ID, "c" * 64, (READING,), (0,))
RECEIVED_MS = ms_from_rfc3339("2024-01-15T14:22:00Z")
REGISTERED_MS = ms_from_rfc3339("2024-01-15T10:30:00Z")
SENT: dict[str, Any] = {
    "boot_id": BOOT_ID,
    "firmware_version": "1.0.16",
    "capabilities": CAPABILITIES,
    "friendly_name": "greenhouse-sensor-01",
}


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (
            store.DEVICES,
            Table("devices", "hardware_id", indexes=(Index("gsi1", "gsi1pk", "gsi1sk"),)),
        ),
        (store.READINGS, Table("device_readings", "hardware_id", "ts_batch", ttl="expiration_time")),
        (store.BATCHES, Table("processed_batches", "batch_id", ttl="expiration_time")),
        (
            store.KEYS,
            Table(
                "api_keys",
                "key_id",
                indexes=(Index("api_key_hash_index", "api_key_hash"), Index("gsi1", "gsi1pk", "gsi1sk")),
            ),
        ),
    ],
)
def test_the_tables_are_those_of_the_contract(table: Table, expected: Table) -> None:
    assert table == expected


def writes(friendly_name: str | None, retention_seconds: int) -> list[Item]:
    found = store.batch_writes(DEVICE, BATCH, friendly_name, retention_seconds, RECEIVED_MS)
    return [write.item for write in found if isinstance(write, Put)]


def test_a_batch_is_a_marker_and_readings_as_in_the_examples() -> None:
    marker, reading = writes("greenhouse-sensor-01", RETENTION_SECONDS)
    assert reading == READING_RECORD
    assert marker == MARKER_RECORD | {"content_sha256": "c" * 64}


def test_every_write_of_a_batch_is_a_put_if_absent() -> None:
    for write in store.batch_writes(DEVICE, BATCH, None, 0, RECEIVED_MS):
        assert isinstance(write, Put)
        assert holds(write.condition, None)
        assert not holds(write.condition, write.item)


def test_optional_attributes_of_a_reading_are_left_out_not_null() -> None:
    _, reading = writes(None, 0)
    assert reading == {
        name: value
        for name, value in READING_RECORD.items()
        if name not in ("friendly_name", "expiration_time")
    }


def test_a_new_device_is_as_in_the_example() -> None:
    put = store.new_device(DEVICE, SENT, str(DEVICE_RECORD["confirmation_id"]), REGISTERED_MS + 999)
    assert put.item == DEVICE_RECORD
    assert holds(put.condition, None)
    assert not holds(put.condition, put.item)


def test_a_device_without_a_name_has_no_such_attribute() -> None:
    put = store.new_device(DEVICE, SENT | {"friendly_name": None}, "x", REGISTERED_MS)
    assert "friendly_name" not in put.item


@pytest.mark.parametrize("hardware_id", [None, DEVICE])
def test_a_new_key_is_as_in_the_example(hardware_id: str | None) -> None:
    put = store.new_key(
        str(KEY_RECORD["key_id"]),
        str(KEY_RECORD["api_key_hash"]),
        str(KEY_RECORD["description"]),
        hardware_id,
        ms_from_rfc3339("2024-01-10T08:00:00Z"),
    )
    assert put.item == (KEY_RECORD if hardware_id is None else KEY_RECORD | {"hardware_id": hardware_id})


@pytest.mark.parametrize(
    ("timestamp_ms", "key"),
    [(0, "0000000000000#b"), (946_684_800_000, "0946684800000#b"), (1_704_067_800_000, "1704067800000#b")],
)
def test_a_readings_sort_key_has_thirteen_digits(timestamp_ms: int, key: str) -> None:
    assert store.ts_batch(timestamp_ms, "b") == key


def test_a_range_of_time_is_asked_for_as_the_contract_says() -> None:
    query = store.readings_between(DEVICE, 1_704_067_200_000, 5, descending=False, limit=1, after=None)
    assert query.sort == SortBetween("1704067200000#", "0000000000005#\uffff")


@pytest.mark.parametrize(
    ("last_seen_at", "deleted", "allowed"),
    [
        ("2024-01-15T14:21:00Z", False, True),
        ("2024-01-15T14:21:01Z", False, False),
        ("2024-01-15T14:22:30Z", False, False),
        ("2024-01-15T10:30:00Z", True, False),
    ],
)
def test_activity_is_written_once_a_minute_and_never_moves_back(
    last_seen_at: str, deleted: bool, allowed: bool
) -> None:
    update = store.device_seen(DEVICE, RECEIVED_MS)
    item = DEVICE_RECORD | {"last_seen_at": last_seen_at} | ({"deleted_at": "x"} if deleted else {})
    assert holds(update.condition, item) is allowed
    assert not holds(update.condition, None)
    assert changed(update) == {"last_seen_at": "2024-01-15T14:22:00Z", "gsi1sk": "2024-01-15T14:22:00Z"}


@pytest.mark.parametrize(
    ("last_used_at", "allowed"),
    [(None, True), ("2024-01-15T14:17:00Z", True), ("2024-01-15T14:17:01Z", False)],
)
def test_use_of_a_key_is_written_every_five_minutes(last_used_at: str | None, allowed: bool) -> None:
    item = KEY_RECORD | ({} if last_used_at is None else {"last_used_at": last_used_at})
    update = store.key_used(str(KEY_RECORD["key_id"]), RECEIVED_MS)
    assert holds(update.condition, item) is allowed
    assert not holds(update.condition, None)


def test_revoking_a_key_changes_nothing_but_that() -> None:
    assert changed(store.key_revoked("x")) == {"is_active": False}


def test_what_is_shown_of_a_device_and_a_key_holds_no_index_keys_and_no_hash() -> None:
    shown = store.device_of(DEVICE_RECORD | {"offline_after_seconds": 5}, REGISTERED_MS)
    assert (shown.offline_after_seconds, shown.status.value) == (5, "reporting")
    assert not {"gsi1pk", "gsi1sk"} & set(shown.__struct_fields__)
    key = store.device_key_of(KEY_RECORD)
    assert not {"gsi1pk", "gsi1sk", "api_key_hash"} & set(key.__struct_fields__)


def changed(update: Update) -> dict[str, Any]:
    return {change.attribute: getattr(change, "value", None) for change in update.changes}
