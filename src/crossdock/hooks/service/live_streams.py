"""One client's live stream of a source: what it missed while it was away, then what happens.

- A stream begins with the place where it begins. A client that comes back names the last place it knows, and
  gets the events after it, at most `RESUMED_MAX`, and the few just before it: events are told in about the
  order in which they came, so one before it may not have been told yet. So an event may come twice, and is
  known by its id. Where more was missed the stream says `lagged`: whoever comes back goes on from there.
- A stream outlasts the moment in which its client was let in: it ends within seconds when the credential or
  the source does.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TypeAlias

from crossdock.engines.items.port import Items
from crossdock.hooks.model import Event
from crossdock.hooks.rules.listening import Position, beginning_notice, event_notice
from crossdock.hooks.service.live import LiveFeed, frame_of
from crossdock.hooks.service.sources import Sources
from crossdock.hooks.store.events import event_of, events_of_source, sort_key_of
from crossdock.hooks.store.tables import event_key
from crossdock.http.principals import Principal
from crossdock.http.problems import domain_error
from crossdock.http.sse import KEEP_ALIVE_SECONDS, LAGGED, EventBuffer, EventStream
from crossdock.kit.clock import Clock
from crossdock.kit.errors import Unavailable

log = logging.getLogger("crossdock.hooks")

RESUMED_MAX = 200
OVERLAP_MS = 2_000
PAGE = 20
"""Events are read with their bodies."""
CHECK_SECONDS = 1.0
SOURCE_CHECKED_EVERY = 5

Authenticate: TypeAlias = Callable[[], Awaitable[Principal]]
"""Who the client is now. Raises what a request of it would be answered with."""


class LiveStreams:
    def __init__(
        self,
        items: Items,
        feed: LiveFeed,
        sources: Sources,
        clock: Clock,
        *,
        check_seconds: float = CHECK_SECONDS,
        keep_alive_seconds: float = KEEP_ALIVE_SECONDS,
    ) -> None:
        self._items = items
        self._feed = feed
        self._sources = sources
        self._clock = clock
        self._check_seconds = check_seconds
        self._keep_alive_seconds = keep_alive_seconds

    async def open(
        self, source_id: str, last_event_id: str | None, authenticate: Authenticate
    ) -> EventStream:
        """Raises NotFound, or Unavailable when there are too many. A `last_event_id` that was never given out
        is taken for none."""
        await self._sources.find(await authenticate(), source_id)
        position = None if last_event_id is None else Position.parse(last_event_id)
        beginning = None if position is not None else Position.before_all(self._clock.now_ms())
        buffer = await self._feed.open(source_id)
        buffer.offer(frame_of(beginning_notice(source_id, beginning)))
        frames = self._frames(source_id, buffer, position, authenticate)
        return EventStream(frames, lambda: self._feed.leave(source_id, buffer))

    async def _frames(
        self, source_id: str, buffer: EventBuffer, position: Position | None, authenticate: Authenticate
    ) -> AsyncGenerator[bytes, None]:
        checking = asyncio.create_task(self._end_without_right(source_id, buffer, authenticate))
        try:
            if position is not None:
                async with aclosing(self._missed(source_id, position)) as missed:
                    async for frame in missed:
                        yield frame
            async with aclosing(buffer.frames(self._keep_alive_seconds)) as frames:
                async for frame in frames:
                    yield frame
        finally:
            checking.cancel()

    async def _end_without_right(
        self, source_id: str, buffer: EventBuffer, authenticate: Authenticate
    ) -> None:
        for number in itertools.count(1):
            await asyncio.sleep(self._check_seconds)
            try:
                principal = await authenticate()
                if number % SOURCE_CHECKED_EVERY == 0:
                    await self._sources.find(principal, source_id)
            except Exception as exception:
                error = domain_error(exception)
                if error is None:
                    log.exception("the right to a live stream could not be checked")
                if not isinstance(error, Unavailable):
                    break
        buffer.close()

    async def _missed(self, source_id: str, position: Position) -> AsyncGenerator[bytes, None]:
        try:
            for event in await self._just_before(source_id, position):
                yield frame_of(event_notice(event))
            async with aclosing(self._after(source_id, position)) as events:
                count = 0
                async for event in events:
                    if count == RESUMED_MAX:
                        yield LAGGED
                        return
                    count += 1
                    yield frame_of(event_notice(event))
        except Unavailable:
            yield LAGGED

    async def _just_before(self, source_id: str, position: Position) -> list[Event]:
        if not position.is_of_event:
            return []
        from_ms, to_ms = position.received_at - OVERLAP_MS, position.received_at
        page = await self._items.query(events_of_source(source_id, from_ms, to_ms, PAGE, None))
        own_key = _sort_key(source_id, position)
        return [event for event in map(event_of, reversed(page.items)) if sort_key_of(event) < own_key]

    async def _after(self, source_id: str, position: Position) -> AsyncGenerator[Event, None]:
        """The earliest first."""
        from_ms = position.received_at
        to_ms = max(from_ms, self._clock.now_ms())
        after: str | None = _sort_key(source_id, position)
        while after is not None:
            query = events_of_source(source_id, from_ms, to_ms, PAGE, after, descending=False)
            page = await self._items.query(query)
            for item in page.items:
                yield event_of(item)
            after = None if page.cursor is None else page.cursor["SK"]


def _sort_key(source_id: str, position: Position) -> str:
    return event_key(source_id, position.received_at, position.event_id)["SK"]
