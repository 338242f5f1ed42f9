"""What ingestion needs to know of devices and keys, kept in this process for a few seconds.

A device that was registered a moment ago must be known everywhere at once, so absence is never kept. A device
deleted or renamed, and a key revoked, take effect on every process when the entry's seconds are over.
"""

from __future__ import annotations

from dataclasses import dataclass

from crossdock.devices import store
from crossdock.devices.rules.activity import LAST_SEEN_EVERY_MS, is_due
from crossdock.engines.items.port import Items, Update
from crossdock.kit.clock import Clock
from crossdock.kit.ttl_cache import TtlCache

TTL_SECONDS = 5.0
CAPACITY = 50_000


@dataclass(slots=True)
class KnownDevice:
    friendly_name: str | None
    last_seen_ms: int


class DeviceDirectory:
    def __init__(self, items: Items, clock: Clock) -> None:
        self._items = items
        self._clock = clock
        self._known: TtlCache[str, KnownDevice] = TtlCache(
            clock, capacity=CAPACITY, ttl_seconds=TTL_SECONDS, negative_ttl_seconds=0
        )

    async def find(self, hardware_id: str) -> KnownDevice | None:
        return await self._known.get_or_fill(hardware_id, self._read)

    async def _read(self, hardware_id: str) -> KnownDevice | None:
        item = await self._items.get(store.DEVICES, store.device_key(hardware_id))
        if item is None or store.is_deleted(item):
            return None
        name = item.get("friendly_name")
        return KnownDevice(name if isinstance(name, str) else None, store.last_seen_ms(item))

    def seen_now(self, hardware_id: str, device: KnownDevice) -> Update | None:
        """The write that says so, if the last one was long enough ago."""
        now_ms = self._clock.now_ms()
        if not is_due(device.last_seen_ms, now_ms, LAST_SEEN_EVERY_MS):
            return None
        # Taken as written: were it lost, the next minute writes it again.
        device.last_seen_ms = now_ms
        return store.device_seen(hardware_id, now_ms)

    def forget(self, hardware_id: str) -> None:
        self._known.invalidate(hardware_id)
