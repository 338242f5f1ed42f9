"""How events are read and replayed: this part of the slice's use cases, wired to one store."""

from __future__ import annotations

from dataclasses import dataclass

from crossdock.engines.items.port import Items
from crossdock.hooks.rules.searching import SearchBudget
from crossdock.hooks.service.event_finding import EventFinder
from crossdock.hooks.service.history import History
from crossdock.hooks.service.in_use import SourcesInUse
from crossdock.hooks.service.parking_marks import ParkingMarks
from crossdock.hooks.service.replay_work import ReplayWork
from crossdock.hooks.service.replaying import Replayer
from crossdock.hooks.service.replays import Replays
from crossdock.http.idempotency_items import ItemsIdempotency
from crossdock.kit.clock import Clock
from crossdock.kit.ids import Random


@dataclass(frozen=True, slots=True)
class EventServices:
    """`history.find_sample` is what `service.trials` tries things out on; `work.run(leases)` is a role."""

    history: History
    replays: Replays
    work: ReplayWork


def build_events(
    items: Items,
    idempotency: ItemsIdempotency,
    *,
    sources_in_use: SourcesInUse,
    marks: ParkingMarks,
    clock: Clock,
    random: Random,
    budget: SearchBudget | None = None,
) -> EventServices:
    """`budget`: of a page of a search, and of a replay's plan."""
    finder = EventFinder(items, sources_in_use)
    replayer = Replayer(items, marks, clock)
    replays = Replays(
        items,
        idempotency,
        finder=finder,
        sources=sources_in_use,
        replayer=replayer,
        clock=clock,
        random=random,
        budget=budget,
    )
    work = ReplayWork(items, sources=sources_in_use, replayer=replayer, clock=clock)
    return EventServices(History(items, finder, clock, budget), replays, work)
