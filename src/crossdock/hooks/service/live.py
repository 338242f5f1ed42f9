"""Live events: whoever listens to a source hears of its events and deliveries, whatever process they came by.

    a stream is opened     NOTIFY hooks_listening, at once and every 5 s as long as it is open
    every process          remembers for 15 s which sources are listened to
    accepted, moved        of those are collected; of any other they cost one look into a dict
    every 100 ms at most   one NOTIFY hooks_live with what was collected, outside of any other commit
    every process          hands on what it hears to the streams it serves

It is best effort, and never in the way of the work it tells of: what can't be told in time is dropped. The
streams of a source then say `lagged`, and their clients come back and get it from the store. That is so

- when more happens at once than a burst may have, or a client is slow;
- when a process connects, for the first time or again: it asks who listens, and what it accepted until it was
  told may be missing. So the streams of all processes lag, as soon as it knows.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import msgspec

from crossdock.engines.notifications import PAYLOAD_BYTES_MAX, Notifications
from crossdock.hooks.model import Delivery, Event
from crossdock.hooks.rules.listening import (
    Notice,
    delivery_notice,
    encoded,
    event_notice,
    lag_notice,
    packed,
    unpacked,
)
from crossdock.http.sse import EventBuffer, event_frame
from crossdock.kit.clock import Clock
from crossdock.kit.errors import Unavailable
from crossdock.kit.metrics import gauge

STREAMS = gauge("hooks_streams_open", "Live streams of events that are open, over all processes.")

LISTENING, LIVE = "hooks_listening", "hooks_live"
ASKING = "[]"
"""Who listens?"""
ANNOUNCE_SECONDS = 5.0
REMEMBER_SECONDS = 15.0
FLUSH_SECONDS = 0.1
BURST_BYTES_MAX = 256 * 1024
"""Of what is told in one flush: about a thousand notices."""
STREAMS_MAX = 200
"""Of one process."""

_source_ids = msgspec.json.Decoder(list[str])


class LiveFeed:
    """One for each process; `run` is its background work, and ends its streams when it ends."""

    def __init__(
        self,
        notifications: Notifications,
        clock: Clock,
        *,
        streams_max: int = STREAMS_MAX,
        announce_seconds: float = ANNOUNCE_SECONDS,
    ) -> None:
        self._notifications = notifications
        self._clock = clock
        self._streams_max = streams_max
        self._announce_seconds = announce_seconds
        self._wanted: dict[str, float] = {}
        """Sources that somebody listens to, and until when that is believed."""
        self._collected: list[bytes] = []
        self._collected_bytes = 0
        self._lagging: set[str] = set()
        """Sources of which something was dropped since the last flush."""
        self._has_news = asyncio.Event()
        self._streams: dict[str, set[EventBuffer]] = {}
        self._is_closed = False
        self._has_connected = False
        self._somebody_asks = False
        self._announce_now = asyncio.Event()
        notifications.listen(LISTENING, self._remember, self._ask)
        notifications.listen(LIVE, self._hand_on)

    # --- what happens -------------------------------------------------------------------------------

    def accepted(self, event: Event) -> None:
        if event.source_id in self._wanted:
            self._collect(event_notice(event))

    def moved(self, delivery: Delivery, status_code: int | None) -> None:
        if delivery.source_id in self._wanted:
            self._collect(delivery_notice(delivery, status_code))

    def _collect(self, notice: Notice) -> None:
        entry = encoded(notice)
        if self._collected_bytes + len(entry) > BURST_BYTES_MAX:
            self._lagging.add(notice.source_id)
        else:
            self._collected.append(entry)
            self._collected_bytes += len(entry)
        self._has_news.set()

    # --- streams ------------------------------------------------------------------------------------

    async def open(self, source_id: str) -> EventBuffer:
        """A client's buffer, which hears all that happens from now on. To be given back by `leave`."""
        if self._is_closed:
            raise Unavailable("server_stopping", "This process is stopping.", retry_after_seconds=1)
        if sum(map(len, self._streams.values())) >= self._streams_max:
            raise Unavailable(
                "too_many_streams", "Too many live streams are open here.", retry_after_seconds=5
            )
        buffer = EventBuffer()
        self._streams.setdefault(source_id, set()).add(buffer)
        STREAMS.inc()
        try:
            await self._announce([source_id])
        except BaseException:
            self.leave(source_id, buffer)
            raise
        return buffer

    def leave(self, source_id: str, buffer: EventBuffer) -> None:
        streams = self._streams.get(source_id, set())
        if buffer in streams:
            STREAMS.dec()
        streams.discard(buffer)
        if not streams:
            self._streams.pop(source_id, None)

    def close(self) -> None:
        """Every stream ends, and none is opened any more."""
        self._is_closed = True
        for buffer in self._buffers():
            buffer.close()

    # --- in the background --------------------------------------------------------------------------

    async def run(self) -> None:
        """Until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._flush_forever())
                group.create_task(self._announce_forever())
        finally:
            self.close()

    async def _flush_forever(self) -> None:
        while True:
            await self._has_news.wait()
            self._has_news.clear()
            await self._flush()
            await asyncio.sleep(FLUSH_SECONDS)

    async def _flush(self) -> None:
        entries, lagging = self._collected, self._lagging
        self._collected, self._collected_bytes, self._lagging = [], 0, set()
        entries += [encoded(lag_notice(source_id)) for source_id in lagging]
        try:
            await self._notifications.notify(LIVE, list(packed(entries, PAYLOAD_BYTES_MAX)))
        except Unavailable:
            self._lagging.update(self._wanted)
            if self._lagging:
                self._has_news.set()

    async def _announce_forever(self) -> None:
        while True:
            self._announce_now.clear()
            now = self._clock.monotonic()
            self._wanted = {source: until for source, until in self._wanted.items() if now < until}
            if self._has_connected:
                self._has_connected = False
                await self._tell_listeners([ASKING])
            was_asked, self._somebody_asks = self._somebody_asks, False
            await self._announce(list(self._streams))
            if was_asked:
                await asyncio.sleep(FLUSH_SECONDS)  # by then it has heard the answer
                for buffer in self._buffers():
                    buffer.lag()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._announce_now.wait(), self._announce_seconds)

    async def _announce(self, source_ids: list[str]) -> None:
        self._believe(source_ids)
        payloads = list(packed(map(msgspec.json.encode, source_ids), PAYLOAD_BYTES_MAX))
        if payloads:
            await self._tell_listeners(payloads)

    async def _tell_listeners(self, payloads: list[str]) -> None:
        with suppress(Unavailable):  # whoever connects again asks
            await self._notifications.notify(LISTENING, payloads)

    # --- what is heard ------------------------------------------------------------------------------

    def _ask(self) -> None:
        """From now on all is heard: who listens?"""
        self._has_connected = True
        self._announce_now.set()

    def _remember(self, payload: str) -> None:
        if payload == ASKING:
            self._somebody_asks = True
            self._announce_now.set()
        else:
            self._believe(_source_ids.decode(payload))

    def _believe(self, source_ids: list[str]) -> None:
        until = self._clock.monotonic() + REMEMBER_SECONDS
        self._wanted.update(dict.fromkeys(source_ids, until))

    def _hand_on(self, payload: str) -> None:
        if not self._streams:
            return
        for notice in unpacked(payload):
            streams = self._streams.get(notice.source_id)
            if not streams:
                continue
            frame = frame_of(notice)
            for buffer in streams:
                if notice.kind == "lagged":
                    buffer.lag()
                else:
                    buffer.offer(frame)

    def _buffers(self) -> list[EventBuffer]:
        return [buffer for streams in self._streams.values() for buffer in streams]


def frame_of(notice: Notice) -> bytes:
    return event_frame(notice.kind, bytes(notice.data), notice.position or None)
