"""The accounts part of the hooks slice as it is served, in-process, over any items backend."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any

from tests.support.asgi_client import AsgiClient
from tests.support.clock import ManualClock
from tests.support.devices import OPERATOR_KEY, OperatorOnly
from tests.support.items_stores import dynamodb_store, postgres_store
from tests.support.passing_on import PassingOn
from tests.support.postgres import TestPostgres

from crossdock.engines.items.port import Item, Items, Key, Table
from crossdock.hooks.api.accounts import routers
from crossdock.hooks.service.accounts import AccountServices, build_accounts
from crossdock.hooks.settings import HooksSettings
from crossdock.hooks.store.tables import MAIN, api_key_key, user_key
from crossdock.http.asgi import App
from crossdock.http.client import GuardedClient
from crossdock.http.guards import Authenticator
from crossdock.http.idempotency_items import IDEMPOTENCY, ItemsIdempotency
from crossdock.kit.egress import EgressPolicy
from crossdock.kit.sealing import Sealer
from crossdock.web.assembly import build

TABLES = (MAIN, IDEMPOTENCY)
INDEX_LAG_SECONDS = 0.5
REGION = "us-east-1"
PUBLIC_URL = "https://hooks.example.com"
QUICK = 4
"""bcrypt's lowest cost: these tests are not about how long it takes."""

USERS, ME, KEYS, USAGE = "/v1/hooks/users", "/v1/hooks/me", "/v1/hooks/keys", "/v1/hooks/usage"
LOGIN, LOGOUT, STRIPE = "/v1/hooks/login", "/v1/hooks/logout", "/v1/hooks/billing/stripe"

PASSWORD = "correct horse battery"
CLOSED = HooksSettings()
OPEN = HooksSettings(signup="open")

_numbers = itertools.count(1)


def new_email() -> str:
    return f"ann{next(_numbers)}@example.com"


def new_user(**changed: Any) -> dict[str, Any]:
    return {"email": new_email(), "name": "Ann", "password": PASSWORD, **changed}


@dataclass(frozen=True)
class Node:
    """One process of an installation: caches of its own, the store shared."""

    services: AccountServices
    app: App
    operator: AsgiClient

    @property
    def nobody(self) -> AsgiClient:
        return self.operator.with_key(None)


def make_node(
    items: Items,
    clock: ManualClock,
    client: GuardedClient,
    settings: HooksSettings = CLOSED,
    *,
    public_url: str = PUBLIC_URL,
    password_cost: int = QUICK,
) -> Node:
    sealer = Sealer(bytes(32))
    services = build_accounts(
        items,
        ItemsIdempotency(items, sealer, clock),
        settings,
        sealer=sealer,
        client=client,
        public_url=public_url,
        clock=clock,
        random=os.urandom,
        password_cost=password_cost,
    )
    authenticator = Authenticator({"dk_": OperatorOnly(), **services.resolvers})
    handlers = routers(services, authenticator)
    app = build(handlers, [], checks={}, slices=["hooks"], version="0", clock=clock)
    return Node(services, app, AsgiClient(app, OPERATOR_KEY))


@dataclass
class Served:
    """A node with a store of its own, and shorthands for what most tests begin with."""

    items: Items
    clock: ManualClock
    open_items: Callable[[], Awaitable[Items]]
    """Another instance on the same store, with connections of its own."""
    client: GuardedClient
    node: Node

    @property
    def operator(self) -> AsgiClient:
        return self.node.operator

    @property
    def nobody(self) -> AsgiClient:
        return self.node.nobody

    @property
    def now_ms(self) -> int:
        return self.clock.now_ms()

    def another_node(self, settings: HooksSettings = CLOSED, items: Items | None = None, **more: Any) -> Node:
        return make_node(self.items if items is None else items, self.clock, self.client, settings, **more)

    async def user(self, **changed: Any) -> dict[str, Any]:
        """A new user, as the operator is answered."""
        answer = await self.operator.post(USERS, new_user(**changed))
        assert answer.status == 201, answer
        user: dict[str, Any] = answer.json()
        return user

    async def key(self, user_id: str, permissions: str = "admin") -> dict[str, Any]:
        body = {"name": "key", "permissions": permissions, "user_id": user_id}
        answer = await self.operator.post(KEYS, body)
        assert answer.status == 201, answer
        key: dict[str, Any] = answer.json()
        return key

    async def client_of(self, user_id: str, permissions: str = "admin") -> AsgiClient:
        """Who calls with a key of the user's."""
        return self.operator.with_key((await self.key(user_id, permissions))["api_key"])

    async def token(self, email: str, password: str = PASSWORD, node: Node | None = None) -> str:
        client = (self.node if node is None else node).nobody
        answer = await client.post(LOGIN, {"email": email, "password": password})
        assert answer.status == 200, answer
        return str(answer.json()["token"])

    async def stored_user(self, user_id: str) -> Item:
        item = await self.items.get(MAIN, user_key(user_id))
        assert item is not None
        return item

    async def stored_key(self, user_id: str, key_id: str) -> Item | None:
        return await self.items.get(MAIN, api_key_key(user_id, key_id))


class HoldingFirst(PassingOn):
    """The first read of a key like that was answered by the store, and its answer is long under way."""

    def __init__(self, items: Items, is_meant: Callable[[Key], bool]) -> None:
        super().__init__(items)
        self._is_meant = is_meant
        self.is_held = asyncio.Event()
        self.may_go = asyncio.Event()

    async def get(self, table: Table, key: Key) -> Item | None:
        item = await super().get(table, key)
        if self._is_meant(key) and not self.is_held.is_set():
            self.is_held.set()
            await self.may_go.wait()
        return item


# --- its stores ------------------------------------------------------------------------------------

LOOPBACK = (ip_network("127.0.0.0/8"),)


@asynccontextmanager
async def _served(clock: ManualClock, open_items: Callable[[], Awaitable[Items]]) -> AsyncIterator[Served]:
    client = GuardedClient(EgressPolicy(allow=LOOPBACK))
    try:
        items = await open_items()
        yield Served(items, clock, open_items, client, make_node(items, clock, client))
    finally:
        await client.close()


@asynccontextmanager
async def serving_postgres(server: TestPostgres, lag_seconds: float | None = None) -> AsyncIterator[Served]:
    async with (
        postgres_store(server, TABLES, lag_seconds) as store,
        _served(store.clock, store.open) as served,
    ):
        yield served


@asynccontextmanager
async def serving_dynamodb(endpoint: str, access_key: str | None = None) -> AsyncIterator[Served]:
    async with (
        dynamodb_store(endpoint, TABLES, access_key) as store,
        _served(store.clock, store.open) as served,
    ):
        yield served
