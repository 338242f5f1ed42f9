"""The yardstick for deliveries: a bare aiohttp client that POSTs again and again; at a rate, if told so.

`python -m bench.harness.bare_posts` reads a PostJob on stdin and writes a PostResult on stdout.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from time import perf_counter

import aiohttp
import msgspec
import uvloop

from bench.harness.load import ROOT
from bench.harness.load_process import percentile

MODULE = "bench.harness.bare_posts"


class PostJob(msgspec.Struct, frozen=True, kw_only=True):
    urls: list[str]
    """In turn."""
    body_bytes: int
    at_once: int
    seconds: float
    per_second: float | None = None
    """None: as many as it can."""


class PostResult(msgspec.Struct, frozen=True, kw_only=True):
    completed: int
    seconds: float
    latency_ms_p50: float
    latency_ms_p95: float


async def post(job: PostJob) -> PostResult:
    body, latencies = b"x" * job.body_bytes, list[float]()
    connector = aiohttp.TCPConnector(limit=job.at_once)
    async with aiohttp.ClientSession(connector=connector) as session:
        started_at = perf_counter()
        deadline = started_at + job.seconds

        urls = itertools.cycle(job.urls)

        async def once() -> None:
            began_at = perf_counter()
            async with session.post(next(urls), data=body) as response:
                await response.read()
            latencies.append((perf_counter() - began_at) * 1000)

        async def again_and_again() -> None:
            while perf_counter() < deadline:
                await once()

        if job.per_second is None:
            await asyncio.gather(*(again_and_again() for _ in range(job.at_once)))
        else:
            tasks = set[asyncio.Task[None]]()
            for number in range(int(job.per_second * job.seconds)):
                await asyncio.sleep(max(0.0, started_at + number / job.per_second - perf_counter()))
                task = asyncio.create_task(once())
                tasks.add(task)
                task.add_done_callback(tasks.discard)
            await asyncio.gather(*tasks)
        seconds = perf_counter() - started_at
    latencies.sort()
    return PostResult(
        completed=len(latencies),
        seconds=seconds,
        latency_ms_p50=percentile(latencies, 0.5),
        latency_ms_p95=percentile(latencies, 0.95),
    )


async def bare_posts(job: PostJob) -> PostResult:
    """In a process of its own, as the product is."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        MODULE,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    output, _ = await asyncio.wait_for(process.communicate(msgspec.json.encode(job)), job.seconds + 60)
    if process.returncode != 0:
        raise RuntimeError(f"bare posts ended with status {process.returncode}")
    return msgspec.json.decode(output, type=PostResult)


if __name__ == "__main__":
    result = uvloop.run(post(msgspec.json.decode(sys.stdin.buffer.read(), type=PostJob)))
    sys.stdout.buffer.write(msgspec.json.encode(result))
