"""Receivers of webhooks that misbehave on purpose: each reads whole requests and says what it is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from multidict import CIMultiDict


@dataclass
class Request:
    line: str
    headers: CIMultiDict[str]
    body: bytes


@dataclass
class Receiver:
    url: str = ""
    requests: list[Request] = field(default_factory=list)
    connections: int = 0


Talk: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def receiving(talk: Talk) -> AsyncIterator[Receiver]:
    """Serves every request of a connection with `talk`, until either side closes it."""
    receiver, handlers = Receiver(), set[asyncio.Task[None]]()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handlers.add(task)
        receiver.connections += 1
        try:
            while not writer.is_closing():
                receiver.requests.append(await _request(reader))
                await talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # either side has gone: nothing is left to say
        finally:
            writer.close()
            handlers.discard(task)

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    receiver.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    try:
        yield receiver
    finally:
        server.close()
        for task in list(handlers):
            task.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)


async def _request(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    line, *fields = head[:-4].split("\r\n")
    pairs = (each.partition(":") for each in fields)
    headers = CIMultiDict((name, value.strip()) for name, _, value in pairs)
    return Request(line, headers, await reader.readexactly(int(headers["content-length"])))


def answer(status: int, body: bytes = b"", *headers: str) -> bytes:
    lines = (f"HTTP/1.1 {status} Any", f"Content-Length: {len(body)}", *headers)
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def saying(*parts: bytes, hangs_up: bool = False) -> Talk:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()
        if hangs_up:
            writer.close()

    return talk


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Says nothing until the other side goes."""
    await reader.read()
    writer.close()


def repeating(start: bytes, part: bytes, pause_seconds: float = 0) -> Talk:
    """Goes on and on, as long as somebody listens."""

    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        while not writer.is_closing():
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(pause_seconds)

    return talk
