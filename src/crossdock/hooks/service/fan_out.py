"""From an event to its deliveries: filters are asked, once, and each connection gets its record.

All records of a fan-out, and the event's own change, are one transaction. A delivery for which there is a
slot in this process is leased to it and handed over; every other is written as work that anybody may take.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from crossdock.delivery.limits import Slots
from crossdock.engines.items.port import Items, Refused, Tally, Write
from crossdock.hooks.model import Delivery, DeliveryState, Event
from crossdock.hooks.rules.filters import Subject
from crossdock.hooks.rules.outcomes import held, lease_end_ms
from crossdock.hooks.rules.placement import Placement, placement
from crossdock.hooks.rules.progress import counts_of, status_of
from crossdock.hooks.service.finishing import OpenEvent
from crossdock.hooks.service.in_use import ConnectionInUse, SourceInUse
from crossdock.hooks.service.parking_marks import ParkingMarks
from crossdock.hooks.store import deliveries as store
from crossdock.hooks.store import events as event_store
from crossdock.kit.clock import Clock


@dataclass(frozen=True, slots=True)
class Job:
    """A delivery that is leased to this process, with a slot to be given back."""

    opened: OpenEvent
    source: SourceInUse
    connection: ConnectionInUse
    delivery: Delivery
    direct: bool = False
    """Its record and its event's fan-out are still to be written."""


def subject_of(event: Event) -> Subject:
    return Subject.of(event.body, event.headers, event.query, event.path, event.method)


class FanOut:
    def __init__(self, items: Items, clock: Clock, slots: Slots[str], marks: ParkingMarks) -> None:
        self._items = items
        self._clock = clock
        self._slots = slots
        self._marks = marks

    async def run(self, event: Event, source: SourceInUse, also: Sequence[Write] = ()) -> list[Job]:
        """What is to be delivered here and now; nothing if somebody else has the event."""
        now_ms = self._clock.now_ms()
        subject = subject_of(event)
        made = [
            (connection, delivery)
            for connection in source.connections
            if (delivery := self._placed(event, connection, subject, now_ms)) is not None
        ]
        leased = [each for each in made if each[1].lease_until is not None]
        counts = counts_of(delivery.state for _, delivery in made)
        writes: list[Write | Tally] = [
            event_store.event_fanned_out(event, counts, now_ms),
            *(store.new_delivery(delivery) for _, delivery in made),
            *also,
        ]
        written = False
        try:
            for connection, delivery in made:
                if delivery.state is DeliveryState.HELD:
                    await self._marks.ensure(connection.connection_id, source.source.source_id)
            written = not isinstance(await self._items.transact(writes), Refused)
        finally:
            if not written:
                for connection, _ in leased:
                    self._slots.release(connection.connection_id)
        if not written:
            return []
        fanned_out = replace(
            event,
            counts=counts,
            status=status_of(counts),
            version=event.version + 1,
            processed_at=now_ms,
            direct_to=None,
        )
        opened = OpenEvent(fanned_out)
        return [Job(opened, source, connection, delivery) for connection, delivery in leased]

    def _placed(
        self, event: Event, connection: ConnectionInUse, subject: Subject, now_ms: int
    ) -> Delivery | None:
        where = placement(connection.connection, connection.breaker, now_ms)
        if where is Placement.NOWHERE:
            return None
        delivery = store.delivery_to(event, connection.connection_id, DeliveryState.PENDING)
        if connection.filters is not None and not connection.filters.matches(subject):
            return replace(delivery, state=DeliveryState.FILTERED)
        if where is Placement.TURN:
            return replace(delivery, state=DeliveryState.HELD)
        if where is Placement.HOLD:
            return held(delivery, now_ms)
        if self._slots.try_acquire(connection.connection_id):
            until_ms = lease_end_ms(now_ms, connection.connection.timeout_seconds)
            return replace(delivery, fence=1, lease_until=until_ms)
        return replace(delivery, next_attempt_at=now_ms)
