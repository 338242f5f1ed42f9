"""What is made of calls that get no answer. None of them raises anything."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult
from tests.http.delivery.conftest import LOOPBACK, NOW_MS, CallReceiver, outbound
from tests.http.delivery.receivers import answer, receiving, repeating, saying, silent
from tests.support.ports import free_port

from crossdock.delivery.calling import Caller
from crossdock.delivery.model import CallResult
from crossdock.http.client import GuardedClient
from crossdock.kit.clock import SystemClock
from crossdock.kit.egress import EgressPolicy

OK = b"HTTP/1.1 200 OK\r\n"


def failed(result: CallResult, code: str) -> bool:
    """Is it charged to the destination, under this code, with a sentence for people?"""
    assert result.error is not None
    assert (result.status, result.body_text, result.succeeded, result.own_fault) == (0, "", False, False)
    assert result.error.startswith(f"{result.error_code}: ")
    assert result.error.endswith(".")
    return result.error_code == code


# --- time --------------------------------------------------------------------------------------------


async def test_a_receiver_that_hangs_is_a_timeout(called: CallReceiver) -> None:
    began_at = time.monotonic()
    result = await called(silent, timeout_seconds=0.3)
    assert failed(result, "timeout")
    assert 290 <= result.latency_ms <= (time.monotonic() - began_at) * 1000 + 1


async def test_a_success_after_the_timeout_is_none(caller: Caller) -> None:
    late = asyncio.Event()

    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await late.wait()
        writer.write(answer(200, b"late"))

    async with receiving(talk) as receiver:
        assert failed(await caller.call(outbound(receiver.url, timeout_seconds=0.3), NOW_MS), "timeout")
        late.set()
        # The late answer must not be taken for that of the next call.
        assert (await caller.call(outbound(receiver.url), NOW_MS)).body_text == "late"
        assert receiver.connections == 2


@pytest.mark.parametrize(
    ("start", "part"),
    [
        (b"", b"H"),
        (OK, b"X-Header: x\r\n"),
        (OK + b"Content-Length: 1000\r\n\r\n", b"x"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
    ids=["status", "headers", "body", "chunks", "continues"],
)
async def test_the_timeout_covers_an_answer_that_trickles_in(
    called: CallReceiver, start: bytes, part: bytes
) -> None:
    result = await called(repeating(start, part, pause_seconds=0.02), timeout_seconds=0.3)
    assert result.error_code in {"timeout", "invalid_response"}  # HHHH… is no HTTP from the second one on
    assert result.latency_ms < 5000


# --- no answer, or half of one -----------------------------------------------------------------------


async def test_nobody_listening_is_connect_failed(caller: Caller) -> None:
    result = await caller.call(outbound(f"http://127.0.0.1:{free_port()}/"), NOW_MS)
    assert failed(result, "connect_failed")


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [OK],
        [OK + b"Content-Length: 100\r\n\r\n", b"only this"],
        [OK + b"Transfer-Encoding: chunked\r\n\r\n", b"5\r\nhel"],
        [b"HTTP/1.1 500 Oops\r\nContent-Length: 100\r\n\r\n", b"only this"],
    ],
    ids=["nothing", "half a head", "half a body", "half a chunk", "half an error"],
)
async def test_a_receiver_that_hangs_up_early_gave_no_answer(
    called: CallReceiver, parts: list[bytes]
) -> None:
    assert failed(await called(saying(*parts, hangs_up=True)), "connection_lost")


@pytest.mark.parametrize("said", [b"", OK + b"Content-Length: 100\r\n\r\nhalf"])
async def test_a_connection_that_is_reset_is_lost(called: CallReceiver, said: bytes) -> None:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        await writer.drain()
        connection = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        writer.transport.abort()

    assert failed(await called(talk), "connection_lost")


async def test_a_receiver_that_closes_before_reading_is_lost(caller: Caller) -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    try:
        result = await caller.call(outbound(url, b"x" * 200_000), NOW_MS)
    finally:
        server.close()
    assert failed(result, "connection_lost")


@pytest.mark.parametrize(
    "garbage",
    [b"SSH-2.0-OpenSSH_9.6\r\n\r\n", b"HTTP/9 what\r\n\r\n", b"\x16\x03\x01\0\xa5" * 100, b"\0" * 4096],
)
async def test_a_receiver_that_speaks_no_http_is_an_invalid_response(
    called: CallReceiver, garbage: bytes
) -> None:
    assert failed(await called(saying(garbage, hangs_up=True)), "invalid_response")


async def test_random_bytes_are_no_answer(called: CallReceiver) -> None:
    result = await called(saying(os.urandom(4096), hangs_up=True))
    assert result.error_code in {"invalid_response", "connection_lost"}


@pytest.mark.parametrize("part", [b"X: " + b"x" * 4000 + b"\r\n", b"x" * 4000], ids=["many", "one"])
async def test_headers_without_end_are_not_read_without_end(called: CallReceiver, part: bytes) -> None:
    result = await called(repeating(OK, part))
    assert failed(result, "invalid_response")
    assert result.latency_ms < 5000


async def test_a_receiver_without_tls_where_it_should_be_is_tls_failed(caller: Caller) -> None:
    async def plain(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(400))
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    result = await caller.call(outbound(url), NOW_MS)
    server.close()
    assert failed(result, "tls_failed")


class NamelessResolver(AbstractResolver):
    """A DNS in which there is nothing."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        raise OSError(None, "no such name")

    async def close(self) -> None:
        pass


async def test_a_name_that_is_not_found_is_dns_failed() -> None:
    client = GuardedClient(LOOPBACK, resolver=NamelessResolver())
    result = await Caller(client, SystemClock()).call(outbound("http://gone.example.org/"), NOW_MS)
    await client.close()
    assert failed(result, "dns_failed")
    assert "gone.example.org" in str(result.error)


# --- calls that are not made -------------------------------------------------------------------------


async def test_an_address_that_may_not_be_called_is_egress_refused_and_says_what_would_allow_it() -> None:
    client = GuardedClient(EgressPolicy())
    async with receiving(saying(answer(200))) as receiver:
        result = await Caller(client, SystemClock()).call(outbound(receiver.url), NOW_MS)
    await client.close()
    assert failed(result, "egress_refused")
    assert "127.0.0.1 is a loopback address" in str(result.error)
    assert "CROSSDOCK_EGRESS_ALLOW" in str(result.error)
    assert receiver.connections == 0


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nonsense",
        "ftp://example.org/",
        "http://user:secret@127.0.0.1/",
        "http://127.0.0.1:99999/",
        "http://a b/",
    ],
)
async def test_a_url_that_cannot_be_called_is_said_to_be_invalid(caller: Caller, url: str) -> None:
    result = await caller.call(outbound(url), NOW_MS)
    assert failed(result, "invalid_url")
    assert "secret" not in str(result.error)


@pytest.mark.parametrize(
    ("headers", "secrets", "code"),
    [
        ((("x-bad", "a\r\nb"),), (), "invalid_header"),
        ((("x-bad", "\x01"),), (), "internal_error"),
        ((), ("whsec_*",), "internal_error"),
    ],
)
async def test_what_should_have_been_checked_before_ends_in_a_result_all_the_same(
    caller: Caller, headers: tuple[tuple[str, str], ...], secrets: tuple[str, ...], code: str
) -> None:
    async with receiving(saying(answer(200))) as receiver:
        result = await caller.call(outbound(receiver.url, headers=headers, secrets=secrets), NOW_MS)
    assert failed(result, code)
    assert receiver.requests == []


async def test_a_client_that_is_closed_ends_in_a_result_all_the_same() -> None:
    client = GuardedClient(LOOPBACK)
    await client.close()
    result = await Caller(client, SystemClock()).call(outbound("http://127.0.0.1/"), NOW_MS)
    assert result.error_code == "internal_error"


@contextmanager
def no_file_descriptors_left() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_our_own_lack_of_sockets_is_not_charged_to_the_destination(caller: Caller) -> None:
    async with receiving(saying(answer(200))) as receiver:
        with no_file_descriptors_left():
            result = await caller.call(outbound(receiver.url), NOW_MS)
        assert (result.status, result.error_code, result.own_fault) == (0, "own_network_failed", True)
        assert (await caller.call(outbound(receiver.url), NOW_MS)).succeeded


# --- side by side ------------------------------------------------------------------------------------


async def test_a_healthy_receiver_is_unaffected_beside_one_that_hangs(caller: Caller) -> None:
    async with receiving(silent) as hanging, receiving(saying(answer(200, b"ok"))) as healthy:
        stuck = [asyncio.create_task(caller.call(outbound(hanging.url), NOW_MS)) for _ in range(50)]
        results = [await caller.call(outbound(healthy.url), NOW_MS) for _ in range(100)]
        assert all(result.succeeded for result in results)
        assert sorted(result.latency_ms for result in results)[95] < 500
        assert not any(task.done() for task in stuck)
        for task in stuck:
            task.cancel()
        ended = await asyncio.gather(*stuck, return_exceptions=True)
        assert all(isinstance(each, asyncio.CancelledError) for each in ended)


async def test_a_call_that_is_cancelled_lets_go_of_its_connection(caller: Caller) -> None:
    gone = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        started.set()
        await reader.read()
        gone.set()
        writer.close()

    started = asyncio.Event()
    async with receiving(talk) as receiver:
        task = asyncio.create_task(caller.call(outbound(receiver.url), NOW_MS))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(gone.wait(), 10)
