"""Taking a delivery: one conditional write that raises its fence and leases it to this process."""

from __future__ import annotations

from crossdock.engines.items.port import Items, Refused, Write
from crossdock.hooks.model import Delivery
from crossdock.hooks.rules.outcomes import claimed, interrupted_attempt, lease_end_ms
from crossdock.hooks.service.fan_out import Job
from crossdock.hooks.service.finishing import Kept, OpenEvent
from crossdock.hooks.service.in_use import ConnectionInUse, SourceInUse
from crossdock.hooks.store import deliveries as store
from crossdock.kit.clock import Clock


class Claims:
    def __init__(self, items: Items, clock: Clock) -> None:
        self._items = items
        self._clock = clock

    async def claim(
        self, opened: OpenEvent, delivery: Delivery, source: SourceInUse, connection: ConnectionInUse
    ) -> Job | None:
        """None: somebody was faster. The caller has taken a slot."""
        now_ms = self._clock.now_ms()
        after = claimed(delivery, lease_end_ms(now_ms, connection.connection.timeout_seconds))
        writes: list[Write] = [store.delivery_changed(delivery, after)]
        kept = cut_short(delivery, connection, now_ms)
        if kept is not None:
            writes.append(store.new_attempt(kept.attempt, delivery.expires_at, kept.mark))
        outcome = await self._items.transact(writes)
        return None if isinstance(outcome, Refused) else Job(opened, source, connection, after)


def cut_short(delivery: Delivery, connection: ConnectionInUse, now_ms: int) -> Kept | None:
    """The record of a call that was cut short: its lease is over, and nobody wrote its end."""
    if delivery.lease_until is None:
        return None
    return Kept(*interrupted_attempt(delivery, connection.connection.destination_url, now_ms))
