"""The management API of access as it is served, over a real PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from tests.support.asgi_client import AsgiClient
from tests.support.clock import ManualClock
from tests.support.postgres import TestPostgres

from crossdock import access
from crossdock.access.api import routers
from crossdock.engines.sql.migrations import migrate
from crossdock.engines.sql.target import Pool, PostgresTarget, open_pool
from crossdock.http import idempotency_sql
from crossdock.http.guards import Authenticator
from crossdock.http.idempotency_sql import SqlIdempotency
from crossdock.kit.sealing import Sealer
from crossdock.web.assembly import build

OPERATOR_KEY = "dk_operator0000000000000000000000000000000000000"


@dataclass
class Node:
    """One process of an installation: caches of its own, the database shared."""

    service: access.AccessService
    sessions: access.SessionService
    idempotency: SqlIdempotency
    client: AsgiClient
    """Asks with the operator's key."""


@dataclass
class Served:
    node: Node
    pool: Pool
    clock: ManualClock

    @property
    def client(self) -> AsgiClient:
        return self.node.client

    def another_node(self, public_url: str | None = None) -> Node:
        return make_node(self.pool, self.clock, public_url)

    async def workspace(self, name: str = "acme") -> str:
        answer = await self.client.post("/v1/sync/workspaces", {"name": name})
        return str(answer.json()["id"])

    async def key(self, workspace_id: str | None = None, label: str = "ci") -> tuple[str, str]:
        """Id and raw key."""
        answer = await self.client.post("/v1/sync/keys", {"label": label, "workspace_id": workspace_id})
        return answer.json()["id"], answer.json()["key"]

    async def tenant(self) -> tuple[str, AsgiClient]:
        """A workspace, and a client with a key of it."""
        workspace_id = await self.workspace()
        _, raw = await self.key(workspace_id)
        return workspace_id, self.client.with_key(raw)


def make_node(pool: Pool, clock: ManualClock, public_url: str | None = None) -> Node:
    idempotency = SqlIdempotency(pool, Sealer(bytes(32)), clock)
    keys, logins = access.KeyResolver(pool, clock), access.SessionResolver(pool, clock)
    service = access.AccessService(
        pool, idempotency, keys=keys, sessions=logins, clock=clock, random=os.urandom
    )
    sessions = access.SessionService(
        pool,
        idempotency,
        keys=keys,
        sessions=logins,
        settings=access.AccessSettings(),
        clock=clock,
        random=os.urandom,
    )
    authenticator = Authenticator({access.KEY_PREFIX: keys}, logins, public_url)
    app = build(
        routers(service, sessions, authenticator, public_url),
        [],
        checks={},
        slices=["sync"],
        version="0",
        clock=clock,
    )
    return Node(service, sessions, idempotency, AsgiClient(app, OPERATOR_KEY))


@asynccontextmanager
async def serving(target: PostgresTarget) -> AsyncIterator[Served]:
    pool = await open_pool(target, schema=access.SCHEMA, min_size=1, max_size=8)
    async with pool.acquire() as connection:
        await migrate(connection, [idempotency_sql.MIGRATIONS, access.MIGRATIONS])
    clock = ManualClock()
    node = make_node(pool, clock)
    await node.service.ensure_operator_key(OPERATOR_KEY)
    yield Served(node, pool, clock)
    await pool.close()


@pytest.fixture
async def served(database: PostgresTarget) -> AsyncIterator[Served]:
    async with serving(database) as found:
        yield found


@pytest.fixture(scope="module")
async def shared(postgres: TestPostgres) -> AsyncIterator[Served]:
    """One for a whole module: for tests that don't care what others left in it."""
    target = await postgres.create_database()
    async with serving(target) as found:
        yield found
    await postgres.drop_database(target)
