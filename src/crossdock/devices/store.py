"""Keys and access patterns of the four device tables; the only file that knows how they are stored.

Access patterns: a device by id; devices by last activity (`gsi1`); a device's readings by time, forward,
backward and the latest; a batch's marker by id; a key by id, by hash (`api_key_hash_index`), all by age.

A device that is being deleted keeps its record until its readings are gone: `deleted_at` is set and it moves
to the partition `deleting` of `gsi1`, where the role that finishes deletions finds it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

import msgspec

from crossdock.devices.model import OFFLINE_AFTER_SECONDS_DEFAULT, Device, DeviceKey, SentReading
from crossdock.devices.rules.activity import LAST_SEEN_EVERY_MS, LAST_USED_EVERY_MS, status_of
from crossdock.devices.rules.batches import Batch
from crossdock.engines.items.conditions import Absent, Compare, Condition, Exists, all_of, any_of, equals
from crossdock.engines.items.port import (
    Change,
    Check,
    Cursor,
    Delete,
    Index,
    Item,
    Put,
    Query,
    Set,
    SetIfAbsent,
    SortBetween,
    Table,
    Update,
    Value,
    Write,
)
from crossdock.kit.clock import ms_from_rfc3339, rfc3339

MARKER_SECONDS = 30 * 86_400

DEVICES = Table("devices", "hardware_id", indexes=(Index("gsi1", "gsi1pk", "gsi1sk"),))
READINGS = Table("device_readings", "hardware_id", "ts_batch", ttl="expiration_time")
BATCHES = Table("processed_batches", "batch_id", ttl="expiration_time")
KEYS = Table(
    "api_keys",
    "key_id",
    indexes=(Index("api_key_hash_index", "api_key_hash"), Index("gsi1", "gsi1pk", "gsi1sk")),
)

_LISTED, _DELETING, _LISTED_KEYS = "devices", "deleting", "api_keys"
_INDEX_KEYS = ("gsi1pk", "gsi1sk")

# --- devices ---------------------------------------------------------------------------------------


def device_key(hardware_id: str) -> dict[str, str]:
    return {"hardware_id": hardware_id}


def is_deleted(device: Mapping[str, Value]) -> bool:
    return "deleted_at" in device


def new_device(hardware_id: str, sent: Mapping[str, Any], confirmation_id: str, now_ms: int) -> Put:
    """`sent`: boot_id, firmware_version, capabilities and perhaps friendly_name."""
    now = rfc3339(now_ms)
    item: Item = {
        "hardware_id": hardware_id,
        "confirmation_id": confirmation_id,
        "capabilities": sent["capabilities"],
        "first_registered_at": now,
        "last_seen_at": now,
        "last_boot_id": sent["boot_id"],
        "firmware_version": sent["firmware_version"],
        "gsi1pk": _LISTED,
        "gsi1sk": now,
    }
    if sent.get("friendly_name") is not None:
        item["friendly_name"] = sent["friendly_name"]
    return Put(DEVICES, item, Absent("hardware_id"))


def registered_again(hardware_id: str, sent: Mapping[str, Any], now_ms: int, *, seen: bool) -> Update:
    """`seen`: moves `last_seen_at` to now, on condition that this is forward."""
    changes: list[Change] = [
        Set("last_boot_id", sent["boot_id"]),
        Set("firmware_version", sent["firmware_version"]),
        Set("capabilities", sent["capabilities"]),
    ]
    if sent.get("friendly_name") is not None:
        changes.append(SetIfAbsent("friendly_name", sent["friendly_name"]))
    condition: Condition = _is_live()
    if seen:
        now = rfc3339(now_ms)
        changes += [Set("last_seen_at", now), Set("gsi1sk", now)]
        condition = all_of(condition, Compare("last_seen_at", "<=", now))
    return Update(DEVICES, device_key(hardware_id), tuple(changes), condition)


def device_seen(hardware_id: str, now_ms: int) -> Update:
    now = rfc3339(now_ms)
    return Update(
        DEVICES,
        device_key(hardware_id),
        (Set("last_seen_at", now), Set("gsi1sk", now)),
        all_of(_is_live(), Compare("last_seen_at", "<=", rfc3339(now_ms - LAST_SEEN_EVERY_MS))),
    )


def device_changed(hardware_id: str, changes: tuple[Change, ...]) -> Update:
    return Update(DEVICES, device_key(hardware_id), changes, _is_live())


def device_deleted(hardware_id: str, now_ms: int) -> Update:
    changes = (Set("deleted_at", rfc3339(now_ms)), Set("gsi1pk", _DELETING))
    return Update(DEVICES, device_key(hardware_id), changes, _is_live())


def device_gone(device: Mapping[str, Value]) -> Delete:
    """`device`: as it was read, being deleted; not one that came back and was deleted again."""
    deleted_at = equals("deleted_at", str(device["deleted_at"]))
    return Delete(DEVICES, DEVICES.key_of(device), deleted_at)


def deleted_ms(device: Mapping[str, Value]) -> int:
    return ms_from_rfc3339(str(device["deleted_at"]))


def _is_live() -> Condition:
    return all_of(Exists("hardware_id"), Absent("deleted_at"))


def devices_by_activity(limit: int, after: Mapping[str, str] | None) -> Query:
    """`after`: a `device_position`."""
    return _newest_first(DEVICES, _LISTED, limit, after)


def device_position(indexed: Mapping[str, Value]) -> dict[str, str]:
    return {"hardware_id": str(indexed["hardware_id"]), "gsi1sk": str(indexed["gsi1sk"])}


def _newest_first(table: Table, partition: str, limit: int, after: Mapping[str, str] | None) -> Query:
    cursor: Cursor | None = None if after is None else {"gsi1pk": partition, **after}
    return Query(table, partition, index="gsi1", descending=True, limit=limit, after=cursor)


def devices_being_deleted(limit: int) -> Query:
    return Query(DEVICES, _DELETING, index="gsi1", limit=limit)


def device_of(item: Mapping[str, Value], now_ms: int) -> Device:
    shown = {name: value for name, value in item.items() if name not in _INDEX_KEYS}
    offline_after = shown.get("offline_after_seconds", OFFLINE_AFTER_SECONDS_DEFAULT)
    assert isinstance(offline_after, int)
    status = status_of(last_seen_ms(item), offline_after, now_ms)
    return msgspec.convert({**shown, "status": status}, Device)


def last_seen_ms(item: Mapping[str, Value]) -> int:
    return ms_from_rfc3339(str(item["last_seen_at"]))


# --- readings and markers --------------------------------------------------------------------------


def ts_batch(timestamp_ms: int, batch_id: str) -> str:
    return f"{timestamp_ms:013}#{batch_id}"


def reading_key(hardware_id: str, reading: SentReading) -> dict[str, str]:
    return {"hardware_id": hardware_id, "ts_batch": ts_batch(reading.timestamp_ms, reading.batch_id)}


def batch_writes(
    hardware_id: str, batch: Batch, friendly_name: str | None, retention_seconds: int, now_ms: int
) -> list[Write]:
    """The marker if absent and every reading if absent: the contract's idempotency pattern."""
    writes: list[Write] = [marker(hardware_id, batch, now_ms)]
    for reading in batch.readings:
        timestamp_ms = reading.timestamp_ms
        item: Item = {
            "hardware_id": hardware_id,
            "ts_batch": ts_batch(timestamp_ms, reading.batch_id),
            "timestamp_ms": timestamp_ms,
            "batch_id": reading.batch_id,
            "boot_id": reading.boot_id,
            "firmware_version": reading.firmware_version,
            "sensors": reading.sensors,  # type: ignore[dict-item]  # dict is invariant in its values
            "sensor_status": reading.sensor_status,  # type: ignore[dict-item]
        }
        if friendly_name is not None:
            item["friendly_name"] = friendly_name
        if retention_seconds:
            item["expiration_time"] = timestamp_ms // 1000 + retention_seconds
        writes.append(Put(READINGS, item, _NO_READING))
    return writes


_NO_READING = Absent("hardware_id")
_NO_MARKER = Absent("batch_id")


def marker(hardware_id: str, batch: Batch, now_ms: int) -> Put:
    item: Item = {
        "batch_id": batch.batch_id,
        "hardware_id": hardware_id,
        "received_at": rfc3339(now_ms),
        "expiration_time": now_ms // 1000 + MARKER_SECONDS,
        "content_sha256": batch.content_sha256,
    }
    return Put(BATCHES, item, _NO_MARKER)


def received_ms(marker: Mapping[str, Value]) -> int:
    return ms_from_rfc3339(str(marker["received_at"]))


def latest_reading(hardware_id: str) -> Query:
    return Query(READINGS, hardware_id, descending=True, limit=1)


def readings_between(
    hardware_id: str, from_ms: int, to_ms: int, *, descending: bool, limit: int, after: str | None
) -> Query:
    """Inclusive at both ends; `after`: the `ts_batch` that the page before ended at."""
    return Query(
        READINGS,
        hardware_id,
        SortBetween(f"{from_ms:013}#", f"{to_ms:013}#\uffff"),
        descending=descending,
        limit=limit,
        after=None if after is None else {"hardware_id": hardware_id, "ts_batch": after},
    )


def readings_of(hardware_id: str, limit: int) -> Query:
    return Query(READINGS, hardware_id, limit=limit)


def batch_key(batch_id: str) -> dict[str, str]:
    return {"batch_id": batch_id}


STILL_DELETED = 0
"""The position of the check in `readings_gone`."""


def readings_gone(
    hardware_id: str, readings: Sequence[Mapping[str, Value]], own_batches: Container[str]
) -> list[Write]:
    """The readings and their batches' markers: a device that comes back may send its batches again."""
    batch_ids = dict.fromkeys(str(reading["batch_id"]) for reading in readings)
    own = any_of(Absent("batch_id"), equals("hardware_id", hardware_id))
    return [
        Check(DEVICES, device_key(hardware_id), Exists("deleted_at")),
        *(Delete(READINGS, READINGS.key_of(reading)) for reading in readings),
        *(Delete(BATCHES, batch_key(each), own) for each in batch_ids if each in own_batches),
    ]


# --- keys ------------------------------------------------------------------------------------------


def key_key(key_id: str) -> dict[str, str]:
    return {"key_id": key_id}


def new_key(
    key_id: str, api_key_hash: str, description: str | None, hardware_id: str | None, now_ms: int
) -> Put:
    now = rfc3339(now_ms)
    item: Item = {
        "key_id": key_id,
        "api_key_hash": api_key_hash,
        "created_at": now,
        "is_active": True,
        "gsi1pk": _LISTED_KEYS,
        "gsi1sk": now,
    }
    if description is not None:
        item["description"] = description
    if hardware_id is not None:
        item["hardware_id"] = hardware_id
    return Put(KEYS, item, Absent("key_id"))


def key_by_hash(api_key_hash: str) -> Query:
    return Query(KEYS, api_key_hash, index="api_key_hash_index", limit=1)


def keys_by_age(limit: int, after: Mapping[str, str] | None) -> Query:
    """`after`: a `key_position`."""
    return _newest_first(KEYS, _LISTED_KEYS, limit, after)


def key_position(indexed: Mapping[str, Value]) -> dict[str, str]:
    return {"key_id": str(indexed["key_id"]), "gsi1sk": str(indexed["gsi1sk"])}


def key_used(key_id: str, now_ms: int) -> Update:
    long_ago = Compare("last_used_at", "<=", rfc3339(now_ms - LAST_USED_EVERY_MS))
    condition = all_of(Exists("key_id"), any_of(Absent("last_used_at"), long_ago))
    return Update(KEYS, key_key(key_id), (Set("last_used_at", rfc3339(now_ms)),), condition)


def key_revoked(key_id: str) -> Update:
    return Update(KEYS, key_key(key_id), (Set("is_active", False),), Exists("key_id"))


def device_key_of(item: Mapping[str, Value]) -> DeviceKey:
    return msgspec.convert(item, DeviceKey)
