"""The load generator against a server that counts for itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from bench.harness.load import LoadFailed, LoadJob, read_requests, render_request, run_load, write_requests

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
ERROR = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"


@asynccontextmanager
async def serving(answer: bytes, bodies: list[bytes], *, close_after: int = 10_000) -> AsyncIterator[int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            for _ in range(close_after):
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                bodies.append(await reader.readexactly(size))
                writer.write(answer)
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        await server.wait_closed()


def job(directory: Path, port: int, count: int, *, seconds: float = 10, repeat: bool = False) -> LoadJob:
    requests = [render_request("POST", "/", {}, f"body {number}".encode()) for number in range(count)]
    file = write_requests(directory / "requests", requests)
    return LoadJob(port=port, requests=str(file), connections=3, seconds=seconds, repeat=repeat)


async def test_every_request_is_sent_exactly_once(tmp_path: Path) -> None:
    bodies: list[bytes] = []
    async with serving(OK, bodies) as port:
        result = await run_load(job(tmp_path, port, 200))
    assert sorted(bodies) == sorted(f"body {number}".encode() for number in range(200))
    assert (result.completed, result.statuses) == (200, {"200": 200})
    assert result.bytes_received == 200 * len(OK)


async def test_load_that_repeats_its_requests_ends_by_time(tmp_path: Path) -> None:
    bodies: list[bytes] = []
    async with serving(OK, bodies) as port:
        result = await run_load(job(tmp_path, port, 2, seconds=0.3, repeat=True))
    assert result.completed == len(bodies) > 2
    assert 0.2 < result.seconds < 5


async def test_another_status_than_the_expected_one_fails_the_measurement(tmp_path: Path) -> None:
    async with serving(ERROR, []) as port:
        with pytest.raises(LoadFailed):
            await run_load(job(tmp_path, port, 10))


async def test_a_broken_connection_fails_the_measurement(tmp_path: Path) -> None:
    async with serving(OK, [], close_after=5) as port:
        with pytest.raises(LoadFailed):
            await run_load(job(tmp_path, port, 100))


def test_requests_come_back_from_their_file_as_they_were(tmp_path: Path) -> None:
    requests = [b"", b"GET / HTTP/1.1\r\n\r\n", bytes(range(256)) * 300]
    assert read_requests(write_requests(tmp_path / "requests", requests)) == requests
