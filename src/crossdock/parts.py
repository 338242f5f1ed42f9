"""What each slice brings to the server, composed: engines -> services -> lanes, handlers and roles."""

from __future__ import annotations

import asyncio
import random as stdlib_random
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from litestar import Router

from crossdock import __version__, access, devices
from crossdock.access import api as access_api
from crossdock.access import work as access_work
from crossdock.devices import api as devices_api
from crossdock.devices import work as devices_work
from crossdock.devices.lane import PATH as READINGS_PATH
from crossdock.devices.lane import readings_lane
from crossdock.devices.openapi import READINGS_PATHS, readings_schemas
from crossdock.engines.items.port import ItemsEngine
from crossdock.engines.leases import Leases
from crossdock.engines.notifications import Notifications
from crossdock.engines.roles import Role
from crossdock.engines.sql.target import Pool
from crossdock.hooks import api as hooks_api
from crossdock.hooks import composition as hooks
from crossdock.hooks import work as hooks_work
from crossdock.hooks.lane import PREFIX as INGEST_PREFIX
from crossdock.hooks.lane import ingest_lane
from crossdock.hooks.openapi import INGEST_PATHS
from crossdock.http.asgi import App
from crossdock.http.client import GuardedClient
from crossdock.http.guards import Authenticator
from crossdock.http.idempotency_items import ItemsIdempotency
from crossdock.http.idempotency_sql import SqlIdempotency
from crossdock.kit.clock import Clock
from crossdock.kit.ids import Random
from crossdock.kit.sealing import Sealer, parse_secret_key
from crossdock.settings import Settings
from crossdock.stores import Secrets
from crossdock.web import assembly
from crossdock.web.health import ReadinessCheck
from crossdock.web.lanes import Lane


@dataclass(frozen=True, slots=True)
class Engines:
    clock: Clock
    random: Random
    items: ItemsEngine
    access_pool: Pool
    platform_pool: Pool
    leases: Leases
    notifications: Notifications
    client: GuardedClient
    """For calls to addresses that users name."""
    checks: Mapping[str, ReadinessCheck]
    """For `/readyz`: what has to answer."""


Lifespan = Callable[[], AbstractAsyncContextManager[object]]


@dataclass(frozen=True, slots=True)
class Part:
    """What a slice brings to the server when it is on."""

    handlers: Sequence[Router] = ()
    lanes: Sequence[Lane] = ()
    roles: Sequence[Role] = ()
    lifespans: Sequence[Lifespan] = ()
    """Entered by a lane process before its first request, left after its last."""
    when_stopping: Sequence[Callable[[], None]] = ()
    """Ends the answers that would never end by themselves."""


@dataclass(frozen=True, slots=True)
class Product:
    app: App
    roles: tuple[Role, ...]
    when_stopping: tuple[Callable[[], None], ...]
    access: access.AccessServices
    devices: devices.DevicesServices
    hooks: hooks.HooksServices


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
    hooks_services = _hooks(settings, engines, items_idempotency, sealer)
    authenticator = Authenticator(
        {
            access.KEY_PREFIX: access_services.keys,
            "": devices_services.keys,
            **hooks_services.accounts.resolvers,
        },
        sessions=access_services.cookies,
        public_url=settings.public_url,
    )
    parts = [
        _platform_part(settings, engines),
        _access_part(settings, access_services, sql_idempotency, authenticator),
    ]
    if "devices" in settings.slices:
        parts.append(_devices_part(devices_services, authenticator))
    if "hooks" in settings.slices:
        parts.append(_hooks_part(settings, engines, hooks_services, authenticator))
    app = assembly.build(
        [handler for part in parts for handler in part.handlers],
        [lane for part in parts for lane in part.lanes],
        checks=engines.checks,
        slices=("sync", *settings.slices),
        version=__version__,
        clock=clock,
        lifespan=_together([each for part in parts for each in part.lifespans]),
    )
    roles = tuple(role for part in parts for role in part.roles)
    when_stopping = tuple(each for part in parts for each in part.when_stopping)
    return Product(app, roles, when_stopping, access_services, devices_services, hooks_services)


@asynccontextmanager
async def meanwhile(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _together(lifespans: Sequence[Lifespan]) -> Lifespan:
    @asynccontextmanager
    async def live() -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for lifespan in lifespans:
                await stack.enter_async_context(lifespan())
            yield

    return live


def _platform_part(settings: Settings, engines: Engines) -> Part:
    expiry = Role(
        "items.expiry",
        lambda: engines.items.run_expiry(engines.leases),
        leased=settings.items != "dynamodb",  # that one leases shard by shard
    )
    tallies = Role("items.tallies", lambda: engines.items.run_tallies(engines.leases), leased=False)
    notifications = Role("notifications", engines.notifications.run, leased=False)
    return Part(
        roles=[expiry, tallies, notifications], lifespans=[lambda: meanwhile(engines.notifications.run())]
    )


def _access_part(
    settings: Settings,
    services: access.AccessServices,
    idempotency: SqlIdempotency,
    authenticator: Authenticator,
) -> Part:
    routers = access_api.routers(services.access, services.sessions, authenticator, settings.public_url)
    clean = Role("access.clean", lambda: access_work.clean_hourly(services.sessions, idempotency))
    return Part(routers, roles=[clean])


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


def _hooks(
    settings: Settings, engines: Engines, idempotency: ItemsIdempotency, sealer: Sealer
) -> hooks.HooksServices:
    given = hooks.Given(
        items=engines.items,
        idempotency=idempotency,
        notifications=engines.notifications,
        sealer=sealer,
        client=engines.client,
        public_url=settings.reachable_url,
        clock=engines.clock,
        random=engines.random,
        uniform=stdlib_random.random,
    )
    return hooks.build(given, settings.hooks)


def _hooks_part(
    settings: Settings, engines: Engines, services: hooks.HooksServices, authenticator: Authenticator
) -> Part:
    app = ingest_lane(services.engine, engines.clock, settings.reachable_url, settings.trusted_proxies)
    return Part(
        hooks_api.routers(services, authenticator),
        [Lane(INGEST_PREFIX, app, "hooks", INGEST_PATHS)],
        hooks_work.roles(services, engines.leases),
        [services.engine.working, lambda: meanwhile(services.live.run())],
        [services.live.close],
    )
