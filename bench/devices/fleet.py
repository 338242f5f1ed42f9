"""Devices that exist only here, what they would send, and the same as stored items."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from bench.harness.load import render_request
from bench.harness.servers import Product

DEVICES = 10
BOOT_ID = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
FIRMWARE_VERSION = "1.0.16"
WINDOW_MS = 60_000


@dataclass(frozen=True)
class Fleet:
    """Registered devices, and a key that may speak for all of them."""

    product: Product
    device_key: str
    devices: tuple[str, ...]

    def ingest_request(self, hardware_id: str, readings: list[dict[str, Any]]) -> bytes:
        body = msgspec.json.encode({"hardware_id": hardware_id, "readings": readings})
        headers = {"X-API-Key": self.device_key, "Content-Type": "application/json"}
        return render_request("POST", "/v1/devices/readings", headers, body)

    def query_request(self, path: str, accept: str = "application/json") -> bytes:
        headers = {"Authorization": f"Bearer {self.product.operator_key}", "Accept": accept}
        return render_request("GET", f"/v1/devices/{path}", headers)


async def make_fleet(product: Product) -> Fleet:
    created = await product.call("POST", "/v1/devices/keys", {"description": "bench"})
    key = created["api_key"]
    devices = tuple(f"AA:BB:CC:DD:EE:{number:02X}" for number in range(DEVICES))
    for hardware_id in devices:
        registration = {
            "hardware_id": hardware_id,
            "boot_id": BOOT_ID,
            "firmware_version": FIRMWARE_VERSION,
            "capabilities": {"sensors": ["bme280", "ds18b20", "soil_moisture"], "features": {}},
        }
        await product.call("POST", "/v1/devices/register", registration, key=key)
    return Fleet(product, key, devices)


def readings_of(hardware_id: str, first_ms: int) -> Iterator[dict[str, Any]]:
    """Readings a second apart, each a batch of its own, with the id its firmware would make."""
    for number in itertools.count():
        timestamp_ms = first_ms + number * 1000
        yield {
            "batch_id": f"{hardware_id}_{BOOT_ID}_{timestamp_ms - WINDOW_MS}_{timestamp_ms}",
            "timestamp_ms": timestamp_ms,
            "boot_id": BOOT_ID,
            "firmware_version": FIRMWARE_VERSION,
            "sensors": {
                "bme280_temp_c": 20 + number % 97 / 10,
                "ds18b20_temp_c": 19 + number % 89 / 10,
                "humidity_pct": 40 + number % 201 / 10,
                "pressure_hpa": 1000 + number % 301 / 10,
                "soil_moisture_pct": 55 + number % 151 / 10,
            },
            "sensor_status": {"bme280": "ok", "ds18b20": "ok", "soil_moisture": "ok"},
        }


@dataclass(frozen=True)
class StoredForm:
    """How the product stores a reading and its marker: one of each that it wrote, to make others from."""

    reading: Mapping[str, Any]
    marker: Mapping[str, Any]

    def reading_item(self, hardware_id: str, sent: Mapping[str, Any]) -> dict[str, Any]:
        timestamp_ms = sent["timestamp_ms"]
        kept_seconds = self.reading["expiration_time"] - self.reading["timestamp_ms"] // 1000
        return {
            **self.reading,
            **sent,
            "hardware_id": hardware_id,
            "ts_batch": f"{timestamp_ms:013}#{sent['batch_id']}",
            "expiration_time": timestamp_ms // 1000 + kept_seconds,
        }

    def marker_item(self, hardware_id: str, sent: Mapping[str, Any]) -> dict[str, Any]:
        return {**self.marker, "hardware_id": hardware_id, "batch_id": sent["batch_id"]}
