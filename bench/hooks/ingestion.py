"""Webhooks taken in: verified, checked for repeats, durable before the answer; beside an empty lane."""

from __future__ import annotations

from itertools import islice

from bench.harness.load import LoadJob, run_load, write_requests
from bench.harness.options import Options
from bench.harness.rounds import Comparison, Sample, measure_rounds, sample_of
from bench.harness.servers import running_empty_lane
from bench.hooks.sources import Source, make_source, make_user, running_hooks

CONNECTIONS = 128
REQUESTS_PER_SECOND_MAX = 16_000
INGEST = "ingest of 1 KB, signed"
EMPTY = "empty lane"


class Ingestion:
    def __init__(self, source: Source, empty_port: int, options: Options) -> None:
        self._source = source
        self._requests = source.requests()
        self._empty_port = empty_port
        self._options = options

    async def ingest(self, seconds: float) -> Sample:
        count = int(REQUESTS_PER_SECOND_MAX * seconds)
        file = write_requests(self._options.directory / "hooks.requests", islice(self._requests, count))
        before = await self._source.event_count()
        result = await run_load(
            LoadJob(
                port=self._source.product.port,
                requests=str(file),
                connections=CONNECTIONS,
                seconds=seconds,
                repeat=False,
            )
        )
        kept = await self._source.event_count() - before
        if kept != result.completed:
            raise AssertionError(f"{result.completed} webhooks were answered, {kept} are counted")
        return sample_of(result)

    async def empty(self, seconds: float) -> Sample:
        file = write_requests(self._options.directory / "empty.requests", islice(self._requests, 1_000))
        job = LoadJob(
            port=self._empty_port, requests=str(file), connections=CONNECTIONS, seconds=seconds, repeat=True
        )
        return sample_of(await run_load(job))


async def run(options: Options) -> list[Comparison]:
    async with (
        running_empty_lane(options.directory, workers=options.workers) as empty_port,
        running_hooks(options, "hooks-ingestion") as product,
    ):
        source = await make_source(product, await make_user(product))
        ingestion = Ingestion(source, empty_port, options)
        samples = await measure_rounds({INGEST: ingestion.ingest, EMPTY: ingestion.empty}, options)
    return [
        Comparison(
            name=f"hooks: {INGEST}",
            unit="requests",
            yardstick=EMPTY,
            bar=0.35,
            product_samples=samples[INGEST],
            yardstick_samples=samples[EMPTY],
        )
    ]
