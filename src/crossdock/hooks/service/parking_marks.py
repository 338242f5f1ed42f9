"""Which connections may have deliveries that wait for somebody to look after them."""

from __future__ import annotations

from crossdock.engines.items.port import Items
from crossdock.hooks.store import deliveries as store
from crossdock.kit.clock import Clock
from crossdock.kit.ttl_cache import TtlCache

PUT_EVERY_SECONDS = 3600.0
CONNECTIONS_MAX = 10_000


class ParkingMarks:
    """A mark lives for a week and is put again every hour, before anything is parked under it."""

    def __init__(self, items: Items, clock: Clock) -> None:
        self._items = items
        self._clock = clock
        self._put: TtlCache[str, bool] = TtlCache(
            clock, capacity=CONNECTIONS_MAX, ttl_seconds=PUT_EVERY_SECONDS
        )

    async def ensure(self, connection_id: str, source_id: str) -> None:
        if self._put.get(connection_id) is not None:
            return
        mark = store.parking_mark(connection_id, source_id, self._clock.now_ms())
        await self._items.put(mark.table, mark.item)
        self._put.put(connection_id, True)
