"""Those who look after connections that may not be called just so: one process at a time, under a lease.

What is parked is delivered from here, in the order in which it was due, as the connection allows: within its
rate and its calls at a time; one probe at a time while its circuit is half open; nothing while it is paused.
What waits so long that its event is about to be gone ends as exhausted.
"""

from __future__ import annotations

import asyncio
import heapq
import logging

from crossdock.delivery import breaker
from crossdock.delivery.limits import RateLimiter, Slots, parse_rate_limit
from crossdock.delivery.model import GaveUpReason
from crossdock.engines.items.port import Items
from crossdock.hooks.model import OPEN_STATES, SHARDS, Delivery, DeliveryState, Status
from crossdock.hooks.rules.outcomes import not_after_ms, without_call
from crossdock.hooks.service.claims import Claims
from crossdock.hooks.service.crew import Crew
from crossdock.hooks.service.finishing import Finisher, OpenEvent
from crossdock.hooks.service.health import ConnectionHealth
from crossdock.hooks.service.in_use import ConnectionInUse, SourceInUse, SourcesInUse
from crossdock.hooks.service.ordered import OrderedWalks
from crossdock.hooks.store import deliveries as store
from crossdock.hooks.store import events as event_store
from crossdock.hooks.store.tables import EVENTS, event_key
from crossdock.kit.clock import Clock
from crossdock.kit.errors import CrossdockError
from crossdock.kit.logging import fields

log = logging.getLogger("crossdock.hooks")

LOOK_SECONDS = 0.25
FAILED_SECONDS = 2.0
PAGE = 32
EMPTY_SECONDS = 1.0
"""How long a connection without parked work is left alone."""
RETENTION_LOOK_SECONDS = 30.0


class Parking:
    def __init__(
        self,
        items: Items,
        *,
        sources: SourcesInUse,
        claims: Claims,
        finisher: Finisher,
        health: ConnectionHealth,
        walks: OrderedWalks,
        crew: Crew,
        slots: Slots[str],
        clock: Clock,
    ) -> None:
        self._items = items
        self._sources = sources
        self._claims = claims
        self._finisher = finisher
        self._health = health
        self._walks = walks
        self._crew = crew
        self._slots = slots
        self._clock = clock
        self._rates: RateLimiter[str] = RateLimiter(clock)
        self._quiet_until: dict[str, float] = {}

    async def run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                try:
                    await self.look()
                except CrossdockError as error:
                    log.warning("can't look after parked deliveries", extra=fields(reason=str(error)))
                    await asyncio.sleep(FAILED_SECONDS)
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Nobody walks for an ordered connection from here any more."""
        await self._walks.stop()

    async def look(self) -> None:
        """Once at every connection that may have parked work."""
        after = None
        while True:
            page = await self._items.query(store.parking_marks(200, after))
            for item in page.items:
                connection_id, _, source_id = str(item["GSI2SK"]).partition("#")
                if self._quiet_until.get(connection_id, 0.0) <= self._clock.monotonic():
                    await self._look_after(source_id, connection_id)
            after = page.cursor
            if after is None:
                return

    async def _look_after(self, source_id: str, connection_id: str) -> None:
        source = await self._sources.find(source_id)
        connection = None if source is None else source.connection(connection_id)
        if source is None or connection is None:
            await self._end_all(connection_id)
            return
        if connection.connection.ordered:
            self._walks.ensure(source, connection)
        if connection.connection.status is Status.PAUSED:
            await self._end_those_about_to_go(connection_id)
        else:
            await self._send(source, connection)

    async def _send(self, source: SourceInUse, connection: ConnectionInUse) -> None:
        phase = breaker.phase(connection.breaker, self._clock.now_ms())
        if phase is breaker.Phase.OPEN:
            await self._end_those_about_to_go(connection.connection_id)
            return
        parked = await self._parked(connection.connection_id, PAGE)
        if connection.connection.ordered:
            parked = [each for each in parked if each.generation]  # the walk has the others
        if not parked:
            self._be_quiet(connection.connection_id, EMPTY_SECONDS)
            return
        if phase is breaker.Phase.HALF_OPEN:
            if await self._health.claim_probe(connection):
                await self._send_some(source, connection, parked[:1])
            return
        await self._send_some(source, connection, parked)

    async def _send_some(
        self, source: SourceInUse, connection: ConnectionInUse, parked: list[Delivery]
    ) -> None:
        """In order, as many as the limits allow now."""
        limit = parse_rate_limit(connection.connection.rate_limit)
        for delivery in parked:
            at_most = connection.connection.max_in_flight
            if not self._slots.try_acquire(connection.connection_id, at_most):
                return
            job = None
            try:
                if limit is not None and not self._rates.try_acquire(connection.connection_id, limit):
                    return
                opened = await self._opened(delivery)
                job = (
                    None if opened is None else await self._claims.claim(opened, delivery, source, connection)
                )
            finally:
                if job is None:
                    self._slots.release(connection.connection_id)
            if job is not None:
                self._crew.deliver(job)

    async def _opened(self, delivery: Delivery) -> OpenEvent | None:
        key = event_key(delivery.source_id, delivery.received_at, delivery.event_id)
        item = await self._items.get(EVENTS, key)
        return None if item is None else OpenEvent(event_store.event_of(item))

    async def _parked(self, connection_id: str, limit: int) -> list[Delivery]:
        """Those that have waited the longest, read by their keys: the index only says where to look."""
        queries = (store.parked(connection_id, shard, limit) for shard in range(SHARDS))
        pages = await asyncio.gather(*map(self._items.query, queries))
        merged = heapq.merge(*(page.items for page in pages), key=lambda item: str(item["GSI2SK"]))
        first = [item for item, _ in zip(merged, range(limit), strict=False)]
        items = await self._items.get_many(EVENTS, event_store.event_keys(first))
        found = [store.delivery_of(item) for item in items if item is not None]
        return [each for each in found if each.state is DeliveryState.HELD and each.lease_until is None]

    async def _end_all(self, connection_id: str) -> None:
        """The connection is gone."""
        parked = await self._parked(connection_id, PAGE)
        if not parked:
            self._be_quiet(connection_id, RETENTION_LOOK_SECONDS)
        for delivery in parked:
            await self._end(delivery, DeliveryState.CANCELLED, "The connection was deleted.")

    async def _end_those_about_to_go(self, connection_id: str) -> None:
        now_ms = self._clock.now_ms()
        parked = await self._parked(connection_id, PAGE)
        ending = [each for each in parked if now_ms >= not_after_ms(each.expires_at)]
        for delivery in ending:
            await self._end(delivery, DeliveryState.EXHAUSTED, GaveUpReason.RETENTION.value)
        if not ending:
            self._be_quiet(connection_id, EMPTY_SECONDS)

    async def _end(self, delivery: Delivery, state: DeliveryState, reason: str) -> None:
        opened = await self._opened(delivery)
        if opened is not None and delivery.state in OPEN_STATES:
            await self._finisher.finish(opened, delivery, without_call(delivery, state, reason))

    def _be_quiet(self, connection_id: str, seconds: float) -> None:
        if len(self._quiet_until) > 10_000:
            self._quiet_until.clear()
        self._quiet_until[connection_id] = self._clock.monotonic() + seconds
