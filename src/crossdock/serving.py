"""What serves: settings -> engines -> slices -> lanes and roles, and the two kinds of process that do it.

Started by `crossdock up` as `python -m crossdock.serving lane|worker`, under its supervisor.
"""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from crossdock import access
from crossdock.engines.items import postgres
from crossdock.engines.items.port import ItemsEngine
from crossdock.engines.leases import Leases
from crossdock.engines.notifications import Notifications
from crossdock.engines.roles import run_roles
from crossdock.engines.sql.failures import reaching_database
from crossdock.engines.sql.target import Pool, PostgresTarget, open_pool
from crossdock.http.client import GuardedClient
from crossdock.kit import logging
from crossdock.kit.clock import Clock, SystemClock
from crossdock.kit.configuration import load
from crossdock.kit.egress import EgressPolicy
from crossdock.kit.errors import Unavailable
from crossdock.kit.lazy_module import lazy_module
from crossdock.parts import Engines, Product, compose
from crossdock.processes.child import Child, run_child
from crossdock.processes.inheritance import inherit
from crossdock.processes.lane_server import serve_lane
from crossdock.settings import Settings
from crossdock.stores import (
    ITEMS_CONNECTIONS,
    PLATFORM_CONNECTIONS,
    SQL_CONNECTIONS,
    dynamo_client,
    load_secrets,
    pending,
    tables_of,
)
from crossdock.web.health import ReadinessCheck

if TYPE_CHECKING:
    from crossdock.engines.items import dynamodb
else:
    dynamodb = lazy_module("crossdock.engines.items.dynamodb")

OTHER_CALLS_AT_ONCE = 72

# --- engines ---------------------------------------------------------------------------------------


@asynccontextmanager
async def open_engines(
    settings: Settings, target: PostgresTarget, environ: Mapping[str, str]
) -> AsyncIterator[Engines]:
    """On leaving, accepted writes are finished first and connections closed last."""
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        platform_pool = await _pool(stack, target, "platform", PLATFORM_CONNECTIONS)
        access_pool = await _pool(stack, target, access.SCHEMA, SQL_CONNECTIONS)
        checks: dict[str, ReadinessCheck] = {"postgresql": lambda: _check_migrated(platform_pool)}
        items: ItemsEngine
        if settings.items == "dynamodb":
            items = _dynamo_items(settings, environ, clock)
            checks["dynamodb"] = items.check
        else:
            items = await _postgres_items(stack, settings, target, clock)
        stack.push_async_callback(items.close)
        client = GuardedClient(EgressPolicy(settings.egress_allowed), connections_max=calls_at_once(settings))
        stack.push_async_callback(client.close)
        owner = f"{socket.gethostname()}:{os.getpid()}"
        leases = Leases(platform_pool, clock, owner)
        yield Engines(
            clock=clock,
            random=os.urandom,
            items=items,
            access_pool=access_pool,
            platform_pool=platform_pool,
            leases=leases,
            notifications=Notifications(target),
            client=client,
            checks=checks,
        )


async def _pool(stack: AsyncExitStack, target: PostgresTarget, schema: str, size: int) -> Pool:
    pool = await open_pool(target, schema=schema, max_size=size)
    stack.push_async_callback(pool.close)
    return pool


def _dynamo_items(settings: Settings, environ: Mapping[str, str], clock: Clock) -> dynamodb.DynamoItems:
    client, tables = dynamo_client(settings, environ, clock), tables_of(settings)
    return dynamodb.DynamoItems(client, tables, clock, os.urandom, table_prefix=settings.table_prefix)


async def _postgres_items(
    stack: AsyncExitStack, settings: Settings, target: PostgresTarget, clock: Clock
) -> postgres.PostgresItems:
    pool = await open_pool(
        target,
        schema=None,
        max_size=ITEMS_CONNECTIONS,
        settings=postgres.SESSION,
        init=postgres.prepare_connection,
    )
    stack.push_async_callback(pool.close)
    return postgres.PostgresItems(pool, tables_of(settings), clock, table_prefix=settings.table_prefix)


def calls_at_once(settings: Settings) -> int:
    """Connections out of this process: deliveries, and others beside them."""
    return settings.hooks.deliveries_at_once + OTHER_CALLS_AT_ONCE


async def _check_migrated(pool: Pool) -> None:
    with reaching_database():
        async with pool.acquire() as connection:
            left = await pending(connection)
    if left:
        raise Unavailable("migrations_pending", f"Run crossdock migrate; not applied: {', '.join(left)}.")


# --- processes -------------------------------------------------------------------------------------


def spare_the_collector() -> None:
    """What was made at the start stays for good: the garbage collector need not look at it again and again.

    Requests leave few cycles behind, and many short-lived objects: young ones are looked at less often.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


async def run_lane(child: Child, settings: Settings, environ: Mapping[str, str]) -> None:
    async with _opened(settings, environ) as (product, _):
        spare_the_collector()
        stopping = asyncio.create_task(_tell_when_stopping(child, product))
        # Our messages are plain dictionaries; uvicorn spells out the fields of each kind.
        await serve_lane(product.app, child, drain=_drained_on_leaving)  # type: ignore[arg-type]
        stopping.cancel()


async def _tell_when_stopping(child: Child, product: Product) -> None:
    await child.stopping.wait()
    for tell in product.when_stopping:
        tell()


async def run_worker(child: Child, settings: Settings, environ: Mapping[str, str]) -> None:
    async with _opened(settings, environ) as (product, engines):
        child.ready()
        await child.run_until_stopped(run_roles(product.roles, engines.leases))


@asynccontextmanager
async def _opened(settings: Settings, environ: Mapping[str, str]) -> AsyncIterator[tuple[Product, Engines]]:
    if settings.database_url is None:
        raise RuntimeError("the supervisor hands the database's URL to its children")
    async with open_product(settings, PostgresTarget(settings.database_url), environ) as opened:
        yield opened


@asynccontextmanager
async def open_product(
    settings: Settings, target: PostgresTarget, environ: Mapping[str, str]
) -> AsyncIterator[tuple[Product, Engines]]:
    secrets = load_secrets(settings, os.urandom)
    async with open_engines(settings, target, environ) as engines:
        yield compose(settings, secrets, engines), engines


async def _drained_on_leaving() -> None:
    """`open_engines` finishes what was accepted."""


PARTS = {"lane": run_lane, "worker": run_worker}


def main() -> int:
    environ = os.environ
    inheritance = inherit(environ)
    logging.configure(inheritance.name)
    settings = load(Settings, environ)
    part = PARTS[sys.argv[1]]
    return run_child(inheritance, lambda child: part(child, settings, environ))


if __name__ == "__main__":
    sys.exit(main())
