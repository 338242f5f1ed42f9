"""The part of the hooks slice that configures sources, over a store of one's own, asked in-process.

Keys are known by heart, users are bare records, names resolve as a table says.
"""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult
from tests.support.asgi_client import Answer, AsgiClient
from tests.support.clock import ManualClock
from tests.support.items_stores import dynamodb_store, postgres_store
from tests.support.postgres import TestPostgres

from crossdock.engines.items.port import Item, Items
from crossdock.hooks.api.configuration import routers
from crossdock.hooks.model import HeldSecret
from crossdock.hooks.service.configuration import SourceServices, build_sources
from crossdock.hooks.service.principals import ADMIN, HOOKS_USER, READ, WRITE
from crossdock.hooks.service.trials import Sample
from crossdock.hooks.store import connections as connection_store
from crossdock.hooks.store import sources as source_store
from crossdock.hooks.store.tables import MAIN, TABLES, connection_key, source_key, user_key
from crossdock.http.asgi import App
from crossdock.http.client import GuardedClient
from crossdock.http.guards import Authenticator
from crossdock.http.idempotency_items import IDEMPOTENCY, ItemsIdempotency
from crossdock.http.principals import ALL_PERMISSIONS, Principal
from crossdock.kit.egress import EgressPolicy
from crossdock.kit.sealing import Sealer
from crossdock.web.assembly import build

OPERATOR_KEY = "dk_operator"
PUBLIC_URL = "https://hooks.example.org"
SEALER = Sealer(bytes(range(32)))
INDEX_LAG_SECONDS = 0.5

SOURCES = "/v1/hooks/sources"
CONNECTIONS = "/v1/hooks/connections"

PUBLIC_ADDRESS = "93.184.215.14"
KNOWN_NAMES = {
    "api.example.org": [PUBLIC_ADDRESS],
    "inside.example.org": ["10.1.2.3"],
    "both.example.org": ["10.1.2.3", PUBLIC_ADDRESS],
}
GOOD_URL = "https://api.example.org/hook"

_numbers = itertools.count(1)


def new_user_id() -> str:
    return f"usr_{next(_numbers):016d}"


class KnownNames(AbstractResolver):
    """A name server that knows what it was given."""

    def __init__(self, names: Mapping[str, list[str]]) -> None:
        self._names = names

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        if host not in self._names:
            raise OSError(None, "no such name")
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in self._names[host]
        ]

    async def close(self) -> None:
        pass


class Operator:
    async def resolve(self, credential: str) -> Principal | None:
        if credential != OPERATOR_KEY:
            return None
        return Principal("operator", "operator", None, ALL_PERMISSIONS)


_PERMISSIONS = {
    "none": frozenset[str](),
    "read": frozenset({READ}),
    "write": frozenset({READ, WRITE}),
    "admin": frozenset({READ, WRITE, ADMIN}),
}


def key_of(user_id: str, permission: str = "write") -> str:
    return f"fh_{permission}_{user_id}"


class KeysByHeart:
    """A key says what it may and whose it is."""

    async def resolve(self, credential: str) -> Principal | None:
        _, permission, user_id = credential.split("_", 2)
        return Principal(HOOKS_USER, f"key_of_{user_id}", user_id, _PERMISSIONS[permission])


class Events:
    """Events that came, by whose they are and their id."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, str], Sample] = {}

    async def find(self, principal: Principal, event_id: str) -> Sample | None:
        for (user_id, known_id), sample in self.known.items():
            if known_id == event_id and principal.sees(user_id):
                return sample
        return None


@dataclass
class Served:
    items: Items
    clock: ManualClock
    services: SourceServices
    events: Events
    operator: AsgiClient
    app: App
    _users: list[str] = field(default_factory=list)

    @property
    def now_ms(self) -> int:
        return self.clock.now_ms()

    def client(self, user_id: str, permission: str = "write") -> AsgiClient:
        return self.operator.with_key(key_of(user_id, permission))

    async def user(self) -> str:
        """A new user's id."""
        user_id = new_user_id()
        await self.items.put(MAIN, {**user_key(user_id), "userId": user_id})
        return user_id

    async def user_and_client(self) -> tuple[str, AsgiClient]:
        user_id = await self.user()
        return user_id, self.client(user_id)

    async def source(self, client: AsgiClient, **fields: Any) -> dict[str, Any]:
        answer = await client.post(SOURCES, {"name": "Stripe Prod", "provider": "stripe", **fields})
        return shown(answer, 201)

    async def connection(self, client: AsgiClient, source_id: str, **fields: Any) -> dict[str, Any]:
        body = {"name": "billing", "destination_url": GOOD_URL, **fields}
        return shown(await client.post(f"{SOURCES}/{source_id}/connections", body), 201)

    async def any_source(self) -> tuple[AsgiClient, str]:
        """A new user's client and its source's id."""
        _, client = await self.user_and_client()
        return client, (await self.source(client))["source_id"]

    async def any_connection(self, **fields: Any) -> tuple[AsgiClient, str, str]:
        """A new user's client, its source's id, its connection's id."""
        client, source_id = await self.any_source()
        connection = await self.connection(client, source_id, **fields)
        return client, source_id, connection["connection_id"]

    async def source_item(self, user_id: str, source_id: str) -> Item:
        item = await self.items.get(MAIN, source_key(user_id, source_id))
        assert item is not None
        return item

    async def connection_item(self, source_id: str, connection_id: str) -> Item:
        item = await self.items.get(MAIN, connection_key(source_id, connection_id))
        assert item is not None
        return item

    async def source_secrets(self, user_id: str, source_id: str) -> list[tuple[str, int | None]]:
        """Unsealed, newest first, each with until when it is good."""
        source = source_store.source_of(await self.source_item(user_id, source_id))
        return _unsealed(source.secrets, source_store.secret_context(source_id))

    async def connection_secrets(self, source_id: str, connection_id: str) -> list[tuple[str, int | None]]:
        item = await self.connection_item(source_id, connection_id)
        secrets = connection_store.connection_of(item).secrets
        return _unsealed(secrets, connection_store.secret_context(connection_id))


def _unsealed(secrets: tuple[HeldSecret, ...], context: str) -> list[tuple[str, int | None]]:
    return [(SEALER.unseal(held.sealed, context).decode(), held.valid_until_ms) for held in secrets]


def shown(answer: Answer, status: int = 200) -> dict[str, Any]:
    assert answer.status == status, answer
    body: dict[str, Any] = answer.json()
    return body


# --- over a store ----------------------------------------------------------------------------------


def make_served(items: Items, clock: ManualClock, client: GuardedClient) -> Served:
    events = Events()
    services = build_sources(
        items,
        ItemsIdempotency(items, SEALER, clock),
        sealer=SEALER,
        client=client,
        public_url=PUBLIC_URL,
        clock=clock,
        random=os.urandom,
        find_event=events.find,
    )
    authenticator = Authenticator({"dk_": Operator(), "fh_": KeysByHeart()})
    app = build(routers(services, authenticator), [], checks={}, slices=["hooks"], version="0", clock=clock)
    return Served(items, clock, services, events, AsgiClient(app, OPERATOR_KEY), app)


ALL_TABLES = (*TABLES, IDEMPOTENCY)


@asynccontextmanager
async def serving_postgres(server: TestPostgres, lag_seconds: float | None = None) -> AsyncIterator[Served]:
    async with postgres_store(server, ALL_TABLES, lag_seconds) as store:
        yield make_served(await store.open(), store.clock, await _opened_client(store.stack))


@asynccontextmanager
async def serving_dynamodb(endpoint: str) -> AsyncIterator[Served]:
    async with dynamodb_store(endpoint, ALL_TABLES) as store:
        yield make_served(await store.open(), store.clock, await _opened_client(store.stack))


async def _opened_client(opened: AsyncExitStack) -> GuardedClient:
    client = GuardedClient(EgressPolicy(), resolver=KnownNames(KNOWN_NAMES))
    opened.push_async_callback(client.close)
    return client
