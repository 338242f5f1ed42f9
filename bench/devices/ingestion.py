"""Readings taken in: in requests of 100 beside a bare COPY, one by one beside an empty lane."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from bench.devices.fleet import Fleet, StoredForm, make_fleet, readings_of
from bench.devices.stored import count_readings, database_of, rows_of, stored_form
from bench.harness.bare_copy import Connection, copy_of_table, copy_rows
from bench.harness.load import LoadJob, run_load, write_requests
from bench.harness.options import Options
from bench.harness.rounds import Comparison, Sample, measure_rounds, sample_of
from bench.harness.servers import running_empty_lane, running_product
from crossdock.devices.store import BATCHES, READINGS

DAY_MS = 86_400_000
BULK_READINGS = 100
BULK_CONNECTIONS = 16
SINGLE_CONNECTIONS = 64
# Enough for the measured seconds; whoever is faster stops early, and its rate counts all the same.
READINGS_PER_SECOND_MAX = 30_000
ROWS_PER_SECOND_MAX = 60_000
REQUESTS_PER_SECOND_MAX = 12_000

BULK = "100 readings a request"
SINGLE = "1 reading a request"
COPY = "bare COPY, 10,000 a commit"
COPY_SMALL = "bare COPY, 1,000 a commit"
EMPTY = "empty lane"


class Ingestion:
    """The product and its yardsticks, to be measured. Every reading is new, and rendered beforehand."""

    def __init__(
        self, fleet: Fleet, connection: Connection, form: StoredForm, empty_port: int, options: Options
    ) -> None:
        self._fleet = fleet
        self._connection = connection
        self._form = form
        self._empty_port = empty_port
        self._options = options
        first_ms = time.time_ns() // 1_000_000 - 80 * DAY_MS
        self._sent = {device: readings_of(device, first_ms) for device in fleet.devices}
        self._copied = {device: readings_of(device, first_ms) for device in fleet.devices}

    async def bulk(self, seconds: float) -> Sample:
        count = int(READINGS_PER_SECOND_MAX * seconds) // BULK_READINGS
        return await self._ingest(BULK_READINGS, count, BULK_CONNECTIONS, seconds)

    async def single(self, seconds: float) -> Sample:
        return await self._ingest(1, int(REQUESTS_PER_SECOND_MAX * seconds), SINGLE_CONNECTIONS, seconds)

    async def empty(self, seconds: float) -> Sample:
        """The same single-reading requests to a lane that does nothing with them."""
        file = self._render(1, 1_000)
        job = LoadJob(
            port=self._empty_port,
            requests=str(file),
            connections=SINGLE_CONNECTIONS,
            seconds=seconds,
            repeat=True,
        )
        return sample_of(await run_load(job))

    async def copy(self, seconds: float) -> Sample:
        return await self._copy(10_000, seconds)

    async def copy_small(self, seconds: float) -> Sample:
        """In commits about as large as those that requests share."""
        return await self._copy(1_000, seconds)

    async def _copy(self, rows_per_commit: int, seconds: float) -> Sample:
        per_device = int(ROWS_PER_SECOND_MAX * seconds) // len(self._fleet.devices)
        pairs = [
            pair
            for device, readings in self._copied.items()
            for pair in rows_of(self._form, device, islice(readings, per_device))
        ]
        tables = [
            (BATCHES.name, [pair.marker for pair in pairs]),
            (READINGS.name, [pair.reading for pair in pairs]),
        ]
        await self._connection.execute("CHECKPOINT")
        return await copy_rows(self._connection, tables, seconds=seconds, rows_per_commit=rows_per_commit)

    async def _ingest(self, readings: int, requests: int, connections: int, seconds: float) -> Sample:
        file = self._render(readings, requests)
        await self._connection.execute("CHECKPOINT")
        before = await count_readings(self._connection)
        job = LoadJob(
            port=self._fleet.product.port,
            requests=str(file),
            connections=connections,
            seconds=seconds,
            repeat=False,
        )
        result = await run_load(job)
        committed = await count_readings(self._connection) - before
        if committed != result.completed * readings:
            raise AssertionError(
                f"{result.completed} requests were answered, {committed} readings are stored"
            )
        return sample_of(result, committed)

    def _render(self, readings: int, requests: int) -> Path:
        file = self._options.directory / "readings.requests"
        return write_requests(file, islice(self._requests(readings), requests))

    def _requests(self, readings: int) -> Iterator[bytes]:
        for device in cycle(self._fleet.devices):
            sent: list[dict[str, Any]] = list(islice(self._sent[device], readings))
            yield self._fleet.ingest_request(device, sent)


async def run(options: Options) -> list[Comparison]:
    directory = options.directory / "ingestion"
    async with (
        running_empty_lane(options.directory, workers=options.workers) as empty_port,
        running_product(directory, workers=options.workers, slices=["devices"]) as product,
    ):
        fleet = await make_fleet(product)
        async with database_of(fleet) as connection:
            return await _compare(fleet, connection, empty_port, options)


async def _compare(
    fleet: Fleet, connection: Connection, empty_port: int, options: Options
) -> list[Comparison]:
    form = await stored_form(fleet, connection, time.time_ns() // 1_000_000 - 81 * DAY_MS)
    for table in (BATCHES.name, READINGS.name):
        await copy_of_table(connection, "items", table)
    ingestion = Ingestion(fleet, connection, form, empty_port, options)
    samples = await measure_rounds(
        {
            BULK: ingestion.bulk,
            COPY: ingestion.copy,
            COPY_SMALL: ingestion.copy_small,
            SINGLE: ingestion.single,
            EMPTY: ingestion.empty,
        },
        options,
    )
    return [
        comparison(samples, BULK, COPY, "readings", 0.35),
        comparison(samples, BULK, COPY_SMALL, "readings", None),
        comparison(samples, SINGLE, EMPTY, "requests", 0.25),
    ]


def comparison(
    samples: dict[str, list[Sample]], product: str, yardstick: str, unit: str, bar: float | None
) -> Comparison:
    return Comparison(
        name=f"devices: {product}",
        unit=unit,
        yardstick=yardstick,
        bar=bar,
        product_samples=samples[product],
        yardstick_samples=samples[yardstick],
    )
