"""Taking a deleted device's readings away, with the markers of their batches.

Every transaction holds only while the device is being deleted: a purge that was asleep while somebody else
finished the deletion, and the device was registered again, takes nothing of what it has sent since.
"""

from __future__ import annotations

from collections.abc import Sequence

from crossdock.devices import store
from crossdock.engines.items.port import Item, Items, Refused, Transaction

TOGETHER = 49
"""Readings in one transaction: with a marker each, and the check of the device, 99 writes."""
PAGE = 10 * TOGETHER


class Purge:
    def __init__(self, items: Items) -> None:
        self._items = items

    async def run(self, hardware_id: str, readings_max: int | None = None) -> None:
        """Until nothing is left, or about `readings_max` are gone, or the device is not being deleted."""
        purged = 0
        while readings_max is None or purged < readings_max:
            page = await self._items.query(store.readings_of(hardware_id, PAGE))
            if not page.items or not await self._delete(hardware_id, page.items):
                return
            purged += len(page.items)

    async def _delete(self, hardware_id: str, readings: Sequence[Item]) -> bool:
        """False: the device is not being deleted any more."""
        own_batches = await self._own_batches(hardware_id, readings)
        transactions: list[Transaction] = [
            store.readings_gone(hardware_id, readings[start : start + TOGETHER], own_batches)
            for start in range(0, len(readings), TOGETHER)
        ]
        for outcome in await self._items.transact_many(transactions):
            if isinstance(outcome, Exception):
                raise outcome
            if isinstance(outcome, Refused) and outcome.failures[0].position == store.STILL_DELETED:
                return False
            # Refused otherwise: a marker changed hands just now. The next round reads it anew.
        return True

    async def _own_batches(self, hardware_id: str, readings: Sequence[Item]) -> set[str]:
        """Batches whose marker is this device's: once it has expired, the id may be another device's."""
        batch_ids = sorted({str(reading["batch_id"]) for reading in readings})
        markers = await self._items.get_many(store.BATCHES, [store.batch_key(each) for each in batch_ids])
        return {
            str(marker["batch_id"])
            for marker in markers
            if marker is not None and marker["hardware_id"] == hardware_id
        }
