"""What is stored in the end, asked for in every way there is, beside what was sent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from operator import itemgetter

from tests.crash.batches import Row, Sender, SentBatch
from tests.crash.stores import MARKERS, READINGS, Store
from tests.support.server import Server

PAGE = 97
"""Readings at a time: pages end anywhere in a batch."""

_by_key = itemgetter("hardware_id", "ts_batch")


async def check_stored(
    server: Server, store: Store, senders: Sequence[Sender], batches: list[SentBatch]
) -> None:
    """Exactly the readings of these batches are stored and served, whole and once, and a marker for each."""
    expected = sorted((row for batch in batches for row in batch.rows()), key=_by_key)
    served = await asyncio.to_thread(served_readings, server, senders)
    _check_same(expected, served, "served over HTTP")
    stored = await store.rows(server, READINGS)
    _check_same(expected, sorted(stored, key=_by_key), f"in {READINGS}")
    _check_markers(batches, await store.rows(server, MARKERS))


def served_readings(server: Server, senders: Sequence[Sender]) -> list[Row]:
    """In the order that the server gives them, device by device."""
    client = server.client()
    return [
        row
        for sender in sorted(senders, key=lambda sender: sender.hardware_id)
        for row in client.pages(
            f"/v1/devices/{sender.hardware_id}/readings", {"from_ms": 0, "limit": PAGE, "order": "asc"}
        )
    ]


def _check_same(expected: Sequence[Row], found: Sequence[Row], where: str) -> None:
    wanted, keys = [_by_key(row) for row in expected], [_by_key(row) for row in found]
    assert len(keys) == len(set(keys)), f"twice {where}: {_repeated(keys)}"
    missing, extra = set(wanted) - set(keys), set(keys) - set(wanted)
    assert not missing, f"{len(missing)} readings are not {where}: {sorted(missing)[:5]}"
    assert not extra, f"{len(extra)} readings {where} were never sent: {sorted(extra)[:5]}"
    for sent, row in zip(expected, found, strict=True):
        assert row == sent, f"changed {where}"


def _check_markers(batches: Sequence[SentBatch], found: Sequence[Row]) -> None:
    markers = {marker["batch_id"]: marker for marker in found}
    assert len(markers) == len(found)
    assert markers.keys() == {batch.batch_id for batch in batches}
    for batch in batches:
        marker = markers[batch.batch_id]
        assert marker["hardware_id"] == batch.sender.hardware_id
        assert marker["content_sha256"] == batch.content_sha256


def _repeated(keys: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    seen: set[tuple[str, str]] = set()
    return [key for key in keys if key in seen or seen.add(key)]  # type: ignore[func-returns-value]
