"""Replays asked for: of one event, at once; of many, planned or begun, looked after and cancelled.

One event is replayed in the transaction that records its Idempotency-Key. Many are a job that is carried out
elsewhere (`replay_work`); what is asked for here is only written down.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

from crossdock.engines.items.port import Item, Items, Refused
from crossdock.hooks.model import Event, EventStatus
from crossdock.hooks.rules.replaying import (
    NotNow,
    Replay,
    ReplayState,
    generation_of,
    next_generation,
    not_now,
)
from crossdock.hooks.rules.searching import Allowance, SearchBudget, Span, moment
from crossdock.hooks.service.event_finding import EventFinder
from crossdock.hooks.service.finding import changed_meanwhile, connection_not_found, source_not_found
from crossdock.hooks.service.in_use import SourceInUse, SourcesInUse
from crossdock.hooks.service.replaying import CONFLICTS_MAX, Replayer, Wanted, plan
from crossdock.hooks.store import replays as store
from crossdock.hooks.store.events import event_of, events_of_source
from crossdock.hooks.store.tables import EVENTS
from crossdock.http.idempotency import IdempotentRequest, Once, Stored
from crossdock.http.idempotency_items import Effect, ItemsIdempotency
from crossdock.http.pages import Page, PageRequest
from crossdock.http.principals import Principal
from crossdock.kit.clock import Clock
from crossdock.kit.errors import Conflict, MalformedRequest, NotFound
from crossdock.kit.ids import Random, nanoid
from crossdock.kit.pagination import encode_cursor

PLAN_PAGE = 32
RUNNING_MAX = 20
"""Of a source at a time, or a little more: it is only looked at before one is begun."""

_REPLAY_ID = re.compile(r"rpl_[0-9A-Za-z_-]{16}")
_POSITION = {"created_ms": int, "replay_id": str}


class ReplayedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """`generation` is what receivers see in the header `crossdock-replay`."""

    event_id: str
    replay_id: str
    generation: str
    connections: list[str]
    """Those that it is sent to again."""


class ShownReplay(msgspec.Struct, frozen=True, kw_only=True):
    replay_id: str
    source_id: str
    user_id: str
    generation: str
    state: ReplayState
    from_: str = msgspec.field(name="from")
    to: str
    status: EventStatus | None
    connection_id: str | None
    looked_at: int
    replayed: int
    """Events, of those looked at; the others are `skipped`."""
    skipped: int
    deliveries: int
    """Begun anew for the events replayed."""
    created_at: str
    finished_at: str | None
    reason: str | None


class ReplayPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a replay would do. `at_least`: there are more events than were looked at to say so."""

    would_replay: int
    deliveries: int
    looked_at: int
    at_least: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """Of a source's events."""

    source_id: str
    span: Span
    status: EventStatus | None = None
    connection_id: str | None = None


REPLAYED_EVENT = Stored(ReplayedEvent)
SHOWN = Stored(ShownReplay)


class Replays:
    def __init__(
        self,
        items: Items,
        idempotency: ItemsIdempotency,
        *,
        finder: EventFinder,
        sources: SourcesInUse,
        replayer: Replayer,
        clock: Clock,
        random: Random,
        budget: SearchBudget | None = None,
    ) -> None:
        self._items = items
        self._idempotency = idempotency
        self._finder = finder
        self._sources = sources
        self._replayer = replayer
        self._clock = clock
        self._random = random
        self._budget = budget or SearchBudget()

    # --- one event ----------------------------------------------------------------------------------

    async def replay_event(
        self,
        principal: Principal,
        event_id: str,
        connection_id: str | None,
        request: IdempotentRequest | None,
    ) -> Once[ReplayedEvent]:
        """To all live connections whose filters match it now, or to the one that is named, be its filter what
        it may."""
        replay_id = self._new_id()

        async def prepare() -> Effect[ReplayedEvent]:
            event = await self._finder.event(principal, event_id)
            return await self._replay(event, replay_id, connection_id)

        for _ in range(CONFLICTS_MAX):
            once = await self._idempotency.once(request, REPLAYED_EVENT, prepare)
            if not isinstance(once, Refused):
                return once
        raise changed_meanwhile()

    async def _replay(self, event: Event, replay_id: str, connection_id: str | None) -> Effect[ReplayedEvent]:
        now_ms = self._clock.now_ms()
        _check_time(event, now_ms)
        source = await self._fresh(event.source_id)
        wanted = Wanted("", connection_id, asks_filters=connection_id is None)
        if source is None or not (connections := wanted.connections_of(source)):
            raise _nobody(connection_id)
        records = await self._replayer.records(event, connections)
        generation = next_generation(replay_id, now_ms, (each.generation for each in records.values()))
        wanted = Wanted(generation, connection_id, asks_filters=connection_id is None)
        planned = plan(event, records, source, wanted, now_ms)
        if not planned.restarts:
            raise _nobody(None)
        replayed = ReplayedEvent(
            event_id=event.event_id,
            replay_id=replay_id,
            generation=generation,
            connections=[restart.after.connection_id for restart in planned.restarts],
        )
        return Effect(replayed, await self._replayer.writes(event, planned))

    # --- many events --------------------------------------------------------------------------------

    async def plan(self, principal: Principal, choice: Choice) -> ReplayPlan:
        """How many events would be replayed, as far as can be told in bounded time."""
        source = await self._chosen(principal, choice)
        span = choice.span
        wanted = self._wanted(choice, generation_of("", self._clock.now_ms()))
        allowance = Allowance(self._budget, self._clock)
        would_replay = deliveries = 0
        after: str | None = None
        while True:
            query = events_of_source(
                choice.source_id, span.from_ms, span.to_ms, PLAN_PAGE, after, descending=False
            )
            page = await self._items.query(query)
            events = [event_of(item) for item in page.items if allowance.take()]
            plans = await self._replayer.look(events, source, wanted)
            would_replay += sum(bool(planned.restarts) for planned in plans)
            deliveries += sum(len(planned.restarts) for planned in plans)
            is_all = page.cursor is None and len(events) == len(page.items)
            if page.cursor is None or allowance.is_spent:
                return ReplayPlan(
                    would_replay=would_replay,
                    deliveries=deliveries,
                    looked_at=allowance.looked_at,
                    at_least=not is_all,
                )
            after = page.cursor["SK"]

    async def start(
        self, principal: Principal, choice: Choice, request: IdempotentRequest | None
    ) -> Once[ShownReplay]:
        """Events that come from now on are not among those replayed."""

        async def prepare() -> Effect[ShownReplay]:
            source = await self._chosen(principal, choice)
            await self._check_room(choice.source_id)
            now_ms, replay_id = self._clock.now_ms(), self._new_id()
            replay = Replay(
                replay_id=replay_id,
                source_id=choice.source_id,
                user_id=source.source.user_id,
                generation=generation_of(replay_id, now_ms),
                state=ReplayState.RUNNING,
                created_at=now_ms,
                from_ms=choice.span.from_ms,
                to_ms=min(choice.span.to_ms, now_ms),
                status=choice.status,
                connection_id=choice.connection_id,
            )
            return Effect(shown(replay), [store.new_replay(replay)])

        once = await self._idempotency.once(request, SHOWN, prepare)
        assert not isinstance(once, Refused), "a fresh id was taken"
        return once

    async def list(self, principal: Principal, source_id: str, page: PageRequest) -> Page[ShownReplay]:
        """Newest first."""
        await self._finder.source(principal, source_id)
        found = await self._items.query(store.replays_of_source(source_id, page.limit, _position(page)))
        items = await self._items.get_many(EVENTS, [EVENTS.key_of(item) for item in found.items])
        replays = [store.replay_of(item) for item in items if item is not None]
        return Page([shown(each) for each in replays], _cursor(found.items[-1]) if found.cursor else None)

    async def get(self, principal: Principal, replay_id: str) -> ShownReplay:
        return shown(await self._find(principal, replay_id))

    async def cancel(self, principal: Principal, replay_id: str) -> ShownReplay:
        """What was replayed until then stays so."""
        await self._find(principal, replay_id)
        ended = store.replay_ended(replay_id, ReplayState.CANCELLED, self._clock.now_ms())
        await self._items.transact([ended])
        replay = await self._find(principal, replay_id)
        if replay.state is not ReplayState.CANCELLED:
            raise Conflict("replay_ended", f"The replay is {replay.state.value}: nothing is left to cancel.")
        return shown(replay)

    # --- within -------------------------------------------------------------------------------------

    async def _find(self, principal: Principal, replay_id: str) -> Replay:
        is_id = _REPLAY_ID.fullmatch(replay_id) is not None
        item = await self._items.get(EVENTS, store.replay_key(replay_id)) if is_id else None
        if item is None or not principal.sees(str(item["userId"])):
            raise NotFound("replay_not_found", f"There is no replay {replay_id}.")
        return store.replay_of(item)

    async def _chosen(self, principal: Principal, choice: Choice) -> SourceInUse:
        await self._finder.source(principal, choice.source_id)
        source = await self._fresh(choice.source_id)
        if source is None:
            raise source_not_found(choice.source_id)
        if choice.connection_id is not None and source.connection(choice.connection_id) is None:
            raise connection_not_found(choice.connection_id)
        return source

    async def _fresh(self, source_id: str) -> SourceInUse | None:
        """As it is now: who has just changed a connection means it so."""
        self._sources.forget(source_id)
        return await self._sources.find(source_id)

    async def _check_room(self, source_id: str) -> None:
        page = await self._items.query(store.replays_of_source(source_id, 5 * RUNNING_MAX, None))
        items = await self._items.get_many(EVENTS, [EVENTS.key_of(item) for item in page.items])
        running = sum(item is not None and item["state"] == ReplayState.RUNNING.value for item in items)
        if running >= RUNNING_MAX:
            detail = f"{running} replays of this source are running; wait for one to end, or cancel it."
            raise Conflict("too_many_replays", detail)

    def _wanted(self, choice: Choice, generation: str) -> Wanted:
        return Wanted(generation, choice.connection_id, status=choice.status)

    def _new_id(self) -> str:
        return "rpl_" + nanoid(self._random, 16)


def shown(replay: Replay) -> ShownReplay:
    return ShownReplay(
        replay_id=replay.replay_id,
        source_id=replay.source_id,
        user_id=replay.user_id,
        generation=replay.generation,
        state=replay.state,
        from_=moment(replay.from_ms),
        to=moment(replay.to_ms),
        status=replay.status,
        connection_id=replay.connection_id,
        looked_at=replay.looked_at,
        replayed=replay.replayed,
        skipped=replay.skipped,
        deliveries=replay.deliveries,
        created_at=moment(replay.created_at),
        finished_at=None if replay.finished_at is None else moment(replay.finished_at),
        reason=replay.reason,
    )


def _check_time(event: Event, now_ms: int) -> None:
    match not_now(event, now_ms):
        case NotNow.NOT_SENT_YET:
            detail = "The event is on its way for the first time. Replay it when it has been sent."
            raise Conflict("event_not_sent_yet", detail, retry_after_seconds=1)
        case NotNow.EXPIRING:
            raise Conflict("event_expiring", "The event's retention ends in a minute: there is no time left.")


def _nobody(connection_id: str | None) -> NotFound | Conflict:
    if connection_id is not None:
        return connection_not_found(connection_id)
    return Conflict("nothing_to_replay", "The source has no connection whose filters match the event.")


def _position(page: PageRequest) -> tuple[int, str] | None:
    after = page.after(_POSITION)
    if after is None:
        return None
    created_ms, replay_id = int(after["created_ms"]), str(after["replay_id"])
    if _REPLAY_ID.fullmatch(replay_id) is None or not 0 <= created_ms < 10**13:
        raise MalformedRequest(
            "invalid_cursor", "The cursor is not one this list gave out. Start again without a cursor."
        )
    return created_ms, replay_id


def _cursor(item: Item) -> str:
    created_ms, _, replay_id = str(item["GSI1SK"]).partition("#")
    return encode_cursor({"created_ms": int(created_ms), "replay_id": replay_id})
