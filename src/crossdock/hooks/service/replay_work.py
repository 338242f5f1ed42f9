"""Replays of many events, carried out: page by page of their source's events, oldest first.

- One process at a time works on a replay, under a lease; a dead one's is taken over when that ends. Replays
  take turns, so that a long one keeps nobody waiting.
- A page's progress and the cursor behind it are one write, which holds only from the cursor before. A page
  that was cut short is gone through again: what has the replay's generation is counted, and left alone.
- One that is cancelled stops after the page in hand: a fraction of a second.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from zlib import crc32

from crossdock.engines.items.port import Items, Refused
from crossdock.engines.leases import Leases
from crossdock.hooks.model import Event
from crossdock.hooks.rules.replaying import Progress, Replay, ReplayState
from crossdock.hooks.service.in_use import SourceInUse, SourcesInUse
from crossdock.hooks.service.replaying import Planned, Replayer, Wanted
from crossdock.hooks.store import replays as store
from crossdock.hooks.store.events import event_of, events_of_source, sort_key_of
from crossdock.hooks.store.tables import EVENTS
from crossdock.kit.clock import Clock
from crossdock.kit.errors import CrossdockError, Unavailable
from crossdock.kit.logging import fields

log = logging.getLogger("crossdock.hooks")

PAGE = 32
AT_ONCE = 4
LOOK_SECONDS = 0.5
FAILED_SECONDS = 2.0
TURN_SECONDS = 5.0
LEASE_SECONDS = 15.0
LEASES = 32
"""Names of leases last for ever: replays share these."""
RUNNING_LOOKED_AT = 200
FAILURES_MAX = 5


class ReplayWork:
    def __init__(self, items: Items, *, sources: SourcesInUse, replayer: Replayer, clock: Clock) -> None:
        self._items = items
        self._sources = sources
        self._replayer = replayer
        self._clock = clock
        self._turns: dict[int, asyncio.Task[None]] = {}
        """By the number of their lease."""
        self._had_turn: dict[str, float] = {}
        self._failures: Counter[str] = Counter()

    async def run(self, leases: Leases) -> None:
        """Until cancelled."""
        try:
            while True:
                try:
                    await self._look(leases)
                except CrossdockError as error:
                    log.warning("can't look for replays", extra=fields(reason=str(error)))
                    await asyncio.sleep(FAILED_SECONDS)
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            turns = list(self._turns.values())
            self._turns.clear()
            for turn in turns:
                turn.cancel()
            await asyncio.gather(*turns, return_exceptions=True)

    async def _look(self, leases: Leases) -> None:
        """Gives those that have waited the longest a turn, as long as there is room."""
        page = await self._items.query(store.running_replays(RUNNING_LOOKED_AT))
        running = [str(item["GSI2SK"]) for item in page.items]
        self._had_turn = {each: self._had_turn[each] for each in running if each in self._had_turn}
        self._failures = Counter({each: self._failures[each] for each in running if self._failures[each]})
        self._turns = {number: turn for number, turn in self._turns.items() if not turn.done()}
        for replay_id in sorted(running, key=lambda each: self._had_turn.get(each, 0.0)):
            number = crc32(replay_id.encode()) % LEASES
            if len(self._turns) < AT_ONCE and number not in self._turns:
                self._had_turn[replay_id] = self._clock.monotonic()
                self._turns[number] = asyncio.create_task(self._turn(leases, number, replay_id))

    async def _turn(self, leases: Leases, number: int, replay_id: str) -> None:
        try:
            lease = await leases.acquire(f"hooks.replays:{number:02d}", LEASE_SECONDS)
            if lease is None:
                return
            until = self._clock.monotonic() + TURN_SECONDS
            async with lease:
                await self.work_on(replay_id, goes_on=lambda: lease.held and self._clock.monotonic() < until)
            self._failures.pop(replay_id, None)
        except Unavailable as error:
            log.warning("a replay has to wait", extra=fields(replay_id=replay_id, reason=str(error)))
        except Exception:
            log.exception("a replay failed unforeseen", extra=fields(replay_id=replay_id))
            await self._give_up_after_some(replay_id)

    async def _give_up_after_some(self, replay_id: str) -> None:
        """What fails unforeseen would fail for ever, and must come to an end."""
        self._failures[replay_id] += 1
        if self._failures[replay_id] < FAILURES_MAX:
            return
        try:
            await self._end(replay_id, ReplayState.FAILED, "internal_error")
        except CrossdockError as error:
            log.warning("a replay can't be given up", extra=fields(replay_id=replay_id, reason=str(error)))

    async def work_on(self, replay_id: str, goes_on: Callable[[], bool]) -> None:
        """To its end, or until it is not to go on. The caller holds the lease."""
        item = await self._items.get(EVENTS, store.replay_key(replay_id))
        replay = None if item is None else store.replay_of(item)
        if replay is not None:
            # Whoever asked for it meant the connections as they were then: what was read before may lack one.
            self._sources.forget(replay.source_id)
        is_resumed = True
        while replay is not None and replay.state is ReplayState.RUNNING and goes_on():
            replay = await self._step(replay, is_resumed)
            is_resumed = False

    async def _step(self, replay: Replay, is_resumed: bool) -> Replay | None:
        """A page of events. The replay after it; None: it has ended, or somebody else works on it."""
        source = await self._sources.find(replay.source_id)
        if source is None:
            await self._end(replay.replay_id, ReplayState.FAILED, "source_deleted")
            return None
        if replay.connection_id is not None and source.connection(replay.connection_id) is None:
            await self._end(replay.replay_id, ReplayState.FAILED, "connection_deleted")
            return None
        page = await self._items.query(
            events_of_source(
                replay.source_id, replay.from_ms, replay.to_ms, PAGE, replay.cursor, descending=False
            )
        )
        events = [event_of(item) for item in page.items]
        if events:
            plans = await self._replay(events, source, replay, is_resumed)
            advanced = await self._advance(replay, events, plans)
            if advanced is None:
                return None
            replay = advanced
        if page.cursor is None:
            await self._end(replay.replay_id, ReplayState.DONE)
            return None
        return replay

    async def _replay(
        self, events: Sequence[Event], source: SourceInUse, replay: Replay, is_resumed: bool
    ) -> list[Planned]:
        """Of a page that may have been begun before, events that don't fit any more are looked at, too: this
        replay may have moved them."""
        wanted = Wanted(replay.generation, replay.connection_id, status=replay.status)
        fitting = [event for event in events if is_resumed or wanted.covers(event)]
        return await self._replayer.replay(fitting, source, wanted)

    async def _advance(
        self, replay: Replay, events: Sequence[Event], plans: Sequence[Planned]
    ) -> Replay | None:
        progress = Progress(
            looked_at=len(events),
            replayed=sum(planned.deliveries > 0 for planned in plans),
            deliveries=sum(planned.deliveries for planned in plans),
        )
        update = store.replay_advanced(replay, progress, sort_key_of(events[-1]))
        outcome = await self._items.update(
            update.table, update.key, *update.changes, condition=update.condition
        )
        if isinstance(outcome, Refused) or outcome.item is None:
            return None
        return store.replay_of(outcome.item)

    async def _end(self, replay_id: str, state: ReplayState, reason: str | None = None) -> None:
        await self._items.transact([store.replay_ended(replay_id, state, self._clock.now_ms(), reason)])
