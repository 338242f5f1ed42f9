"""What serves: settings -> engines -> slices -> lanes and roles, and the two kinds of process that do it.

Started by `crossdock up` as `python -m crossdock.serving lane|worker`, under its supervisor.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from litestar import Router

from crossdock import __version__, access, devices
from crossdock.access import api as access_api
from crossdock.access import work as access_work
from crossdock.devices import api as devices_api
from crossdock.devices import work as devices_work
from crossdock.devices.lane import PATH as READINGS_PATH
from crossdock.devices.lane import readings_lane
from crossdock.devices.openapi import READINGS_PATHS, readings_schemas
from crossdock.engines.items import postgres
from crossdock.engines.items.port import ItemsEngine
from crossdock.engines.leases import Leases
from crossdock.engines.roles import Role, run_roles
from crossdock.engines.sql.failures import reaching_database
from crossdock.engines.sql.target import Pool, PostgresTarget, open_pool
from crossdock.http.asgi import App
from crossdock.http.guards import Authenticator
from crossdock.http.idempotency_items import ItemsIdempotency
from crossdock.http.idempotency_sql import SqlIdempotency
from crossdock.kit import logging
from crossdock.kit.clock import Clock, SystemClock
from crossdock.kit.configuration import load
from crossdock.kit.errors import Unavailable
from crossdock.kit.ids import Random
from crossdock.kit.lazy_module import lazy_module
from crossdock.kit.sealing import Sealer, parse_secret_key
from crossdock.processes.child import Child, run_child
from crossdock.processes.inheritance import inherit
from crossdock.processes.lane_server import serve_lane
from crossdock.settings import Settings
from crossdock.stores import (
    ITEMS_CONNECTIONS,
    PLATFORM_CONNECTIONS,
    SQL_CONNECTIONS,
    Secrets,
    dynamo_client,
    load_secrets,
    pending,
    tables_of,
)
from crossdock.web import assembly
from crossdock.web.health import ReadinessCheck
from crossdock.web.lanes import Lane

if TYPE_CHECKING:
    from crossdock.engines.items import dynamodb
else:
    dynamodb = lazy_module("crossdock.engines.items.dynamodb")

# --- engines ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Engines:
    clock: Clock
    random: Random
    items: ItemsEngine
    access_pool: Pool
    platform_pool: Pool
    leases: Leases
    checks: Mapping[str, ReadinessCheck]
    """For `/readyz`: what has to answer."""


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
        owner = f"{socket.gethostname()}:{os.getpid()}"
        leases = Leases(platform_pool, clock, owner)
        yield Engines(clock, os.urandom, items, access_pool, platform_pool, leases, checks)


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


async def _check_migrated(pool: Pool) -> None:
    with reaching_database():
        async with pool.acquire() as connection:
            left = await pending(connection)
    if left:
        raise Unavailable("migrations_pending", f"Run crossdock migrate; not applied: {', '.join(left)}.")


# --- slices ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """What a slice brings to the server when it is on."""

    handlers: Sequence[Router]
    lanes: Sequence[Lane]
    roles: Sequence[Role]


@dataclass(frozen=True, slots=True)
class Product:
    app: App
    roles: tuple[Role, ...]
    access: access.AccessServices
    devices: devices.DevicesServices


def compose(settings: Settings, secrets: Secrets, engines: Engines) -> Product:
    clock, random = engines.clock, engines.random
    sealer = Sealer(parse_secret_key(secrets.secret_key), random=random)
    sql_idempotency = SqlIdempotency(engines.access_pool, sealer, clock)
    items_idempotency = ItemsIdempotency(engines.items, sealer, clock)
    access_services = access.build(
        engines.access_pool, sql_idempotency, settings.access, clock=clock, random=random
    )
    devices_services = devices.build(
        engines.items,
        items_idempotency,
        settings.devices,
        pepper=secrets.devices_key_pepper,
        clock=clock,
        random=random,
    )
    authenticator = Authenticator(
        {access.KEY_PREFIX: access_services.keys, "": devices_services.keys},
        sessions=access_services.cookies,
        public_url=settings.public_url,
    )
    parts = [
        _platform_part(settings, engines),
        _access_part(settings, access_services, sql_idempotency, authenticator),
    ]
    if "devices" in settings.slices:
        parts.append(_devices_part(devices_services, authenticator))
    app = assembly.build(
        [handler for part in parts for handler in part.handlers],
        [lane for part in parts for lane in part.lanes],
        checks=engines.checks,
        slices=("sync", *settings.slices),
        version=__version__,
        clock=clock,
    )
    roles = tuple(role for part in parts for role in part.roles)
    return Product(app, roles, access_services, devices_services)


def _platform_part(settings: Settings, engines: Engines) -> Part:
    expiry = Role(
        "items.expiry",
        lambda: engines.items.run_expiry(engines.leases),
        leased=settings.items != "dynamodb",  # that one leases shard by shard
    )
    return Part([], [], [expiry])


def _access_part(
    settings: Settings,
    services: access.AccessServices,
    idempotency: SqlIdempotency,
    authenticator: Authenticator,
) -> Part:
    routers = access_api.routers(services.access, services.sessions, authenticator, settings.public_url)
    clean = Role("access.clean", lambda: access_work.clean_hourly(services.sessions, idempotency))
    return Part(routers, [], [clean])


def _devices_part(services: devices.DevicesServices, authenticator: Authenticator) -> Part:
    readings = Lane(
        READINGS_PATH,
        readings_lane(services.ingestion, authenticator),
        "devices",
        READINGS_PATHS,
        readings_schemas(),
    )
    return Part(
        [devices_api.router(services, authenticator)], [readings], devices_work.roles(services.devices)
    )


# --- processes -------------------------------------------------------------------------------------


async def run_lane(child: Child, settings: Settings, environ: Mapping[str, str]) -> None:
    async with _opened(settings, environ) as (product, _):
        # Our messages are plain dictionaries; uvicorn spells out the fields of each kind.
        await serve_lane(product.app, child, drain=_drained_on_leaving)  # type: ignore[arg-type]


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
