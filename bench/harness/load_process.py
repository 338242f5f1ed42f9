"""The load generator: one LoadJob on stdin, one LoadResult on stdout. See `load.py`."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path
from time import perf_counter
from typing import cast

import httptools
import msgspec
import uvloop

from bench.harness.load import LoadJob, LoadResult, read_requests


class Run:
    """What all connections share: the requests left, and the results."""

    def __init__(self, requests: Sequence[bytes], *, repeat: bool, connections: int) -> None:
        self.requests: Iterator[bytes] = cycle(requests) if repeat else iter(requests)
        self.deadline = 0.0
        self.last_answer_at = 0.0
        self.latencies_seconds: list[float] = []
        self.statuses: Counter[int] = Counter()
        self.broken_connections = 0
        self.bytes_received = 0
        self.open_connections = connections
        self.finished = asyncio.Event()

    def connection_ended(self, *, broken: bool) -> None:
        self.broken_connections += broken
        self.open_connections -= 1
        if self.open_connections == 0:
            self.finished.set()


class Connection(asyncio.Protocol):
    """One keep-alive connection, one request in flight. Also the parser's listener."""

    transport: asyncio.Transport

    def __init__(self, run: Run) -> None:
        self.run = run
        self.parser = httptools.HttpResponseParser(self)
        self.sent_at = 0.0
        self.done = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's do not inherit from it

    def send_next(self) -> None:
        now = perf_counter()
        request = next(self.run.requests, None) if now < self.run.deadline else None
        if request is None:
            self.done = True
            self.transport.close()
            return
        self.sent_at = now
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self.run.bytes_received += len(data)
        self.parser.feed_data(data)

    def on_message_complete(self) -> None:
        now = perf_counter()
        run = self.run
        run.latencies_seconds.append(now - self.sent_at)
        run.statuses[self.parser.get_status_code()] += 1
        run.last_answer_at = now
        self.send_next()

    def connection_lost(self, error: Exception | None) -> None:
        self.run.connection_ended(broken=not self.done)


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of them does not exceed."""
    if not ordered:
        return 0.0
    return ordered[max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1)]


async def make_load(job: LoadJob) -> LoadResult:
    loop = asyncio.get_running_loop()
    run = Run(read_requests(Path(job.requests)), repeat=job.repeat, connections=job.connections)
    connections = [
        (await loop.create_connection(lambda: Connection(run), "127.0.0.1", job.port))[1]
        for _ in range(job.connections)
    ]
    started_at = perf_counter()
    run.deadline = started_at + job.seconds
    for connection in connections:
        connection.send_next()
    await run.finished.wait()
    latencies_ms = sorted(seconds * 1000 for seconds in run.latencies_seconds)
    return LoadResult(
        completed=len(latencies_ms),
        seconds=run.last_answer_at - started_at,
        statuses={str(status): count for status, count in run.statuses.items()},
        broken_connections=run.broken_connections,
        bytes_received=run.bytes_received,
        latency_ms_p50=percentile(latencies_ms, 0.5),
        latency_ms_p90=percentile(latencies_ms, 0.9),
        latency_ms_p99=percentile(latencies_ms, 0.99),
        latency_ms_max=percentile(latencies_ms, 1),
    )


def main() -> None:
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=LoadJob)
    result = uvloop.run(make_load(job))
    sys.stdout.buffer.write(msgspec.json.encode(result))


if __name__ == "__main__":
    main()
