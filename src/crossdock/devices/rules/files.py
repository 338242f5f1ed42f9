"""Readings in files, as `crossdock devices send` takes them: from text to requests. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from crossdock.devices.model import READINGS_MAX
from crossdock.kit.ids import Random, token_hex, uuid4_text

SAMPLE_EVERY_MS = 60_000


def parse_file(content: bytes, hardware_id: str) -> list[Any]:
    """Readings from JSON (a list, or a whole request of this device) or NDJSON (one a line).

    Only the outer form is looked at: what is wrong in a reading, the server says. Raises ValueError.
    """
    try:
        document = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _parse_lines(content)
    if isinstance(document, list):
        return document
    if not isinstance(document, dict):
        raise ValueError("neither a list of readings nor a request with `readings` in it")
    if "readings" not in document:
        return [document]
    if document.get("hardware_id", hardware_id) != hardware_id:
        raise ValueError(f"a request of the device {document['hardware_id']}, not of {hardware_id}")
    if not isinstance(document["readings"], list):
        raise ValueError("a request whose `readings` are no list")
    return document["readings"]


def _parse_lines(content: bytes) -> list[Any]:
    readings = []
    for number, line in enumerate(content.splitlines(), 1):
        if line.strip():
            try:
                readings.append(msgspec.json.decode(line))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise ValueError(f"no JSON in line {number}: {error}") from None
    return readings


def requests_of(readings: Sequence[Any], readings_max: int = READINGS_MAX) -> Iterator[list[Any]]:
    """In the order of the file, but a batch is never split: readings that share a batch_id go together."""
    request: list[Any] = []
    for batch in _batches(readings):
        if request and len(request) + len(batch) > readings_max:
            yield request
            request = []
        request += batch
    if request:
        yield request


def _batches(readings: Sequence[Any]) -> list[list[Any]]:
    batches: dict[object, list[Any]] = {}
    for position, reading in enumerate(readings):
        batch_id = reading.get("batch_id") if isinstance(reading, Mapping) else None
        batches.setdefault(batch_id if isinstance(batch_id, str) else position, []).append(reading)
    return list(batches.values())


def sample_readings(count: int, now_ms: int, random: Random) -> list[dict[str, object]]:
    """A reading a minute up to now, of a room whose temperature wanders."""
    boot_id, tag = uuid4_text(random), token_hex(6, random)
    readings: list[dict[str, object]] = []
    temperature = 20.0
    for number, byte in enumerate(random(count)):
        temperature = round(min(30.0, max(10.0, temperature + (byte - 127.5) / 255)), 2)
        readings.append(
            {
                "batch_id": f"sample:{tag}:{number // 20}",
                "timestamp_ms": now_ms - (count - 1 - number) * SAMPLE_EVERY_MS,
                "boot_id": boot_id,
                "firmware_version": "sample",
                "sensors": {"temperature": temperature, "humidity": round(40 + byte / 25.5, 1)},
                "sensor_status": {"temperature": "ok", "humidity": "ok"},
            }
        )
    return readings
