"""The data path of the hooks slice in-process, over either store: sources, connections, lanes, workers."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any

from tests.support.asgi_client import Answer, AsgiClient
from tests.support.clock import ManualClock
from tests.support.items_stores import ItemsStore, dynamodb_store, postgres_store
from tests.support.postgres import TestPostgres

from crossdock.engines.items import dynamodb
from crossdock.engines.items.port import Item, Items, Query
from crossdock.hooks.lane import ingest_lane
from crossdock.hooks.model import (
    Attempt,
    Connection,
    Delivery,
    Event,
    EventStatus,
    HeldSecret,
    Plan,
    Source,
    Status,
)
from crossdock.hooks.rules.progress import counts_of, status_of
from crossdock.hooks.service.engine import HooksEngine, build_engine
from crossdock.hooks.settings import HooksSettings
from crossdock.hooks.store import accounts as account_store
from crossdock.hooks.store import connections as connection_store
from crossdock.hooks.store import deliveries as delivery_store
from crossdock.hooks.store import events as event_store
from crossdock.hooks.store import sources as source_store
from crossdock.hooks.store.tables import EVENTS, MAIN, TABLES, connection_key, source_key, user_key
from crossdock.http.client import GuardedClient
from crossdock.http.idempotency_items import IDEMPOTENCY
from crossdock.kit.clock import Clock, rfc3339
from crossdock.kit.egress import EgressPolicy
from crossdock.kit.ids import nanoid
from crossdock.kit.sealing import Sealer
from crossdock.kit.signing import make_secret

INDEX_LAG_SECONDS = 0.5
PUBLIC_URL = "https://hooks.example"
LOOPBACK = (ip_network("127.0.0.0/8"),)


@dataclass
class HooksNode:
    """One process's worth of the slice."""

    engine: HooksEngine
    client: AsgiClient
    http: GuardedClient

    async def work_off(self, *, rounds: int = 50) -> None:
        """Pulls and looks after what is parked until nothing is due now."""
        for _ in range(rounds):
            pulled = await self.engine.puller.pull()
            await self.engine.parking.look()
            await self.settled()
            if not pulled:
                return

    async def settled(self) -> None:
        """What this process holds has ended."""
        await self.engine.crew.idle()


@dataclass
class HooksWorld:
    items: Items
    clock: ManualClock
    open_items: Callable[[], Awaitable[Items]]
    sealer: Sealer
    stack: AsyncExitStack
    settings: HooksSettings = field(default_factory=HooksSettings)
    user_id: str = ""
    secrets: dict[str, str] = field(default_factory=dict)

    async def node(
        self, items: Items | None = None, *, settings: HooksSettings | None = None, clock: Clock | None = None
    ) -> HooksNode:
        http = GuardedClient(EgressPolicy(LOOPBACK), connections_max=1_000)
        self.stack.push_async_callback(http.close)
        used_clock = clock or self.clock
        engine = build_engine(
            items or self.items,
            sealer=self.sealer,
            settings=settings or self.settings,
            client=http,
            clock=used_clock,
            random=os.urandom,
            uniform=lambda: 0.0,
        )
        await self.stack.enter_async_context(engine.working())
        app = ingest_lane(engine, used_clock, PUBLIC_URL, ())
        return HooksNode(engine, AsgiClient(app), http)

    # --- configuration, written straight into the store ---------------------------------------------

    async def user(self, plan: Plan = Plan.FREE) -> str:
        user_id = "usr_" + nanoid(os.urandom, 16)
        new = account_store.NewUser(
            user_id=user_id, email=f"{user_id.lower()}@example.com", name="Ann", plan=plan
        )
        await self.items.transact(account_store.new_user(new, self.clock.now_ms()))
        return user_id

    async def source(self, provider: str = "github", secret: str | None = None, **more: Any) -> Source:
        if not self.user_id:
            self.user_id = await self.user()
        source_id = "src_" + nanoid(os.urandom, 16)
        secrets: tuple[HeldSecret, ...] = ()
        if secret is not None:
            context = source_store.secret_context(source_id)
            secrets = (HeldSecret(self.sealer.seal(secret.encode(), context)),)
        values: dict[str, Any] = {
            "source_id": source_id,
            "user_id": self.user_id,
            "name": "a source",
            "provider": provider,
            "status": Status.ACTIVE,
            "created_at": rfc3339(self.clock.now_ms()),
            "secrets": secrets,
            **more,
        }
        source = Source(**values)
        await self.items.transact([source_store.new_source(source, None)])
        return source

    async def connection(self, source: Source, url: str, **more: Any) -> Connection:
        connection_id = "conn_" + nanoid(os.urandom, 16)
        secret = make_secret(os.urandom)
        self.secrets[connection_id] = secret
        context = connection_store.secret_context(connection_id)
        now = rfc3339(self.clock.now_ms())
        values: dict[str, Any] = {
            "connection_id": connection_id,
            "source_id": source.source_id,
            "user_id": source.user_id,
            "name": "a connection",
            "destination_url": url,
            "status": Status.ACTIVE,
            "created_at": now,
            "updated_at": now,
            "secrets": (HeldSecret(self.sealer.seal(secret.encode(), context)),),
            **more,
        }
        connection = Connection(**values)
        await self.items.transact([connection_store.new_connection(connection)])
        return connection

    async def counted(self) -> None:
        """Tallies are in: at once on PostgreSQL, folded by a role on DynamoDB."""
        if isinstance(self.items, dynamodb.DynamoItems):
            await self.items.fold_tallies()

    # --- what is stored -----------------------------------------------------------------------------

    async def events(self, source: Source) -> list[Event]:
        query = event_store.events_of_source(source.source_id, 0, 9_999_999_999_999, 1_000, None)
        return [event_store.event_of(item) for item in (await self.items.query(query)).items]

    async def event(self, source: Source, event_id: str) -> Event:
        return next(each for each in await self.events(source) if each.event_id == event_id)

    async def _records(self, event_id: str, prefix: str) -> list[Item]:
        return (await self.items.query(event_store.records_of_event(event_id, prefix, 1_000))).items

    async def deliveries(self, event_id: str) -> list[Delivery]:
        return [delivery_store.delivery_of(item) for item in await self._records(event_id, "DLV#")]

    async def attempts(self, event_id: str) -> list[Attempt]:
        return [delivery_store.attempt_of(item) for item in await self._records(event_id, "ATT#")]

    async def attempt_keys(self, event_id: str) -> list[str]:
        return [str(item["SK"]) for item in await self._records(event_id, "ATT#")]

    async def stored_source(self, source: Source) -> Source:
        item = await self.items.get(MAIN, source_key(source.user_id, source.source_id))
        assert item is not None
        return source_store.source_of(item)

    async def stored_connection(self, connection: Connection) -> Connection:
        key = connection_key(connection.source_id, connection.connection_id)
        item = await self.items.get(MAIN, key)
        assert item is not None
        return connection_store.connection_of(item)

    async def usage(self) -> int:
        item = await self.items.get(MAIN, user_key(self.user_id))
        assert item is not None
        return account_store.user_of(item).usage_this_month

    async def check_counts(self, source: Source) -> Counter[str]:
        """Every count agrees with a recount of what is stored. The events by status."""
        await self.counted()
        events = await self.events(source)
        ended: Counter[str] = Counter()
        for event in events:
            deliveries = await self.deliveries(event.event_id)
            if event.status is not EventStatus.RECEIVED:
                counts = counts_of(each.state for each in deliveries)
                assert event.counts == counts, event
                assert event.status is status_of(counts), event
            for each in deliveries:
                ended[f"{each.connection_id} {each.state.value}"] += 1
        assert (await self.stored_source(source)).event_count == len(events)
        return Counter(event.status.value for event in events)

    async def due(self) -> list[Item]:
        """Everything that waits in the index of due work."""
        found: list[Item] = []
        for shard in range(16):
            query = Query(EVENTS, event_store.due_partition(shard), index="GSI2", limit=1_000)
            found += (await self.items.query(query)).items
        return found


async def send(node: HooksNode, source: Source, body: bytes = b'{"n": 1}', **more: Any) -> Answer:
    return await node.client.request("POST", f"/in/{source.source_id}", body=body, **more)


async def accepted(node: HooksNode, source: Source, body: bytes = b'{"n": 1}', **more: Any) -> str:
    answer = await send(node, source, body, **more)
    assert answer.status == 200, answer
    return str(answer.json()["event_id"])


# --- over its stores -------------------------------------------------------------------------------


ALL_TABLES = (*TABLES, IDEMPOTENCY)


@asynccontextmanager
async def hooks_on_postgres(
    server: TestPostgres, lag_seconds: float | None = None
) -> AsyncIterator[HooksWorld]:
    async with postgres_store(server, ALL_TABLES, lag_seconds) as store:
        yield await _world(store)


@asynccontextmanager
async def hooks_on_dynamodb(endpoint: str) -> AsyncIterator[HooksWorld]:
    async with dynamodb_store(endpoint, ALL_TABLES) as store:
        yield await _world(store)


async def _world(store: ItemsStore) -> HooksWorld:
    return HooksWorld(await store.open(), store.clock, store.open, Sealer(bytes(32)), store.stack)
