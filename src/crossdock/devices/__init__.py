"""Devices: sensors registered, their batches ingested exactly once, their readings queried by time."""

from __future__ import annotations

from dataclasses import dataclass

from crossdock.devices.service.directory import DeviceDirectory
from crossdock.devices.service.history import History
from crossdock.devices.service.ingestion import Ingestion
from crossdock.devices.service.keys import DeviceKeys, KeyUse
from crossdock.devices.service.registration import Devices
from crossdock.devices.settings import DevicesSettings
from crossdock.devices.store import BATCHES, DEVICES, KEYS, READINGS
from crossdock.engines.items.port import Items
from crossdock.http.idempotency_items import ItemsIdempotency
from crossdock.kit.clock import Clock
from crossdock.kit.ids import Random

TABLES = (DEVICES, READINGS, BATCHES, KEYS)


@dataclass(frozen=True, slots=True)
class DevicesServices:
    """The slice's use cases, wired to one store."""

    devices: Devices
    ingestion: Ingestion
    history: History
    keys: DeviceKeys


def build(
    items: Items,
    idempotency: ItemsIdempotency,
    settings: DevicesSettings,
    *,
    pepper: str,
    clock: Clock,
    random: Random,
) -> DevicesServices:
    directory, key_use = DeviceDirectory(items, clock), KeyUse(clock)
    return DevicesServices(
        devices=Devices(items, clock, random, directory, key_use=key_use, idempotency=idempotency),
        ingestion=Ingestion(items, clock, directory, key_use, settings.retention_seconds),
        history=History(items, directory, clock),
        keys=DeviceKeys(items, clock, random, pepper, idempotency),
    )


__all__ = ["TABLES", "DevicesServices", "DevicesSettings", "build"]
