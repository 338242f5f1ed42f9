"""Batches that devices send, and the rows and markers that a store must hold once it has them."""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec

DEVICES = 5
READINGS_MAX = 12
# Few enough for readings of different batches to fall on the same millisecond.
MOMENTS = 2_000
RETENTION_SECONDS = 90 * 86_400

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sender:
    hardware_id: str
    friendly_name: str | None

    @property
    def registration(self) -> bytes:
        sent: Row = {
            "hardware_id": self.hardware_id,
            "boot_id": "7c9e6679-7425-40de-944b-e07fc1f90ae7",
            "firmware_version": "1.0.16",
            "capabilities": {"sensors": ["bme280"]},
        }
        if self.friendly_name is not None:
            sent["friendly_name"] = self.friendly_name
        return msgspec.json.encode(sent)


@dataclass(frozen=True, slots=True)
class SentBatch:
    batch_id: str
    sender: Sender
    readings: tuple[Row, ...]

    def rows(self) -> list[Row]:
        """As they are stored and served."""
        named = {} if self.sender.friendly_name is None else {"friendly_name": self.sender.friendly_name}
        return [
            {
                **reading,
                **named,
                "hardware_id": self.sender.hardware_id,
                "ts_batch": f"{reading['timestamp_ms']:013}#{self.batch_id}",
                "expiration_time": reading["timestamp_ms"] // 1000 + RETENTION_SECONDS,
            }
            for reading in self.readings
        ]

    @property
    def content_sha256(self) -> str:
        content = json.dumps(
            [self.sender.hardware_id, list(self.readings)], sort_keys=True, separators=(",", ":")
        )
        return hashlib.sha256(content.encode()).hexdigest()


def make_senders() -> list[Sender]:
    return [
        Sender(f"02:00:00:00:00:{number:02X}", f"greenhouse {number}" if number % 2 else None)
        for number in range(DEVICES)
    ]


def make_batches(chance: random.Random, senders: Sequence[Sender], count: int) -> list[SentBatch]:
    since_ms = int(time.time() * 1000) - 3_600_000
    return [_make_batch(chance, chance.choice(senders), number, since_ms) for number in range(count)]


def _make_batch(chance: random.Random, sender: Sender, number: int, since_ms: int) -> SentBatch:
    batch_id = f"batch-{number:05}"
    boot_id = str(UUID(int=chance.getrandbits(128), version=4))
    # In the order of a device that sends what it buffered: any.
    moments = chance.sample(range(MOMENTS), chance.randint(2, READINGS_MAX))
    readings = tuple(
        {
            "batch_id": batch_id,
            "timestamp_ms": since_ms + moment,
            "boot_id": boot_id,
            "firmware_version": "1.0.16",
            "sensors": {"temp_c": chance.randrange(-4000, 9000) / 100, "pulses": chance.randrange(1_000_000)},
            "sensor_status": {"bme280": chance.choice(("ok", "error"))},
        }
        for moment in moments
    )
    return SentBatch(batch_id, sender, readings)


def request_body(batches: Sequence[SentBatch], chance: random.Random) -> bytes:
    """One request with batches of one device; their readings mixed, each batch's own in their order."""
    left = [list(reversed(batch.readings)) for batch in batches]
    mixed: list[Row] = []
    while left:
        source = chance.choice(left)
        mixed.append(source.pop())
        if not source:
            left.remove(source)
    return msgspec.json.encode({"hardware_id": batches[0].sender.hardware_id, "readings": mixed})
