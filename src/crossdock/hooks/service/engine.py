"""The data path of the slice, wired: from a request at a lane to deliveries that ended.

A lane process accepts and delivers what it holds. The worker delivers what is due to anybody, and looks after
what is parked. Both have a crew with slots of its own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from crossdock.delivery.calling import Caller
from crossdock.delivery.limits import Slots
from crossdock.engines.items.port import Items
from crossdock.hooks.model import Delivery, Event
from crossdock.hooks.service.acceptance import Acceptance
from crossdock.hooks.service.claims import Claims
from crossdock.hooks.service.crew import Crew
from crossdock.hooks.service.deliverer import Deliverer, OnFinished
from crossdock.hooks.service.fan_out import FanOut
from crossdock.hooks.service.finishing import Finisher
from crossdock.hooks.service.health import ConnectionHealth
from crossdock.hooks.service.in_use import SourcesInUse
from crossdock.hooks.service.ordered import OrderedWalks
from crossdock.hooks.service.parking import Parking
from crossdock.hooks.service.parking_marks import ParkingMarks
from crossdock.hooks.service.pulling import Puller
from crossdock.hooks.service.refusals import Refusals
from crossdock.hooks.settings import HooksSettings
from crossdock.http.client import GuardedClient
from crossdock.kit.backoff import Uniform
from crossdock.kit.clock import Clock
from crossdock.kit.ids import Random, drawn_ahead
from crossdock.kit.sealing import Sealer


class Live(Protocol):
    """Is told what happens, as it happens; must not block."""

    def accepted(self, event: Event) -> None: ...

    def moved(self, delivery: Delivery, status_code: int | None) -> None: ...


class Nobody:
    def accepted(self, event: Event) -> None:
        pass

    def moved(self, delivery: Delivery, status_code: int | None) -> None:
        pass


NOBODY = Nobody()


@dataclass(frozen=True, slots=True)
class HooksEngine:
    sources: SourcesInUse
    acceptance: Acceptance
    refusals: Refusals
    crew: Crew
    finisher: Finisher
    claims: Claims
    marks: ParkingMarks
    puller: Puller
    parking: Parking

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """What this process holds is delivered meanwhile, and finished before it ends."""
        async with self.crew.working():
            try:
                yield
            finally:
                await self.parking.stop()


@dataclass(frozen=True, slots=True)
class _Common:
    """What both ways of delivering need."""

    items: Items
    clock: Clock
    slots: Slots[str]
    sources: SourcesInUse
    marks: ParkingMarks
    finisher: Finisher
    claims: Claims
    health: ConnectionHealth
    fan_out: FanOut
    deliverer: Deliverer
    crew: Crew


def build_engine(
    items: Items,
    *,
    sealer: Sealer,
    settings: HooksSettings,
    client: GuardedClient,
    clock: Clock,
    random: Random,
    uniform: Uniform,
    live: Live = NOBODY,
) -> HooksEngine:
    sources = SourcesInUse(items, sealer, settings, clock)
    common = _common(
        items,
        sources,
        at_once=settings.deliveries_at_once,
        client=client,
        clock=clock,
        uniform=uniform,
        on_finished=live.moved,
    )
    acceptance = Acceptance(
        items,
        clock,
        drawn_ahead(random),
        slots=common.slots,
        hand_over=common.crew.deliver,
        fan_out=common.crew.fan_out,
        has_room=common.crew.has_room,
        on_accepted=live.accepted,
    )
    return HooksEngine(
        sources=sources,
        acceptance=acceptance,
        refusals=Refusals(items, clock, random),
        crew=common.crew,
        finisher=common.finisher,
        claims=common.claims,
        marks=common.marks,
        puller=_puller(common),
        parking=_parking(common),
    )


def _common(
    items: Items,
    sources: SourcesInUse,
    *,
    at_once: int,
    client: GuardedClient,
    clock: Clock,
    uniform: Uniform,
    on_finished: OnFinished,
) -> _Common:
    # One connection that hangs never takes more than half.
    slots: Slots[str] = Slots(at_once, max(1, at_once // 2))
    marks, finisher = ParkingMarks(items, clock), Finisher(items, clock)
    health = ConnectionHealth(items, sources, clock, uniform)
    fan_out = FanOut(items, clock, slots, marks)
    deliverer = Deliverer(
        Caller(client, clock),
        finisher=finisher,
        health=health,
        slots=slots,
        clock=clock,
        uniform=uniform,
        on_finished=on_finished,
    )
    return _Common(
        items=items,
        clock=clock,
        slots=slots,
        sources=sources,
        marks=marks,
        finisher=finisher,
        claims=Claims(items, clock),
        health=health,
        fan_out=fan_out,
        deliverer=deliverer,
        crew=Crew(deliverer, fan_out, at_once),
    )


def _puller(common: _Common) -> Puller:
    return Puller(
        common.items,
        sources=common.sources,
        finisher=common.finisher,
        fan_out=common.fan_out,
        claims=common.claims,
        crew=common.crew,
        slots=common.slots,
        marks=common.marks,
        clock=common.clock,
    )


def _parking(common: _Common) -> Parking:
    walks = OrderedWalks(
        common.items,
        sources=common.sources,
        claims=common.claims,
        deliverer=common.deliverer,
        health=common.health,
        slots=common.slots,
        clock=common.clock,
    )
    return Parking(
        common.items,
        sources=common.sources,
        claims=common.claims,
        finisher=common.finisher,
        health=common.health,
        walks=walks,
        crew=common.crew,
        slots=common.slots,
        clock=common.clock,
    )
