"""Every transition of a delivery, with the attempt it tells of and its event's counts, in one transaction.

- The delivery record changes only if it still is as it was read, fence included. Who was taken over, or whose
  generation is not the newest any more, stores the attempt alone.
- The event's counts change only if no other delivery moved in between; else it is read again and tried again.
  Deliveries of one event that this process holds together wait for one another here instead.
- A commit whose outcome is unknown is tried again; if it was made, the record says so.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from crossdock.engines.items.port import Items, Put, Refused, Tally, Write
from crossdock.hooks.model import Attempt, Delivery, Event
from crossdock.hooks.rules.progress import counts_of, moved, status_of
from crossdock.hooks.store import deliveries as store
from crossdock.hooks.store import events as event_store
from crossdock.hooks.store.tables import EVENTS, delivery_key, event_key
from crossdock.kit.backoff import Backoff
from crossdock.kit.clock import Clock
from crossdock.kit.errors import Unavailable

CONFLICTS_MAX = 50
UNAVAILABLE_TRIES = 5
RETRY = Backoff(base_seconds=0.1, cap_seconds=2.0)


@dataclass(slots=True)
class OpenEvent:
    """An event in this process's hands, as last known."""

    event: Event
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(frozen=True, slots=True)
class Kept:
    """An attempt to be kept, and its mark."""

    attempt: Attempt
    mark: str = ""


class Finisher:
    def __init__(self, items: Items, clock: Clock) -> None:
        self._items = items
        self._clock = clock

    async def finish_direct(self, opened: OpenEvent, after: Delivery, kept: Kept | None) -> bool:
        """The fan-out, the delivery and its attempt at once, for an event that went straight to its only
        connection. False: it was taken over."""
        event = opened.event
        counts = counts_of([after.state])
        writes: list[Write | Tally] = [
            event_store.event_fanned_out(event, counts, self._clock.now_ms()),
            store.new_delivery(after),
        ]
        self._also(writes, event, after, kept)
        outcome = await self._transact(writes)
        if not isinstance(outcome, Refused):
            return True
        return await self._was_taken_over(after, kept, event)

    async def finish(
        self, opened: OpenEvent, before: Delivery, after: Delivery, kept: Kept | None = None
    ) -> bool:
        """False: the record is not as `before` any more."""
        async with opened.lock:
            for _ in range(CONFLICTS_MAX):
                event = opened.event
                counts = moved(event.counts, before.state, after.state)
                writes: list[Write | Tally] = [store.delivery_changed(before, after)]
                counted = counts != event.counts
                if counted:
                    writes.append(event_store.event_moved(event, counts, self._clock.now_ms()))
                self._also(writes, event, after, kept)
                outcome = await self._transact(writes)
                if not isinstance(outcome, Refused):
                    if counted:
                        opened.event = _with_counts(event, counts, self._clock.now_ms())
                    return True
                if outcome.failures[0].position == 0:
                    return await self._was_taken_over(after, kept, event)
                fresh = await self._items.get(
                    EVENTS, event_key(event.source_id, event.received_at, event.event_id)
                )
                if fresh is None:
                    return False  # it expired
                opened.event = event_store.event_of(fresh)
        raise Unavailable("contended", "Too many deliveries of one event at once.")

    def _also(self, writes: list[Write | Tally], event: Event, after: Delivery, kept: Kept | None) -> None:
        if kept is not None:
            writes.append(_put(kept, event))
        tally = store.ended(after)
        if tally is not None:
            writes.append(tally)

    async def _was_taken_over(self, after: Delivery, kept: Kept | None, event: Event) -> bool:
        item = await self._items.get(EVENTS, delivery_key(after.event_id, after.connection_id))
        if item is not None and store.delivery_of(item) == after:
            return True  # by ourselves: the answer to our first commit was lost
        if kept is not None:
            # Who took over in the same generation goes on from the same number: its attempt needs the key.
            is_replayed = item is not None and store.delivery_of(item).generation != after.generation
            mark = kept.mark if kept.mark or is_replayed else f"l{after.fence}"
            await self._transact([_put(Kept(kept.attempt, mark), event)])
        return False

    async def _transact(self, writes: list[Write | Tally]) -> object:
        for attempt in range(1, UNAVAILABLE_TRIES):
            try:
                return await self._items.transact(writes)
            except Unavailable:
                await asyncio.sleep(RETRY.delay_seconds(attempt, random.random))
        return await self._items.transact(writes)


def _put(kept: Kept, event: Event) -> Put:
    return store.new_attempt(kept.attempt, event.expires_at, kept.mark)


def _with_counts(event: Event, counts: Mapping[str, int], now_ms: int) -> Event:
    return replace(
        event,
        counts=dict(counts),
        status=status_of(counts),
        version=event.version + 1,
        processed_at=event.processed_at or now_ms,
    )
