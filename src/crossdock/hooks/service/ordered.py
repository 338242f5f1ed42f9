"""Connections that get their events in order: a walk each, one event at a time.

The walk follows the source's events by their keys, so by the time at which they were received, two seconds
behind now: two nodes may write their events in another order than they received them. It goes on from the
cursor on the connection's item. An event that fails blocks those behind it until its attempts are used up;
then the connection is paused, and says so. Replays are outside the order.
"""

from __future__ import annotations

import asyncio
import logging
from enum import Enum

from crossdock.delivery.limits import Slots
from crossdock.engines.items.port import Items
from crossdock.hooks.model import OPEN_STATES, Delivery, DeliveryState, Event, EventStatus, Status
from crossdock.hooks.service.claims import Claims
from crossdock.hooks.service.deliverer import Deliverer
from crossdock.hooks.service.finishing import OpenEvent
from crossdock.hooks.service.health import ConnectionHealth
from crossdock.hooks.service.in_use import ConnectionInUse, SourceInUse, SourcesInUse
from crossdock.hooks.store import connections as connection_store
from crossdock.hooks.store import deliveries as store
from crossdock.hooks.store import events as event_store
from crossdock.hooks.store.tables import EVENTS, MAIN, connection_key, delivery_key
from crossdock.kit.clock import Clock
from crossdock.kit.errors import CrossdockError
from crossdock.kit.logging import fields

log = logging.getLogger("crossdock.hooks")

BEHIND_MS = 2_000
PAGE = 50
IDLE_SECONDS = 0.5
WAIT_SECONDS_MAX = 5.0
NOT_IN_ORDER = "An event could not be delivered, and those after it wait for it."


class _Progress(Enum):
    """Of a walk at one event."""

    NEXT = "next"
    """It is done with, as far as this connection goes."""
    WAIT = "wait"
    STOP = "stop"
    """It is done with, and those behind it are not to be sent until somebody has looked."""


class OrderedWalks:
    def __init__(
        self,
        items: Items,
        *,
        sources: SourcesInUse,
        claims: Claims,
        deliverer: Deliverer,
        health: ConnectionHealth,
        slots: Slots[str],
        clock: Clock,
    ) -> None:
        self._items = items
        self._sources = sources
        self._claims = claims
        self._deliverer = deliverer
        self._health = health
        self._slots = slots
        self._clock = clock
        self._walking: dict[str, asyncio.Task[None]] = {}

    def ensure(self, source: SourceInUse, connection: ConnectionInUse) -> None:
        """Somebody walks for this connection, unless it is paused."""
        if connection.connection.status is not Status.ACTIVE:
            return
        running = self._walking.get(connection.connection_id)
        if running is None or running.done():
            walk = self._walk(source.source.source_id, connection.connection_id)
            self._walking[connection.connection_id] = asyncio.create_task(walk)

    async def stop(self) -> None:
        tasks = list(self._walking.values())
        self._walking.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _walk(self, source_id: str, connection_id: str) -> None:
        """Until the connection is no longer there to be walked for."""
        try:
            while True:
                source = await self._sources.find(source_id)
                used = None if source is None else source.connection(connection_id)
                if source is None or used is None or not _is_walked(used):
                    return
                if not await self._step(source, used):
                    await asyncio.sleep(IDLE_SECONDS)
        except CrossdockError as error:
            said = fields(connection_id=connection_id, reason=str(error))
            log.warning("an ordered walk stopped, and will go on", extra=said)

    async def _step(self, source: SourceInUse, used: ConnectionInUse) -> bool:
        """A page of events. False: there is nothing to do now."""
        cursor = await self._cursor(used)
        until_ms = self._clock.now_ms() - BEHIND_MS
        page = await self._items.query(
            event_store.events_of_source(
                used.connection.source_id, 0, until_ms, PAGE, cursor or None, descending=False
            )
        )
        passed: str | None = None
        for item in page.items:
            event = event_store.event_of(item)
            progress = await self._pass(source, used, event)
            if progress is not _Progress.WAIT:
                passed = event_store.sort_key_of(event)
            if progress is not _Progress.NEXT:
                break
        if passed is not None:
            await self._remember(used, passed)
        return passed is not None

    async def _pass(self, source: SourceInUse, used: ConnectionInUse, event: Event) -> _Progress:
        if event.status is EventStatus.RECEIVED:
            return _Progress.WAIT
        delivery = await self._delivery(event, used)
        if delivery is not None and delivery.generation:
            return _Progress.NEXT  # it was replayed: that is outside the order
        if delivery is not None and delivery.state is DeliveryState.HELD:
            now_ms = self._clock.now_ms()
            wait_ms = max(delivery.next_attempt_at or 0, delivery.lease_until or 0) - now_ms
            if wait_ms > 0:
                await asyncio.sleep(min(wait_ms / 1000, WAIT_SECONDS_MAX))
                return _Progress.WAIT
            delivery = await self._deliver(source, used, event, delivery)
            if delivery is None:
                return _Progress.WAIT
        if delivery is not None and delivery.state in (DeliveryState.EXHAUSTED, DeliveryState.FAILED):
            await self._health.pause(used.connection, NOT_IN_ORDER)
            return _Progress.STOP
        open_still = delivery is not None and delivery.state in OPEN_STATES
        return _Progress.WAIT if open_still else _Progress.NEXT

    async def _deliver(
        self, source: SourceInUse, used: ConnectionInUse, event: Event, delivery: Delivery
    ) -> Delivery | None:
        while not self._slots.try_acquire(used.connection_id, 1):  # noqa: ASYNC110 -- slots set no event
            await asyncio.sleep(IDLE_SECONDS)
        job = None
        try:
            job = await self._claims.claim(OpenEvent(event), delivery, source, used)
        finally:
            if job is None:
                self._slots.release(used.connection_id)
        return None if job is None else await self._deliverer.deliver(job)

    async def _delivery(self, event: Event, used: ConnectionInUse) -> Delivery | None:
        item = await self._items.get(EVENTS, delivery_key(event.event_id, used.connection_id))
        return None if item is None else store.delivery_of(item)

    async def _cursor(self, used: ConnectionInUse) -> str:
        """As stored: what is kept of the connection may be a second old."""
        item = await self._items.get(MAIN, connection_key(used.connection.source_id, used.connection_id))
        return "" if item is None else (connection_store.connection_of(item).ordered_cursor or "")

    async def _remember(self, used: ConnectionInUse, cursor: str) -> None:
        await self._items.transact([connection_store.walked_to(used.connection, cursor)])


def _is_walked(used: ConnectionInUse) -> bool:
    return used.connection.ordered and used.connection.status is Status.ACTIVE
