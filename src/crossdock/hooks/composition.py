"""What the slice offers, wired to one store."""

from __future__ import annotations

from dataclasses import dataclass

from crossdock.delivery.calling import Caller
from crossdock.engines.items.port import Items
from crossdock.engines.notifications import Notifications
from crossdock.hooks.service.accounts import AccountServices, build_accounts
from crossdock.hooks.service.configuration import SourceServices, build_sources
from crossdock.hooks.service.engine import HooksEngine, build_engine
from crossdock.hooks.service.live import LiveFeed
from crossdock.hooks.service.live_streams import LiveStreams
from crossdock.hooks.service.reading import EventServices, build_events
from crossdock.hooks.service.samples import SampleSender
from crossdock.hooks.settings import HooksSettings
from crossdock.http.client import GuardedClient
from crossdock.http.idempotency_items import ItemsIdempotency
from crossdock.kit.backoff import Uniform
from crossdock.kit.clock import Clock
from crossdock.kit.ids import Random
from crossdock.kit.sealing import Sealer


@dataclass(frozen=True, slots=True)
class HooksServices:
    """The slice's use cases, wired to one store."""

    accounts: AccountServices
    sources: SourceServices
    events: EventServices
    engine: HooksEngine
    live: LiveFeed
    streams: LiveStreams
    samples: SampleSender


@dataclass(frozen=True, slots=True)
class Given:
    """What the slice needs of the process that it lives in."""

    items: Items
    idempotency: ItemsIdempotency
    notifications: Notifications
    sealer: Sealer
    client: GuardedClient
    """It allows more connections than there are deliveries at once."""
    public_url: str
    clock: Clock
    random: Random
    uniform: Uniform


def build(given: Given, settings: HooksSettings) -> HooksServices:
    live = LiveFeed(given.notifications, given.clock)
    engine = build_engine(
        given.items,
        sealer=given.sealer,
        settings=settings,
        client=given.client,
        clock=given.clock,
        random=given.random,
        uniform=given.uniform,
        live=live,
    )
    events = build_events(
        given.items,
        given.idempotency,
        sources_in_use=engine.sources,
        marks=engine.marks,
        clock=given.clock,
        random=given.random,
    )
    sources = build_sources(
        given.items,
        given.idempotency,
        sealer=given.sealer,
        client=given.client,
        public_url=given.public_url,
        clock=given.clock,
        random=given.random,
        find_event=events.history.find_sample,
    )
    streams = LiveStreams(given.items, live, sources.sources, given.clock)
    samples = SampleSender(
        sources.connections, engine.sources, Caller(given.client, given.clock), given.clock, given.random
    )
    return HooksServices(_accounts(given, settings), sources, events, engine, live, streams, samples)


def _accounts(given: Given, settings: HooksSettings) -> AccountServices:
    return build_accounts(
        given.items,
        given.idempotency,
        settings,
        sealer=given.sealer,
        client=given.client,
        public_url=given.public_url,
        clock=given.clock,
        random=given.random,
    )
