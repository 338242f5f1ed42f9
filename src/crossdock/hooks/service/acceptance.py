"""A verified webhook is kept, durably, before anybody is told so.

One transaction has the event, due in the index of work, and the marker of its delivery id; its counts ride on
it. So an accepted event can be neither forgotten nor counted twice, whenever we are killed. Where there is a
slot to deliver it from here and now, the event is written under a lease of this process; else it is work that
any node may take at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from crossdock.delivery.limits import Slots
from crossdock.engines.items.port import Items, Put, Refused, Tally, Write
from crossdock.hooks.model import DeliveryState, Event, EventStatus
from crossdock.hooks.rules.outbound import redacted
from crossdock.hooks.rules.outcomes import lease_end_ms
from crossdock.hooks.rules.placement import Placement, placement
from crossdock.hooks.rules.providers.dedup import WINDOW_SECONDS_DEFAULT
from crossdock.hooks.rules.providers.model import Arrival
from crossdock.hooks.rules.providers.recipe import ALWAYS_CREDENTIALS
from crossdock.hooks.service.fan_out import Job, subject_of
from crossdock.hooks.service.finishing import OpenEvent
from crossdock.hooks.service.in_use import ConnectionInUse, SourceInUse
from crossdock.hooks.store import deliveries as delivery_store
from crossdock.hooks.store import duplicates as duplicate_store
from crossdock.hooks.store import events as store
from crossdock.hooks.store.tables import MAIN, source_key, user_key
from crossdock.kit.clock import Clock, rfc3339
from crossdock.kit.errors import Unavailable
from crossdock.kit.ids import Random, nanoid
from crossdock.kit.metrics import counter

EVENTS_TOTAL = counter("hooks_events_total", "Requests of providers, by what became of them.", ("outcome",))

FAN_OUT_LEASE_MS = 30_000
TRIES = 3
TALLIES_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Accepted:
    event_id: str
    is_duplicate: bool = False


@dataclass(frozen=True, slots=True)
class _Tallies:
    second: int
    period_start: str
    tallies: list[Tally]


def _tallies_of(event: Event, period_start: str) -> list[Tally]:
    return [
        Tally(
            MAIN,
            source_key(event.user_id, event.source_id),
            add={"eventCount": 1},
            latest={"lastEventAt": rfc3339(event.received_at)},
        ),
        Tally(
            MAIN,
            user_key(event.user_id),
            add={"usageThisMonth": 1},
            when={"usagePeriodStart": period_start},
        ),
    ]


class Acceptance:
    """`hand_over` gets what is leased to this process: a job to deliver, or an event to fan out."""

    def __init__(
        self,
        items: Items,
        clock: Clock,
        random: Random,
        *,
        slots: Slots[str],
        hand_over: Callable[[Job], None],
        fan_out: Callable[[Event, SourceInUse], None],
        has_room: Callable[[], bool],
        on_accepted: Callable[[Event], None],
    ) -> None:
        self._items = items
        self._clock = clock
        self._random = random
        self._slots = slots
        self._hand_over = hand_over
        self._fan_out = fan_out
        self._has_room = has_room
        self._on_accepted = on_accepted
        self._tallies: dict[str, _Tallies] = {}

    async def accept(
        self, used: SourceInUse, arrival: Arrival, headers: Sequence[tuple[str, str]], source_ip: str
    ) -> Accepted:
        event = self._event_of(used, arrival, headers, source_ip)
        direct = self._direct_connection(used, event.received_at)
        to_fan_out = direct is None and len(used.connections) > 0 and self._has_room()
        due_ms: int | None = event.received_at
        if direct is not None:
            due_ms = lease_end_ms(event.received_at, direct.connection.timeout_seconds)
            event = replace(event, direct_to=direct.connection_id)
        elif to_fan_out:
            due_ms = event.received_at + FAN_OUT_LEASE_MS
        elif not used.connections:
            due_ms, event = None, replace(event, status=EventStatus.FILTERED)
        try:
            earlier = await self._write(used, event, due_ms, used.recipe.delivery_id(arrival, used.dedup))
        except BaseException:
            self._let_go(direct)
            raise
        if earlier is not None:
            self._let_go(direct)
            EVENTS_TOTAL.inc("duplicate")
            return Accepted(earlier, is_duplicate=True)
        EVENTS_TOTAL.inc("accepted")
        self._on_accepted(event)
        if direct is not None:
            self._deliver_directly(used, direct, event)
        elif to_fan_out:
            self._fan_out(event, used)
        return Accepted(event.event_id)

    def _event_of(
        self, used: SourceInUse, arrival: Arrival, headers: Sequence[tuple[str, str]], source_ip: str
    ) -> Event:
        credentials = ALWAYS_CREDENTIALS | used.recipe.credential_headers
        return Event(
            event_id="evt_" + nanoid(self._random, 16),
            source_id=used.source.source_id,
            user_id=used.source.user_id,
            status=EventStatus.RECEIVED,
            method=arrival.method,
            path=arrival.path,
            query=arrival.query,
            headers=redacted(tuple(headers), credentials),
            body=arrival.body,
            content_type=arrival.header("content-type") or "",
            source_ip=source_ip,
            verified=bool(used.secrets),
            received_at=arrival.received_at_ms,
            expires_at=arrival.received_at_ms // 1000 + used.retention_seconds,
        )

    def _direct_connection(self, used: SourceInUse, now_ms: int) -> ConnectionInUse | None:
        """The only connection, if it may be called from here now: then its slot is taken."""
        if len(used.connections) != 1:
            return None
        only = used.connections[0]
        if placement(only.connection, only.breaker, now_ms) is not Placement.SEND:
            return None
        return only if self._slots.try_acquire(only.connection_id) else None

    def _let_go(self, direct: ConnectionInUse | None) -> None:
        if direct is not None:
            self._slots.release(direct.connection_id)

    async def _write(
        self, used: SourceInUse, event: Event, due_ms: int | None, delivery_id: str | None
    ) -> str | None:
        """None: it is kept. Else the id of the event that it is a duplicate of."""
        put = store.new_event(event, due_ms)
        writes: list[Write | Tally] = [put]
        if delivery_id is not None:
            writes.append(self._marker(used, event, delivery_id))
        writes += self._counts(used, event)
        for _ in range(TRIES):
            outcome = await self._items.transact(writes)
            if not isinstance(outcome, Refused):
                return None
            taken = next((each for each in outcome.failures if each.position == 1), None)
            if taken is not None and taken.current is not None:
                return str(taken.current["eventId"])
        raise Unavailable("contended", "Too many writes of the same delivery at once.")

    def _marker(self, used: SourceInUse, event: Event, delivery_id: str) -> Put:
        window_seconds = WINDOW_SECONDS_DEFAULT if used.dedup is None else used.dedup.window_seconds
        return duplicate_store.marker(event, delivery_id, window_seconds)

    def _counts(self, used: SourceInUse, event: Event) -> list[Tally]:
        """The same objects for all events of a source in a second: they are checked once."""
        second = event.received_at // 1000
        known = self._tallies.get(event.source_id)
        if known is None or known.second != second or known.period_start != used.period.start:
            if len(self._tallies) >= TALLIES_MAX:
                self._tallies.clear()
            known = self._tallies[event.source_id] = _Tallies(
                second, used.period.start, _tallies_of(event, used.period.start)
            )
        return known.tallies

    def _deliver_directly(self, used: SourceInUse, direct: ConnectionInUse, event: Event) -> None:
        delivery = delivery_store.delivery_to(event, direct.connection_id, DeliveryState.PENDING)
        if direct.filters is not None and not direct.filters.matches(subject_of(event)):
            self._slots.release(direct.connection_id)
            self._fan_out(event, used)
            return
        self._hand_over(Job(OpenEvent(event), used, direct, delivery, direct=True))
