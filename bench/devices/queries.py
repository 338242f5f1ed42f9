"""Readings given out: beside an empty lane, and from a million stored readings beside ten thousand."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path

from bench.devices.fleet import Fleet, make_fleet
from bench.devices.stored import database_of, fill, stored_form
from bench.harness.load import LoadJob, run_load, write_requests
from bench.harness.options import Options
from bench.harness.rounds import Comparison, Measure, Sample, measure_rounds, sample_of
from bench.harness.servers import running_empty_lane, running_product

DAY_MS = 86_400_000
CONNECTIONS = 32
RANGE_READINGS = 1_000
PAGE_READINGS = 200
"""The most that a page gives; a range of 1,000 is asked for whole only as an export."""
SMALL_PER_DEVICE = 1_000
LARGE_PER_DEVICE = 100_000

LATEST = "latest reading"
PAGE = f"a page of {PAGE_READINGS} of {RANGE_READINGS:,}"
EXPORT = f"export of {RANGE_READINGS:,}"
EMPTY = "empty lane"
SMALL = "10 thousand stored"
LARGE = "1 million stored"


class Requests:
    """The rendered requests of one product, a file per kind."""

    def __init__(self, fleet: Fleet, first_ms: int, per_device: int, directory: Path) -> None:
        from_ms = first_ms + per_device // 2 // RANGE_READINGS * RANGE_READINGS * 1000
        span = f"readings?from_ms={from_ms}&to_ms={from_ms + (RANGE_READINGS - 1) * 1000}"
        kinds = {
            LATEST: [fleet.query_request(f"{device}/readings/latest") for device in fleet.devices],
            PAGE: [fleet.query_request(f"{device}/{span}&limit={PAGE_READINGS}") for device in fleet.devices],
            EXPORT: [
                fleet.query_request(f"{device}/{span}", "application/x-ndjson") for device in fleet.devices
            ],
        }
        self._port = fleet.product.port
        self.files = {
            kind: write_requests(directory / f"{per_device}-{number}.requests", requests)
            for number, (kind, requests) in enumerate(kinds.items())
        }

    def measure(self, kind: str) -> Measure:
        return load_on(self._port, self.files[kind])


def load_on(port: int, file: Path) -> Measure:
    async def measure(seconds: float) -> Sample:
        job = LoadJob(port=port, requests=str(file), connections=CONNECTIONS, seconds=seconds, repeat=True)
        return sample_of(await run_load(job))

    return measure


@contextlib.asynccontextmanager
async def filled_product(per_device: int, options: Options) -> AsyncIterator[Requests]:
    data_dir = options.directory / f"queries-{per_device}"
    first_ms = time.time_ns() // 1_000_000 - 80 * DAY_MS
    async with running_product(data_dir, workers=options.workers, slices=["devices"]) as product:
        fleet = await make_fleet(product)
        options.say(f"  storing {per_device * len(fleet.devices):,} readings")
        async with database_of(fleet) as connection:
            form = await stored_form(fleet, connection, first_ms - DAY_MS)
            await fill(fleet, connection, form, first_ms, per_device)
        yield Requests(fleet, first_ms, per_device, options.directory)


async def run(options: Options) -> list[Comparison]:
    async with (
        running_empty_lane(options.directory, workers=options.workers) as empty_port,
        filled_product(SMALL_PER_DEVICE, options) as small,
        filled_product(LARGE_PER_DEVICE, options) as large,
    ):
        measures: dict[str, Measure] = {}
        for kind in (LATEST, PAGE, EXPORT):
            measures[f"{kind}, {SMALL}"] = small.measure(kind)
            measures[f"{kind}, {LARGE}"] = large.measure(kind)
        measures[EMPTY] = load_on(empty_port, large.files[LATEST])
        samples = await measure_rounds(measures, options)
    return comparisons(samples)


def comparisons(samples: dict[str, list[Sample]]) -> list[Comparison]:
    beside_empty = [
        Comparison(
            name=f"devices: {kind}, {LARGE}",
            unit="requests",
            yardstick=EMPTY,
            bar=bar,
            product_samples=samples[f"{kind}, {LARGE}"],
            yardstick_samples=samples[EMPTY],
        )
        for kind, bar in ((LATEST, 0.20), (PAGE, 0.05), (EXPORT, None))
    ]
    flat = [
        Comparison(
            name=f"devices: {kind}, flat",
            unit="requests",
            yardstick=SMALL,
            bar=0.80,
            product_samples=samples[f"{kind}, {LARGE}"],
            yardstick_samples=samples[f"{kind}, {SMALL}"],
        )
        for kind in (LATEST, PAGE, EXPORT)
    ]
    return beside_empty + flat
