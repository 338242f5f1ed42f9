"""Events replayed: which of their deliveries begin anew, and the one transaction that makes them.

All deliveries of an event that a replay is for begin anew together, with the event's counts, or none does.
The transaction holds only if each record is as it was read: whoever moves one in between is read again. Who
is calling in an earlier generation finds the fence raised, and can only store the attempt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from crossdock.engines.items.port import Items, Refused, Write
from crossdock.hooks.model import Delivery, DeliveryState, Event, EventStatus
from crossdock.hooks.rules.filters import Subject
from crossdock.hooks.rules.replaying import (
    Restart,
    not_now,
    placement_of_replay,
    restarted,
    status_of_delivery,
    takes,
)
from crossdock.hooks.service.fan_out import subject_of
from crossdock.hooks.service.finding import changed_meanwhile
from crossdock.hooks.service.in_use import ConnectionInUse, SourceInUse
from crossdock.hooks.service.parking_marks import ParkingMarks
from crossdock.hooks.store.deliveries import delivery_of, delivery_to
from crossdock.hooks.store.events import event_of
from crossdock.hooks.store.replays import event_replayed
from crossdock.hooks.store.tables import EVENTS, delivery_key, event_key
from crossdock.kit.clock import Clock
from crossdock.kit.errors import CrossdockError

CONFLICTS_MAX = 50

Records: TypeAlias = Mapping[str, Delivery]
"""An event's deliveries, by connection."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a replay is for. With a status: only events of it, and of their deliveries only those that stand
    so themselves: a replay of what failed sends nothing again to those who got it."""

    generation: str
    connection_id: str | None = None
    asks_filters: bool = True
    status: EventStatus | None = None

    def connections_of(self, source: SourceInUse) -> list[ConnectionInUse]:
        return [each for each in source.connections if self.connection_id in (None, each.connection_id)]

    def covers(self, event: Event) -> bool:
        return self.status is None or event.status is self.status

    def covers_delivery(self, delivery: Delivery | None) -> bool:
        return self.status is None or status_of_delivery(delivery) is self.status


@dataclass(frozen=True, slots=True)
class Planned:
    """What a replay does to an event. `had`: deliveries that it has replayed before."""

    restarts: tuple[Restart, ...] = ()
    had: int = 0

    @property
    def deliveries(self) -> int:
        return len(self.restarts) + self.had


def plan(event: Event, records: Records, source: SourceInUse, wanted: Wanted, now_ms: int) -> Planned:
    """Pure."""
    connections = wanted.connections_of(source)
    had = sum(_generation(records, each) == wanted.generation for each in connections)
    if not_now(event, now_ms) is not None or not wanted.covers(event):
        return Planned(had=had)
    restarts: list[Restart] = []
    subject: Subject | None = None
    for connection in connections:
        before = records.get(connection.connection_id)
        if not takes(before, wanted.generation) or not wanted.covers_delivery(before):
            continue
        if wanted.asks_filters and connection.filters is not None:
            subject = subject or subject_of(event)
            if not connection.filters.matches(subject):
                continue
        restarts.append(_restart(event, before, connection, wanted.generation, now_ms))
    return Planned(tuple(restarts), had)


def _generation(records: Records, connection: ConnectionInUse) -> str | None:
    record = records.get(connection.connection_id)
    return None if record is None else record.generation


def _restart(
    event: Event, before: Delivery | None, connection: ConnectionInUse, generation: str, now_ms: int
) -> Restart:
    where = placement_of_replay(connection.connection, connection.breaker, now_ms)
    delivery = before or delivery_to(event, connection.connection_id, DeliveryState.PENDING)
    return Restart(before, restarted(delivery, generation, where, now_ms))


class Replayer:
    def __init__(self, items: Items, marks: ParkingMarks, clock: Clock) -> None:
        self._items = items
        self._marks = marks
        self._clock = clock

    async def look(self, events: Sequence[Event], source: SourceInUse, wanted: Wanted) -> list[Planned]:
        """What would be done to each event, as it stands now."""
        records = await self._records(events, wanted.connections_of(source))
        now_ms = self._clock.now_ms()

        def plan_all() -> list[Planned]:
            pairs = zip(events, records, strict=True)
            return [plan(event, of_event, source, wanted, now_ms) for event, of_event in pairs]

        # Filters are bounded, but a page of them takes a while: others are answered meanwhile.
        return await asyncio.to_thread(plan_all)

    async def replay(self, events: Sequence[Event], source: SourceInUse, wanted: Wanted) -> list[Planned]:
        """What was done to each event. After an error some of it may have been: the same call again tells,
        and does the rest."""
        plans = await self.look(events, source, wanted)
        changing = [position for position, planned in enumerate(plans) if planned.restarts]
        transactions = [await self.writes(events[position], plans[position]) for position in changing]
        outcomes = await self._items.transact_many(transactions)
        for position, outcome in zip(changing, outcomes, strict=True):
            if isinstance(outcome, CrossdockError):
                raise outcome
            if isinstance(outcome, Refused):
                plans[position] = await self._replay_anew(events[position], source, wanted)
        return plans

    async def writes(self, event: Event, planned: Planned) -> list[Write]:
        """They make the plan, and hold only if nothing was changed since what it was made from."""
        for restart in planned.restarts:
            if restart.after.state is DeliveryState.HELD:
                await self._marks.ensure(restart.after.connection_id, event.source_id)
        return event_replayed(event, planned.restarts, self._clock.now_ms())

    async def records(self, event: Event, connections: Iterable[ConnectionInUse]) -> Records:
        [records] = await self._records([event], list(connections))
        return records

    async def _replay_anew(self, event: Event, source: SourceInUse, wanted: Wanted) -> Planned:
        """Others move its deliveries at the same time."""
        for _ in range(CONFLICTS_MAX):
            item = await self._items.get(EVENTS, _key(event))
            if item is None:
                return Planned()  # it expired
            fresh = event_of(item)
            [planned] = await self.look([fresh], source, wanted)
            if not planned.restarts:
                return planned
            outcome = await self._items.transact(await self.writes(fresh, planned))
            if not isinstance(outcome, Refused):
                return planned
        raise changed_meanwhile()

    async def _records(
        self, events: Sequence[Event], connections: Sequence[ConnectionInUse]
    ) -> list[Records]:
        ids = [connection.connection_id for connection in connections]
        keys = [delivery_key(event.event_id, each) for event in events for each in ids]
        items = iter(await self._items.get_many(EVENTS, keys))
        return [
            {each: delivery_of(item) for each in ids if (item := next(items)) is not None} for _ in events
        ]


def _key(event: Event) -> dict[str, str]:
    return event_key(event.source_id, event.received_at, event.event_id)
