"""Due work, claimed and worked off: retries, what no lane had room for, and what a dead process left behind.

Any number of processes may pull. Each claim is one conditional write that raises the fence; who loses it goes
on to the next. The index says only where to look: what is due is decided on the item itself. A lease that
ended while its holder was calling leaves a record of that call: it may have arrived.

A delivery whose connection may not be called just now is parked, so that its backlog is in nobody's way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from msgspec.structs import replace

from crossdock.delivery.limits import Slots
from crossdock.engines.items.port import Item, Items, Key, Refused, Write
from crossdock.hooks.model import OPEN_STATES, SHARDS, Delivery, DeliveryState, Event, EventStatus
from crossdock.hooks.rules.outcomes import (
    held,
    interrupted_attempt,
    without_call,
)
from crossdock.hooks.rules.placement import Placement, placement
from crossdock.hooks.rules.replaying import placement_of_replay
from crossdock.hooks.service.claims import Claims, cut_short
from crossdock.hooks.service.crew import Crew
from crossdock.hooks.service.fan_out import FanOut
from crossdock.hooks.service.finishing import Finisher, OpenEvent
from crossdock.hooks.service.in_use import ConnectionInUse, SourceInUse, SourcesInUse
from crossdock.hooks.service.parking_marks import ParkingMarks
from crossdock.hooks.store import deliveries as store
from crossdock.hooks.store import events as event_store
from crossdock.hooks.store.tables import EVENTS, event_key
from crossdock.kit.clock import Clock
from crossdock.kit.errors import CrossdockError
from crossdock.kit.logging import fields

log = logging.getLogger("crossdock.hooks")

PAGE = 64
IDLE_SECONDS = 0.25
FAILED_SECONDS = 2.0
MARK_MARGIN_MS = 120_000
"""Work may be written as due a little in the past: clocks differ, and writes take time."""
MARK_KEPT_SECONDS = 60.0
CLAIM_LEASE_MS = 60_000


class Puller:
    def __init__(
        self,
        items: Items,
        *,
        sources: SourcesInUse,
        finisher: Finisher,
        fan_out: FanOut,
        claims: Claims,
        crew: Crew,
        slots: Slots[str],
        marks: ParkingMarks,
        clock: Clock,
    ) -> None:
        self._items = items
        self._sources = sources
        self._finisher = finisher
        self._fan_out = fan_out
        self._claims = claims
        self._crew = crew
        self._slots = slots
        self._parking_marks = marks
        self._clock = clock
        self._marks = [0] * SHARDS
        """The earliest due time that was last found in each shard: below are only dead entries to wade
        through."""
        self._marks_set_at = 0.0

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                found = await self.pull()
            except CrossdockError as error:
                log.warning("can't look for due deliveries", extra=fields(reason=str(error)))
                await asyncio.sleep(FAILED_SECONDS)
            else:
                if not found:
                    await asyncio.sleep(IDLE_SECONDS)

    async def pull(self) -> int:
        """One look at every shard. How much was taken."""
        now = self._clock.monotonic()
        if now - self._marks_set_at > MARK_KEPT_SECONDS:
            self._marks = [0] * SHARDS
            self._marks_set_at = now
        taken = await asyncio.gather(*(self._pull_shard(shard) for shard in range(SHARDS)))
        return sum(taken)

    async def _pull_shard(self, shard: int) -> int:
        await self._room()
        since_ms, now_ms = self._marks[shard], self._clock.now_ms()
        page = await self._items.query(event_store.due_work(shard, since_ms, now_ms, PAGE))
        if not page.items:
            self._marks[shard] = max(since_ms, now_ms - MARK_MARGIN_MS)
            return 0
        first_due_ms = int(str(page.items[0]["GSI2SK"])[:13])
        self._marks[shard] = max(since_ms, min(first_due_ms, now_ms - MARK_MARGIN_MS))
        found = await self._items.get_many(EVENTS, event_store.event_keys(page.items))
        taken = 0
        events = [item for item in found if item is not None and str(item["SK"]).startswith("EVT#")]
        records = [item for item in found if item is not None and str(item["SK"]).startswith("DLV#")]
        for item in events:
            taken += await self._take_event(event_store.event_of(item), _due_ms(item))
        taken += await self._take_deliveries(records)
        return taken

    async def _room(self) -> None:
        while not self._slots.has_room():
            await self._crew.delivered()

    # --- events that were not fanned out ------------------------------------------------------------

    async def _take_event(self, event: Event, due_ms: int) -> int:
        now_ms = self._clock.now_ms()
        if event.status is not EventStatus.RECEIVED or due_ms > now_ms:
            return 0
        source = await self._sources.find(event.source_id)
        writes: list[Write] = [event_store.event_claimed(event, now_ms + CLAIM_LEASE_MS, None)]
        if event.direct_to is not None:
            writes.append(self._interrupted_direct(event, source, now_ms))
        if isinstance(await self._items.transact(writes), Refused):
            return 0
        claimed_event = replace(event, fence=event.fence + 1, direct_to=None)
        if source is None:
            await self._items.transact([event_store.event_fanned_out(claimed_event, {}, now_ms)])
            return 1
        for job in await self._fan_out.run(claimed_event, source):
            self._crew.deliver(job)
        return 1

    def _interrupted_direct(self, event: Event, source: SourceInUse | None, now_ms: int) -> Write:
        """Whoever had the event may have called its only connection."""
        assert event.direct_to is not None
        connection = None if source is None else source.connection(event.direct_to)
        url = "" if connection is None else connection.connection.destination_url
        delivery = replace(
            store.delivery_to(event, event.direct_to, DeliveryState.PENDING), fence=event.fence
        )
        attempt, mark = interrupted_attempt(delivery, url, now_ms)
        return store.new_attempt(attempt, event.expires_at, mark)

    # --- deliveries ---------------------------------------------------------------------------------

    async def _take_deliveries(self, records: Sequence[Item]) -> int:
        now_ms = self._clock.now_ms()
        due = [(item, store.delivery_of(item)) for item in records if _due_ms(item) <= now_ms]
        open_ones = [delivery for _, delivery in due if delivery.state in OPEN_STATES]
        events = await self._items.get_many(EVENTS, [_event_key(each) for each in open_ones])
        taken = 0
        for delivery, event_item in zip(open_ones, events, strict=True):
            if event_item is not None:
                opened = OpenEvent(event_store.event_of(event_item))
                taken += await self.take_delivery(opened, delivery)
        return taken

    async def take_delivery(self, opened: OpenEvent, delivery: Delivery) -> int:
        now_ms = self._clock.now_ms()
        source = await self._sources.find(delivery.source_id)
        connection = None if source is None else source.connection(delivery.connection_id)
        if source is None or connection is None:
            gone = without_call(delivery, DeliveryState.CANCELLED, "The connection was deleted.")
            await self._finisher.finish(opened, delivery, gone)
            return 1
        place = placement_of_replay if delivery.generation else placement
        where = place(connection.connection, connection.breaker, now_ms)
        if where is not Placement.SEND or not self._slots.try_acquire(connection.connection_id):
            return await self._park(opened, delivery, connection, now_ms)
        job = None
        try:
            job = await self._claims.claim(opened, delivery, source, connection)
        finally:
            if job is None:
                self._slots.release(connection.connection_id)
        if job is None:
            return 0
        self._crew.deliver(job)
        return 1

    async def _park(
        self, opened: OpenEvent, delivery: Delivery, connection: ConnectionInUse, now_ms: int
    ) -> int:
        """A slow connection that has all its slots in use is parked, too: others come after it."""
        if not self._slots.has_room():
            return 0
        await self._parking_marks.ensure(connection.connection_id, delivery.source_id)
        await self._finisher.finish(
            opened, delivery, held(delivery, now_ms), cut_short(delivery, connection, now_ms)
        )
        return 1


def _due_ms(item: Item) -> int:
    """As the item itself has it: the index may lag. One that waits for nothing is never due."""
    partition, sort = item.get("GSI2PK"), item.get("GSI2SK")
    if not isinstance(partition, str) or not partition.startswith("DUE#"):
        return 9_999_999_999_999
    return int(str(sort)[:13])


def _event_key(delivery: Delivery) -> Key:
    return event_key(delivery.source_id, delivery.received_at, delivery.event_id)
