"""A hundred healthy destinations, alone and beside one that never answers: what the hundred notice of it."""

from __future__ import annotations

import asyncio
import time

from bench.harness.bare_posts import PostJob, bare_posts
from bench.harness.options import Options
from bench.harness.receiver import running_receiver
from bench.harness.rounds import Comparison, Sample, measure_rounds
from bench.hooks.delivery import comparison, latency_sample
from bench.hooks.sources import BODY_BYTES, Source, make_source, make_user, running_hooks

HEALTHY = 100
HEALTHY_PACE, SICK_PACE = 200.0, 50.0
DELAY_MS = 20_000
BESIDE = "100 healthy beside a hanging one, 1 / p95"
ALONE = "100 healthy alone, 1 / p95"


class Neighbours:
    def __init__(self, healthy: list[Source], sick: Source) -> None:
        self._healthy = healthy
        self._sick = sick

    async def alone(self, seconds: float) -> Sample:
        return await self._measure(seconds)

    async def beside(self, seconds: float) -> Sample:
        sick = asyncio.create_task(bare_posts(_paced([self._sick], SICK_PACE, seconds)))
        sample = await self._measure(seconds)
        await sick
        return sample

    async def _measure(self, seconds: float) -> Sample:
        began_ms = time.time() * 1000
        await bare_posts(_paced(self._healthy, HEALTHY_PACE, seconds))
        await asyncio.sleep(0.5)
        latencies = [each for source in self._healthy for each in await source.latencies_ms(began_ms)]
        if len(latencies) < HEALTHY_PACE * seconds * 0.99:
            raise AssertionError(f"only {len(latencies)} events were delivered in time")
        return latency_sample(latencies)


def _paced(sources: list[Source], per_second: float, seconds: float) -> PostJob:
    urls = [f"http://127.0.0.1:{source.product.port}/in/{source.source_id}" for source in sources]
    return PostJob(urls=urls, body_bytes=BODY_BYTES, at_once=64, seconds=seconds, per_second=per_second)


async def run(options: Options) -> list[Comparison]:
    async with (
        running_receiver(options.directory) as receiver,
        running_receiver(options.directory, delay_ms=DELAY_MS) as hanging,
        running_hooks(options, "hooks-neighbours") as product,
    ):
        user_id = await make_user(product)
        healthy = [await make_source(product, user_id, secret=None) for _ in range(HEALTHY)]
        for source in healthy:
            await source.connect(receiver.url)
        sick = await make_source(product, user_id, secret=None)
        await sick.connect(hanging.url)
        await asyncio.sleep(1.5)
        neighbours = Neighbours(healthy, sick)
        samples = await measure_rounds({BESIDE: neighbours.beside, ALONE: neighbours.alone}, options)
    return [comparison(samples, BESIDE, ALONE, "", 0.83)]
