"""Events as they are read and replayed: the API beside the data path, over either store."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.asgi_client import Answer, AsgiClient
from tests.support.clock import ManualClock
from tests.support.hooks_engine import (
    HooksNode,
    HooksWorld,
    hooks_on_dynamodb,
    hooks_on_postgres,
)
from tests.support.hooks_sources import OPERATOR_KEY, KeysByHeart, Operator, key_of
from tests.support.postgres import TestPostgres

from crossdock.engines.items.port import Item, Items
from crossdock.hooks.api.reading import routers
from crossdock.hooks.model import Connection, Delivery, DeliveryState, Event, EventStatus, Source
from crossdock.hooks.rules.progress import counts_of, status_of
from crossdock.hooks.rules.searching import SearchBudget
from crossdock.hooks.service.reading import EventServices, build_events
from crossdock.hooks.store import deliveries as delivery_store
from crossdock.hooks.store import events as event_store
from crossdock.hooks.store.tables import EVENTS, TABLES, delivery_key, event_key
from crossdock.http.guards import Authenticator
from crossdock.http.idempotency_items import IDEMPOTENCY, ItemsIdempotency
from crossdock.kit.clock import Clock
from crossdock.kit.ids import nanoid
from crossdock.kit.sealing import Sealer
from crossdock.web.assembly import build

ALL_TABLES = (*TABLES, IDEMPOTENCY)
SEALER = Sealer(bytes(32))
RETENTION_SECONDS = 86_400

EVENTS_PATH = "/v1/hooks/events"
REPLAYS_PATH = "/v1/hooks/replays"


def source_path(source: Source, rest: str) -> str:
    return f"/v1/hooks/sources/{source.source_id}/{rest}"


@dataclass(repr=False)
class Reading:
    """A node's API of events, its data path beside it."""

    world: HooksWorld
    node: HooksNode
    services: EventServices
    operator: AsgiClient
    budget: SearchBudget = field(default_factory=SearchBudget)

    @property
    def items(self) -> Items:
        return self.world.items

    @property
    def clock(self) -> ManualClock:
        return self.world.clock

    @property
    def now_ms(self) -> int:
        return self.clock.now_ms()

    def client(self, user_id: str, permission: str = "write") -> AsgiClient:
        return self.operator.with_key(key_of(user_id, permission))

    @property
    def owner(self) -> AsgiClient:
        """Of the sources that `world.source` made."""
        return self.client(self.world.user_id)

    async def another(
        self, items: Items | None = None, clock: Clock | None = None, budget: SearchBudget | None = None
    ) -> Reading:
        """Another process: caches of its own, the same store."""
        return await open_reading(self.world, items or self.items, clock or self.clock, budget)

    # --- what has come, written straight into the store ---------------------------------------------

    async def event(
        self, source: Source, states: Mapping[str, DeliveryState] | None = None, **more: Any
    ) -> Event:
        """One that was fanned out, with a delivery in each of these states by its connection."""
        [event] = await self.events(source, [more], states)
        return event

    async def events(
        self,
        source: Source,
        fields: Sequence[Mapping[str, Any]],
        states: Mapping[str, DeliveryState] | None = None,
    ) -> list[Event]:
        """As many as there are `fields`, a millisecond apart, the last one just now."""
        states = states or {}
        began_ms = self.now_ms - len(fields) + 1
        events = [
            made_event(source, states, **{"received_at": began_ms + place, **each})
            for place, each in enumerate(fields)
        ]
        records = [
            delivery_store.new_delivery(made_delivery(event, connection_id, state)).item
            for event in events
            for connection_id, state in states.items()
        ]
        await self.items.write_many(EVENTS, [*map(event_item, events), *records])
        return events

    # --- what is stored -----------------------------------------------------------------------------

    async def stored(self, event: Event) -> Event:
        item = await self.items.get(EVENTS, event_key(event.source_id, event.received_at, event.event_id))
        assert item is not None
        return event_store.event_of(item)

    async def delivery(self, event: Event | str, connection: Connection) -> Delivery:
        event_id = event if isinstance(event, str) else event.event_id
        item = await self.items.get(EVENTS, delivery_key(event_id, connection.connection_id))
        assert item is not None
        return delivery_store.delivery_of(item)

    async def recount(self, source: Source) -> list[Event]:
        """Every event's counts and status are what its delivery records say. The events, oldest first."""
        return [await self._recounted(event) for event in reversed(await self.world.events(source))]

    async def _recounted(self, event: Event) -> Event:
        counts = counts_of(each.state for each in await self.world.deliveries(event.event_id))
        now = await self.stored(event)
        if now.version != event.version:
            return await self._recounted(now)  # it moved on while its deliveries were read
        if event.status is EventStatus.RECEIVED:
            assert not counts, event
        else:
            assert (event.counts, event.status) == (counts, status_of(counts)), event
        return event

    async def work(self, replay_id: str) -> None:
        """All of it, in one go."""
        await self.services.work.work_on(replay_id, lambda: True)

    async def replay(self, client: AsgiClient, source: Source, **more: Any) -> dict[str, Any]:
        """A replay of many events that was begun."""
        answer = await client.post(REPLAYS_PATH, bulk(source, **more))
        assert answer.status == 201, answer
        begun: dict[str, Any] = answer.json()
        return begun

    async def progress(self, replay_id: str) -> dict[str, Any]:
        answer = await self.operator.get(f"{REPLAYS_PATH}/{replay_id}")
        assert answer.status == 200, answer
        shown: dict[str, Any] = answer.json()
        return shown


def bulk(source: Source, **more: Any) -> dict[str, Any]:
    return {
        "source_id": source.source_id,
        "from": "2000-01-01T00:00:00Z",
        "to": "2200-01-01T00:00:00Z",
        **more,
    }


def made_event(
    source: Source, states: Mapping[str, DeliveryState] | None = None, *, received_at: int, **more: Any
) -> Event:
    counts = counts_of((states or {}).values())
    values: dict[str, Any] = {
        "event_id": "evt_" + nanoid(os.urandom, 16),
        "source_id": source.source_id,
        "user_id": source.user_id,
        "status": status_of(counts),
        "method": "POST",
        "path": "",
        "query": "",
        "headers": (("content-type", "application/json"),),
        "body": b'{"n":1}',
        "content_type": "application/json",
        "source_ip": "192.0.2.1",
        "verified": True,
        "received_at": received_at,
        "expires_at": received_at // 1000 + RETENTION_SECONDS,
        "processed_at": received_at,
        "counts": counts,
        **more,
    }
    return Event(**values)


def event_item(event: Event) -> Item:
    """As it is stored after its fan-out."""
    return {**event_store.new_event(event, None).item, "deliveryCounts": dict(event.counts)}


def made_delivery(event: Event, connection_id: str, state: DeliveryState) -> Delivery:
    return delivery_store.delivery_to(event, connection_id, state)


def replay_path(event: Event | str) -> str:
    return f"{EVENTS_PATH}/{event if isinstance(event, str) else event.event_id}/replay"


async def replay(
    reading: Reading, event: Event | str, connection: Connection | None = None, **more: Any
) -> Answer:
    body = {} if connection is None else {"connection_id": connection.connection_id}
    return await reading.owner.post(replay_path(event), body, **more)


async def replayed(
    reading: Reading, event: Event | str, connection: Connection | None = None
) -> dict[str, Any]:
    answer = await replay(reading, event, connection)
    assert answer.status == 201, answer
    found: dict[str, Any] = answer.json()
    return found


async def every_page(client: AsgiClient, path: str, **query: object) -> list[Answer]:
    """From the first page to the last."""
    pages: list[Answer] = []
    cursor: str | None = None
    while True:
        given = {**query, **({} if cursor is None else {"cursor": cursor})}
        target = f"{path}?" + "&".join(f"{name}={value}" for name, value in given.items())
        answer = await client.get(target)
        assert answer.status == 200, answer
        pages.append(answer)
        cursor = answer.json()["next_cursor"]
        if cursor is None:
            return pages


def data_of(pages: Sequence[Answer]) -> list[dict[str, Any]]:
    return [each for page in pages for each in page.json()["data"]]


# --- over its stores -------------------------------------------------------------------------------


async def open_reading(
    world: HooksWorld, items: Items, clock: Clock, budget: SearchBudget | None = None
) -> Reading:
    node = await world.node(items, clock=clock)
    services = build_events(
        items,
        ItemsIdempotency(items, SEALER, clock),
        sources_in_use=node.engine.sources,
        marks=node.engine.marks,
        clock=clock,
        random=os.urandom,
        budget=budget,
    )
    authenticator = Authenticator({"dk_": Operator(), "fh_": KeysByHeart()})
    app = build(routers(services, authenticator), [], checks={}, slices=["hooks"], version="0", clock=clock)
    return Reading(world, node, services, AsgiClient(app, OPERATOR_KEY), budget or SearchBudget())


@asynccontextmanager
async def reading_on_postgres(
    server: TestPostgres, lag_seconds: float | None = None
) -> AsyncIterator[Reading]:
    async with hooks_on_postgres(server, lag_seconds) as world:
        yield await open_reading(world, world.items, world.clock)


@asynccontextmanager
async def reading_on_dynamodb(endpoint: str) -> AsyncIterator[Reading]:
    async with hooks_on_dynamodb(endpoint) as world:
        yield await open_reading(world, world.items, world.clock)
