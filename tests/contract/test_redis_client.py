"""What callers may rely on from the Redis client, on a real server."""

from __future__ import annotations

import asyncio
import time

import pytest
from tests.support.ports import free_port
from tests.support.redis_server import RedisServer

from crossdock.engines.redis.client import REDIS_ERRORS, check, judge_version, open_redis

pytestmark = pytest.mark.redis


async def test_what_is_set_can_be_got_as_bytes(redis_url: str) -> None:
    client = open_redis(redis_url)
    await client.set("greeting", "hello", px=60_000)
    assert await client.get("greeting") == b"hello"
    await client.aclose()


async def test_a_call_after_a_restart_of_the_server_succeeds_at_once() -> None:
    server = RedisServer()
    server.start()
    client = open_redis(server.url)
    try:
        await client.ping()
        await asyncio.to_thread(server.stop)
        await asyncio.to_thread(server.start)
        assert await client.ping()
    finally:
        await client.aclose()
        server.stop()


async def test_an_absent_server_is_an_error_in_time() -> None:
    client = open_redis(f"redis://127.0.0.1:{free_port()}/0")
    started = time.monotonic()
    with pytest.raises(REDIS_ERRORS):
        await client.ping()
    assert time.monotonic() - started < 2
    await client.aclose()


async def test_a_server_that_does_not_answer_is_an_error_after_the_timeout() -> None:
    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    silent = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    client = open_redis(f"redis://127.0.0.1:{port}/0", timeout_seconds=0.3)
    started = time.monotonic()
    with pytest.raises(REDIS_ERRORS):
        await client.ping()
    assert 0.2 < time.monotonic() - started < 2
    await client.aclose()
    silent.close()
    await silent.wait_closed()


async def test_a_good_server_has_no_problems(redis_url: str) -> None:
    assert await check(redis_url) == []


@pytest.mark.parametrize("url", ["redis://:secret@127.0.0.1:{port}/0", "ftp://:secret@127.0.0.1:{port}"])
async def test_a_wrong_url_is_a_problem_that_keeps_the_password_to_itself(url: str) -> None:
    (problem,) = await check(url.format(port=free_port()))
    assert "CROSSDOCK_REDIS_URL" in problem
    assert "secret" not in problem


@pytest.mark.parametrize(
    ("version", "is_good"),
    [("7.0.15", True), ("6.2.0", True), ("10.0", True), ("6.0.9", False), ("5.9", False)],
)
def test_versions_are_compared_as_numbers(version: str, is_good: bool) -> None:
    assert (judge_version(version) == []) is is_good
