"""Webhooks from ingest to recorded delivery, beside a bare client posting to the same receiver."""

from __future__ import annotations

import asyncio
import time
from itertools import islice

from bench.harness.bare_posts import PostJob, bare_posts
from bench.harness.load import LoadJob, run_load, write_requests
from bench.harness.load_process import percentile
from bench.harness.options import Options
from bench.harness.receiver import RunningReceiver, running_receiver
from bench.harness.rounds import Comparison, Sample, measure_rounds
from bench.hooks.sources import BODY_BYTES, Source, make_source, make_user, running_hooks

CONNECTIONS = 32
AT_ONCE = 64
EVENTS_PER_SECOND_MAX = 4_000
END_TO_END = "ingest to delivered"
BARE = "bare aiohttp POSTs"
LATENCY = "accepted to delivered at 200/s, 1 / p95"
BARE_LATENCY = "bare POSTs at 200/s, 1 / p95"
PACE = 200.0
PATIENCE_SECONDS = 120


class Delivery:
    def __init__(
        self,
        source: Source,
        plain: Source,
        connection_id: str,
        receiver: RunningReceiver,
        options: Options,
    ) -> None:
        self._source = source
        self._plain = plain
        self._connection_id = connection_id
        self._receiver = receiver
        self._requests = source.requests()
        self._options = options

    async def end_to_end(self, seconds: float) -> Sample:
        """Until the last delivery is counted, with its attempt."""
        count = int(EVENTS_PER_SECOND_MAX * seconds)
        file = write_requests(self._options.directory / "delivery.requests", islice(self._requests, count))
        before = await self._source.delivered(self._connection_id)
        began_at = time.perf_counter()
        result = await run_load(
            LoadJob(
                port=self._source.product.port,
                requests=str(file),
                connections=CONNECTIONS,
                seconds=seconds,
                repeat=False,
            )
        )
        while await self._source.delivered(self._connection_id) - before < result.completed:
            if time.perf_counter() - began_at > seconds + PATIENCE_SECONDS:
                raise AssertionError("not everything was delivered")
            await asyncio.sleep(0.05)
        return Sample(per_second=result.completed / (time.perf_counter() - began_at))

    async def latency(self, seconds: float) -> Sample:
        """Of what a server with time to spare takes from its receipt to the recorded delivery."""
        began_ms = time.time() * 1000
        await bare_posts(
            self._paced(f"http://127.0.0.1:{self._plain.product.port}/in/{self._plain.source_id}", seconds)
        )
        await asyncio.sleep(0.5)
        return latency_sample(await self._plain.latencies_ms(began_ms))

    async def bare_latency(self, seconds: float) -> Sample:
        result = await bare_posts(self._paced(self._receiver.url, seconds))
        return Sample(per_second=1000 / result.latency_ms_p95, latency_ms_p50=result.latency_ms_p50)

    def _paced(self, url: str, seconds: float) -> PostJob:
        return PostJob(urls=[url], body_bytes=BODY_BYTES, at_once=AT_ONCE, seconds=seconds, per_second=PACE)

    async def bare(self, seconds: float) -> Sample:
        job = PostJob(urls=[self._receiver.url], body_bytes=BODY_BYTES, at_once=AT_ONCE, seconds=seconds)
        result = await bare_posts(job)
        return Sample(per_second=result.completed / result.seconds)


async def run(options: Options) -> list[Comparison]:
    async with (
        running_receiver(options.directory) as receiver,
        running_hooks(options, "hooks-delivery") as product,
    ):
        user_id = await make_user(product)
        source, plain = await make_source(product, user_id), await make_source(product, user_id, secret=None)
        connection_id = await source.connect(receiver.url)
        await plain.connect(receiver.url)
        await asyncio.sleep(1.5)  # every process knows them
        delivery = Delivery(source, plain, connection_id, receiver, options)
        samples = await measure_rounds(
            {
                END_TO_END: delivery.end_to_end,
                BARE: delivery.bare,
                LATENCY: delivery.latency,
                BARE_LATENCY: delivery.bare_latency,
            },
            options,
        )
    return [
        comparison(samples, END_TO_END, BARE, "events", 0.30),
        comparison(samples, LATENCY, BARE_LATENCY, "", 0.20),
    ]


def comparison(
    samples: dict[str, list[Sample]], product: str, yardstick: str, unit: str, bar: float | None
) -> Comparison:
    return Comparison(
        name=f"hooks: {product}",
        unit=unit,
        yardstick=yardstick,
        bar=bar,
        product_samples=samples[product],
        yardstick_samples=samples[yardstick],
    )


def latency_sample(latencies_ms: list[float]) -> Sample:
    """Ratios compare rates, so a latency counts by its inverse."""
    ordered = sorted(latencies_ms)
    p95_ms = max(percentile(ordered, 0.95), 0.5)  # stored to the millisecond
    return Sample(
        per_second=1000 / p95_ms,
        latency_ms_p50=percentile(ordered, 0.5),
        latency_ms_p99=percentile(ordered, 0.99),
    )
