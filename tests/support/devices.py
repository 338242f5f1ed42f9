"""The devices slice as it is served, in-process, over any items backend; and what devices send."""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.asgi_client import Answer, AsgiClient
from tests.support.clock import ManualClock
from tests.support.items_stores import ItemsStore, dynamodb_store, postgres_store
from tests.support.postgres import TestPostgres

from crossdock import devices
from crossdock.devices.api import router
from crossdock.devices.lane import PATH, readings_lane
from crossdock.devices.openapi import READINGS_PATHS, readings_schemas
from crossdock.engines.items.port import Item, Items, Query, Table
from crossdock.http.asgi import App
from crossdock.http.guards import Authenticator
from crossdock.http.idempotency_items import IDEMPOTENCY, ItemsIdempotency
from crossdock.http.principals import ALL_PERMISSIONS, Principal
from crossdock.kit.sealing import Sealer
from crossdock.web.assembly import build
from crossdock.web.lanes import Lane

OPERATOR_KEY = "dk_operator"
PEPPER = "a pepper of the tests"
TABLES = (*devices.TABLES, IDEMPOTENCY)
INDEX_LAG_SECONDS = 0.5
DAY_MS = 86_400_000

READINGS = "/v1/devices/readings"
REGISTER = "/v1/devices/register"
KEYS = "/v1/devices/keys"
DEVICES = "/v1/devices"

BOOT_ID = "7c9e6679-7425-40de-944b-e07fc1f90ae7"

_numbers = itertools.count(1)


# --- what devices send -----------------------------------------------------------------------------


def new_hardware_id() -> str:
    return "02:00:" + ":".join(f"{byte:02X}" for byte in next(_numbers).to_bytes(4, "big"))


def new_batch_id() -> str:
    return f"batch_{next(_numbers)}"


def reading(timestamp_ms: int, batch_id: str | None = None, **changed: Any) -> dict[str, Any]:
    return {
        "batch_id": new_batch_id() if batch_id is None else batch_id,
        "timestamp_ms": timestamp_ms,
        "boot_id": BOOT_ID,
        "firmware_version": "1.0.16",
        "sensors": {"temp_c": 21.5},
        "sensor_status": {"temp": "ok"},
        **changed,
    }


def registration(hardware_id: str, **changed: Any) -> dict[str, Any]:
    return {
        "hardware_id": hardware_id,
        "boot_id": BOOT_ID,
        "firmware_version": "1.0.16",
        "capabilities": {"sensors": ["bme280"], "features": {"tft_display": True}},
        **changed,
    }


# --- the slice, composed ---------------------------------------------------------------------------


class OperatorOnly:
    """Access is another part of the product: here its one key is known by heart."""

    async def resolve(self, credential: str) -> Principal | None:
        if credential != OPERATOR_KEY:
            return None
        return Principal("operator", "operator", None, ALL_PERMISSIONS)


@dataclass(frozen=True)
class Node:
    """One process of an installation: caches of its own, the store shared."""

    services: devices.DevicesServices
    app: App
    operator: AsgiClient

    async def send(self, raw_key: str | None, hardware_id: str, *readings: object) -> Answer:
        body = {"hardware_id": hardware_id, "readings": list(readings)}
        return await self.operator.with_key(raw_key).post(READINGS, body)


def make_node(items: Items, clock: ManualClock, retention_days: int = 90) -> Node:
    services = devices.build(
        items,
        ItemsIdempotency(items, Sealer(bytes(32)), clock),
        devices.DevicesSettings(retention_days=retention_days),
        pepper=PEPPER,
        clock=clock,
        random=os.urandom,
    )
    authenticator = Authenticator({"dk_": OperatorOnly(), "": services.keys})
    lane = Lane(
        PATH, readings_lane(services.ingestion, authenticator), "devices", READINGS_PATHS, readings_schemas()
    )
    app = build(
        [router(services, authenticator)], [lane], checks={}, slices=["devices"], version="0", clock=clock
    )
    return Node(services, app, AsgiClient(app, OPERATOR_KEY))


@dataclass
class Served:
    """A node with a store of its own, and shorthands for what most tests begin with."""

    items: Items
    clock: ManualClock
    open_items: Callable[[], Awaitable[Items]]
    """Another instance on the same store, with connections of its own."""
    node: Node
    _any_key: list[str] = field(default_factory=list)

    @property
    def operator(self) -> AsgiClient:
        return self.node.operator

    @property
    def now_ms(self) -> int:
        return self.clock.now_ms()

    def another_node(self, items: Items | None = None, retention_days: int = 90) -> Node:
        return make_node(self.items if items is None else items, self.clock, retention_days)

    async def key(self, hardware_id: str | None = None) -> tuple[str, str]:
        """Id and raw key."""
        body = {} if hardware_id is None else {"hardware_id": hardware_id}
        answer = await self.operator.post(KEYS, body)
        assert answer.status == 201, answer
        return answer.json()["key_id"], answer.json()["api_key"]

    async def any_key(self) -> str:
        """A key for every device."""
        if not self._any_key:
            self._any_key.append((await self.key())[1])
        return self._any_key[0]

    async def device(self, **changed: Any) -> str:
        """A new device's hardware id."""
        hardware_id = new_hardware_id()
        assert (await self.register(hardware_id, **changed)).status == 201
        return hardware_id

    async def register(self, hardware_id: str, **changed: Any) -> Answer:
        client = self.operator.with_key(await self.any_key())
        return await client.post(REGISTER, registration(hardware_id, **changed))

    async def send(self, hardware_id: str, *readings: object) -> Answer:
        return await self.node.send(await self.any_key(), hardware_id, *readings)

    async def verdict(self, hardware_id: str, *readings: object) -> dict[str, Any]:
        answer = await self.send(hardware_id, *readings)
        assert answer.status == 200, answer
        verdict: dict[str, Any] = answer.json()
        return verdict

    async def stored(self, table: Table, key: dict[str, str]) -> Item | None:
        return await self.items.get(table, key)

    async def rows(self, hardware_id: str) -> list[Item]:
        """Every stored reading of a device, by time."""
        page = await self.items.query(Query(devices.TABLES[1], hardware_id, limit=10_000))
        assert page.cursor is None
        return page.items


# --- its stores ------------------------------------------------------------------------------------


@asynccontextmanager
async def serving_postgres(server: TestPostgres, lag_seconds: float | None = None) -> AsyncIterator[Served]:
    async with postgres_store(server, TABLES, lag_seconds) as store:
        yield await _served(store)


@asynccontextmanager
async def serving_dynamodb(endpoint: str) -> AsyncIterator[Served]:
    async with dynamodb_store(endpoint, TABLES) as store:
        yield await _served(store)


async def _served(store: ItemsStore) -> Served:
    items = await store.open()
    return Served(items, store.clock, store.open, make_node(items, store.clock))
