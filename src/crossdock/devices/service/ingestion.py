"""Readings in, exactly once.

Each batch is one transaction: its marker if absent, its readings if absent. All batches of a request, and of
the requests that come at the same time, share commits. The answer is given after them, so an acknowledged
batch is durable; a repeat, whatever happened in between, finds the marker and is told it is a duplicate.

When the store is away the whole request fails with 503, although some of its batches may have been stored:
the device repeats it and learns which.
"""

from __future__ import annotations

from collections.abc import Sequence

from crossdock.devices import store
from crossdock.devices.model import Rejection, Verdict
from crossdock.devices.rules.batches import (
    AcceptanceWindow,
    Batch,
    SentItem,
    ahead_of,
    batches_of,
    conflicts,
    is_same_reading,
    not_stored,
    unstorable,
)
from crossdock.devices.service.directory import DeviceDirectory, KnownDevice
from crossdock.devices.service.keys import KeyUse
from crossdock.engines.items.port import ItemRejected, Items, Outcome, Put, Refused, Transaction, Written
from crossdock.http.principals import Principal
from crossdock.kit.clock import Clock
from crossdock.kit.errors import CrossdockError, NotFound
from crossdock.kit.metrics import counter

BATCHES = counter("devices_batches_total", "Batches by what became of them.", ("outcome",))
READINGS = counter("devices_readings_total", "Readings received, by what became of them.", ("outcome",))

ACKNOWLEDGED, DUPLICATE, CONFLICT = "acknowledged", "duplicate", "conflict"


class Ingestion:
    def __init__(
        self, items: Items, clock: Clock, directory: DeviceDirectory, key_use: KeyUse, retention_seconds: int
    ) -> None:
        self._items = items
        self._clock = clock
        self._directory = directory
        self._key_use = key_use
        self._retention_seconds = retention_seconds

    async def ingest(self, hardware_id: str, sent: Sequence[SentItem], principal: Principal) -> Verdict:
        device = await self._directory.find(hardware_id)
        if device is None:
            raise device_not_registered(hardware_id)
        now_ms = self._clock.now_ms()
        window = AcceptanceWindow.at(now_ms, self._retention_seconds)
        batches, rejected = batches_of(hardware_id, sent, window)
        outcomes = await self._store(hardware_id, device, batches, principal, now_ms)
        verdict = Verdict([], [], rejected)
        for batch, outcome in zip(batches, outcomes, strict=True):
            await self._settle(hardware_id, batch, outcome, verdict)
        verdict.rejected.sort(key=lambda rejection: rejection.index)
        READINGS.inc("rejected", by=len(verdict.rejected))
        return verdict

    async def _store(
        self,
        hardware_id: str,
        device: KnownDevice,
        batches: Sequence[Batch],
        principal: Principal,
        now_ms: int,
    ) -> list[Outcome | CrossdockError]:
        transactions: list[Transaction] = [
            store.batch_writes(hardware_id, batch, device.friendly_name, self._retention_seconds, now_ms)
            for batch in batches
        ]
        # Follow-ups ride along: they are conditional, so that repeating or losing one does no harm.
        follow_ups = (self._directory.seen_now(hardware_id, device), self._key_use.used_now(principal))
        transactions.extend([follow_up] for follow_up in follow_ups if follow_up is not None)
        if not transactions:
            return []
        outcomes = await self._items.transact_many(transactions)
        return outcomes[: len(batches)]

    async def _settle(
        self, hardware_id: str, batch: Batch, outcome: Outcome | CrossdockError, verdict: Verdict
    ) -> None:
        if isinstance(outcome, ItemRejected):
            verdict.rejected.extend(unstorable(batch, outcome.message))
            return
        if isinstance(outcome, CrossdockError):
            raise outcome
        result, rejected = ACKNOWLEDGED, list[Rejection]()
        if isinstance(outcome, Refused):
            result, rejected = await self._judge_refused(hardware_id, batch, outcome)
        BATCHES.inc(result)
        verdict.rejected.extend(rejected)
        if result == ACKNOWLEDGED:
            verdict.acknowledged.append(batch.batch_id)
        elif result == DUPLICATE:
            verdict.duplicates.append(batch.batch_id)
        READINGS.inc(result, by=len(batch.readings) - len(rejected))

    async def _judge_refused(
        self, hardware_id: str, batch: Batch, refused: Refused
    ) -> tuple[str, list[Rejection]]:
        marker = next((failure.current for failure in refused.failures if failure.position == 0), None)
        if marker is not None:
            if marker.get("content_sha256") != batch.content_sha256:
                return CONFLICT, conflicts(batch)
            return DUPLICATE, await self._rejected_before(hardware_id, batch, store.received_ms(marker))
        if not await self._has_same_rows(hardware_id, batch):
            return CONFLICT, conflicts(batch)
        # The marker's 30 days were over, the readings were kept: note the batch again.
        again: Put = store.marker(hardware_id, batch, self._clock.now_ms())
        outcome = await self._items.transact([again])
        if isinstance(outcome, Written):
            return DUPLICATE, []
        return await self._judge_refused(hardware_id, batch, outcome)

    async def _rejected_before(self, hardware_id: str, batch: Batch, received_ms: int) -> list[Rejection]:
        """What was too far ahead when the batch was stored would pass today, but was not stored then."""
        doubtful = ahead_of(batch, received_ms)
        if not doubtful:
            return []
        keys = [store.reading_key(hardware_id, batch.readings[position]) for position in doubtful]
        rows = await self._items.get_many(store.READINGS, keys)
        missing = [position for position, row in zip(doubtful, rows, strict=True) if row is None]
        return not_stored(batch, missing)

    async def _has_same_rows(self, hardware_id: str, batch: Batch) -> bool:
        keys = [store.reading_key(hardware_id, reading) for reading in batch.readings]
        rows = await self._items.get_many(store.READINGS, keys)
        return all(
            row is not None and is_same_reading(row, reading)
            for row, reading in zip(rows, batch.readings, strict=True)
        )


def device_not_registered(hardware_id: str) -> NotFound:
    return NotFound(
        "device_not_registered", f"{hardware_id} is not registered: POST /v1/devices/register first."
    )
