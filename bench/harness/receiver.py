"""A destination of webhooks: `python -m bench.harness.receiver PORT DELAY_MS`, until SIGTERM.

Answers every request with 200, after the delay, and counts; `GET /count` tells how many it got, and when the
last one came. As fast as Python can, so that what is measured is whoever calls it.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import aiohttp
import httptools
import uvloop
from tests.support.ports import free_port

from bench.harness.servers import running

MODULE = "bench.harness.receiver"
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Counts:
    got = 0
    last_at = 0.0


class Connection(asyncio.Protocol):
    transport: asyncio.Transport

    def __init__(self, counts: Counts, delay_seconds: float) -> None:
        self.counts = counts
        self.delay_seconds = delay_seconds
        self.parser = httptools.HttpRequestParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_message_complete(self) -> None:
        if self.parser.get_method() == b"GET":
            body = b'{"got":%d,"last_at":%f}' % (self.counts.got, self.counts.last_at)
            head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
            self.transport.write(head % len(body) + body)
            return
        self.counts.got += 1
        self.counts.last_at = time.time()
        if self.delay_seconds:
            asyncio.get_running_loop().call_later(self.delay_seconds, self._answer)
        else:
            self._answer()

    def _answer(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(ANSWER)


async def serve(port: int, delay_seconds: float) -> None:
    counts = Counts()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(counts, delay_seconds), "127.0.0.1", port)
    await server.serve_forever()


class RunningReceiver:
    def __init__(self, port: int, session: aiohttp.ClientSession) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}/hook"
        self._session = session

    async def got(self) -> int:
        async with self._session.get(f"http://127.0.0.1:{self.port}/count") as response:
            return int((await response.json())["got"])


@contextlib.asynccontextmanager
async def running_receiver(directory: Path, *, delay_ms: int = 0) -> AsyncIterator[RunningReceiver]:
    port = free_port()
    command = [sys.executable, "-m", MODULE, str(port), str(delay_ms)]
    async with (
        running(command, port, "/count", directory / f"receiver-{port}.log", {}),
        aiohttp.ClientSession() as session,
    ):
        yield RunningReceiver(port, session)


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), int(sys.argv[2]) / 1000))
