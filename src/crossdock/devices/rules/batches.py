"""From a request's readings to batches that can be stored, and from stored rows to a verdict.

A batch is all readings of one request that share a `batch_id`. Its good readings and its marker are written
together or not at all; a bad reading is rejected alone. The marker's `content_sha256` covers the hardware id
and all of the batch's readings as sent, good and bad, in order, as canonical JSON: a repeat with the same
content is a duplicate, with other content a conflict. A duplicate's readings are rejected as they were at
first, though what was too far ahead then may not be any more: the batch is as it was stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from crossdock.devices.model import (
    BATCH_READINGS_MAX,
    READING_BYTES_MAX,
    Rejection,
    RejectionCode,
    SentReading,
)
from crossdock.engines.items.limits import is_storable_number, may_hold_odd_number

DAY_MS = 86_400_000
EARLIEST_MS = 946_684_800_000
"""2000-01-01: before it a device's clock was never set."""

canonical_json = msgspec.json.Encoder(order="sorted").encode


@dataclass(frozen=True, slots=True)
class SentItem:
    """One entry of a request's `readings`: good, or with the reason why not."""

    index: int
    batch_id: str | None
    canonical: bytes
    reading: SentReading | None
    rejection: Rejection | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    batch_id: str
    content_sha256: str
    readings: tuple[SentReading, ...]
    indexes: tuple[int, ...]
    """Where each of `readings` stood in the request."""


@dataclass(frozen=True, slots=True)
class AcceptanceWindow:
    """Which reading times are taken now."""

    earliest_ms: int
    latest_ms: int
    expired_before_ms: int

    @classmethod
    def at(cls, now_ms: int, retention_seconds: int) -> AcceptanceWindow:
        """`retention_seconds` 0: readings are kept for ever."""
        # A reading expires at floor(timestamp / 1000) + retention, compared with the current second.
        expired_before = (now_ms // 1000 - retention_seconds + 1) * 1000 if retention_seconds else 0
        return cls(EARLIEST_MS, now_ms + DAY_MS, expired_before)


def sent_item(index: int, reading: SentReading, canonical: bytes) -> SentItem:
    # Numbers that JSON has and the store has not are rare: they are looked for where there may be one.
    if may_hold_odd_number(canonical):
        odd = next((name for name, value in reading.sensors.items() if not is_storable_number(value)), None)
        if odd is not None:
            detail = f"sensors.{odd} must be a finite number of at most 38 digits; else leave the sensor out."
            return rejected_item(index, reading.batch_id, canonical, RejectionCode.INVALID_VALUE, detail)
    return SentItem(index, reading.batch_id, canonical, reading)


def rejected_item(
    index: int, batch_id: str | None, canonical: bytes, code: RejectionCode, detail: str
) -> SentItem:
    return SentItem(index, batch_id, canonical, None, Rejection(batch_id, index, code, detail))


def batches_of(
    hardware_id: str, items: Sequence[SentItem], window: AcceptanceWindow
) -> tuple[list[Batch], list[Rejection]]:
    """What to store, in the order the batches first appear, and what is rejected whatever is stored."""
    by_batch: dict[str | None, list[SentItem]] = {}
    for item in items:
        by_batch.setdefault(item.batch_id, []).append(item)
    batches: list[Batch] = []
    rejections: list[Rejection] = []
    for batch_id, members in by_batch.items():
        good, bad = _sorted_out(members, window)
        rejections += bad
        if batch_id is not None and good:
            content = content_sha256(hardware_id, members)
            readings = tuple(item.reading for item in good if item.reading is not None)
            batches.append(Batch(batch_id, content, readings, tuple(item.index for item in good)))
    rejections.sort(key=lambda rejection: rejection.index)
    return batches, rejections


def _sorted_out(
    members: Sequence[SentItem], window: AcceptanceWindow
) -> tuple[list[SentItem], list[Rejection]]:
    if len(members) > BATCH_READINGS_MAX and members[0].batch_id is not None:
        detail = f"A batch has at most {BATCH_READINGS_MAX} readings; split it under several batch_ids."
        return [], [_reject(item, RejectionCode.BATCH_TOO_LARGE, detail) for item in members]
    good: list[SentItem] = []
    bad: list[Rejection] = []
    taken: set[int] = set()
    for item in members:
        rejection = item.rejection or _judge(item, window, taken)
        if rejection is not None:
            bad.append(rejection)
        else:
            good.append(item)
    return good, bad


def _judge(item: SentItem, window: AcceptanceWindow, taken: set[int]) -> Rejection | None:
    """Is this well-formed reading stored? Adds its time to `taken` if so."""
    assert item.reading is not None
    timestamp_ms = item.reading.timestamp_ms
    if len(item.canonical) > READING_BYTES_MAX:
        detail = f"A reading may have at most {READING_BYTES_MAX} bytes."
        return _reject(item, RejectionCode.READING_TOO_LARGE, detail)
    if not window.earliest_ms <= timestamp_ms <= window.latest_ms:
        detail = "The reading's time is before 2000-01-01 or more than a day ahead: set the device's clock."
        return _reject(item, RejectionCode.TIMESTAMP_OUT_OF_RANGE, detail)
    if timestamp_ms < window.expired_before_ms:
        return _reject(item, RejectionCode.EXPIRED, "The reading is older than readings are kept.")
    if timestamp_ms in taken:
        detail = "Another reading of this batch has the same timestamp_ms; the first one was taken."
        return _reject(item, RejectionCode.DUPLICATE_TIMESTAMP, detail)
    taken.add(timestamp_ms)
    return None


def _reject(item: SentItem, code: RejectionCode, detail: str) -> Rejection:
    return Rejection(item.batch_id, item.index, code, detail)


def content_sha256(hardware_id: str, members: Sequence[SentItem]) -> str:
    readings = b",".join(item.canonical for item in members)
    content = b"[" + msgspec.json.encode(hardware_id) + b",[" + readings + b"]]"
    return hashlib.sha256(content).hexdigest()


def conflicts(batch: Batch) -> list[Rejection]:
    detail = "This batch_id was stored before with other content; send changed readings under a new one."
    return [Rejection(batch.batch_id, i, RejectionCode.BATCH_CONFLICT, detail) for i in batch.indexes]


def unstorable(batch: Batch, detail: str) -> list[Rejection]:
    return [Rejection(batch.batch_id, i, RejectionCode.INVALID_VALUE, detail) for i in batch.indexes]


def ahead_of(batch: Batch, received_ms: int) -> list[int]:
    """Positions of readings that were perhaps too far ahead at that time (known to the second)."""
    latest_ms = AcceptanceWindow.at(received_ms, 0).latest_ms
    return [position for position, reading in enumerate(batch.readings) if reading.timestamp_ms > latest_ms]


def not_stored(batch: Batch, positions: Sequence[int]) -> list[Rejection]:
    detail = "The reading's time was too far ahead when its batch was stored; send it under a new batch_id."
    return [
        Rejection(batch.batch_id, batch.indexes[position], RejectionCode.TIMESTAMP_OUT_OF_RANGE, detail)
        for position in positions
    ]


def is_same_reading(stored: Mapping[str, object], reading: SentReading) -> bool:
    """Does the stored row hold what was sent? What the server added to it does not count."""
    return all(stored.get(name) == getattr(reading, name) for name in SentReading.__struct_fields__)
