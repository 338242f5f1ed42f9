"""How calls end that do not go well, against servers that misbehave on purpose."""

from __future__ import annotations

import asyncio
import datetime
import gzip
import os
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.support.ports import free_port

from crossdock.http.client import CallFailed, GuardedClient
from crossdock.kit.egress import EgressPolicy

LOOPBACK = EgressPolicy(allow=(ip_network("127.0.0.0/8"),))
OK = b"HTTP/1.1 200 OK\r\n"

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(talk: Talk, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """A server that reads one request head and then says whatever `talk` says."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{port}/"
    finally:
        server.close()


def saying(*parts: bytes) -> Talk:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()

    return talk


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def trickling(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(OK + b"Content-Length: 1000000\r\n\r\n")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.02)


@pytest.fixture
async def client() -> AsyncIterator[GuardedClient]:
    made = GuardedClient(LOOPBACK, connect_timeout_seconds=2)
    yield made
    await made.close()


async def code_of(client: GuardedClient, talk: Talk, timeout_seconds: float = 5) -> str:
    async with serving(talk) as url:
        with pytest.raises(CallFailed) as caught:
            await client.send("GET", url, timeout_seconds=timeout_seconds)
    return caught.value.code


async def test_nobody_listening_is_connect_failed(client: GuardedClient) -> None:
    with pytest.raises(CallFailed) as caught:
        await client.send("GET", f"http://127.0.0.1:{free_port()}/")
    assert caught.value.code == "connect_failed"
    assert caught.value.can_retry


async def test_a_server_that_never_answers_is_a_timeout(client: GuardedClient) -> None:
    assert await code_of(client, silent, timeout_seconds=0.2) == "call_timeout"


async def test_the_timeout_covers_a_body_that_trickles_in(client: GuardedClient) -> None:
    assert await code_of(client, trickling, timeout_seconds=0.3) == "call_timeout"


async def test_the_timeout_covers_all_redirects_together(client: GuardedClient) -> None:
    async def slow_redirect(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.15)
        writer.write(b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n")

    async with serving(slow_redirect) as url:
        with pytest.raises(CallFailed) as caught:
            await client.send("GET", url, timeout_seconds=0.4, redirects_max=100)
    assert caught.value.code == "call_timeout"


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [OK],
        [OK + b"Content-Length: 100\r\n\r\n", b"only this"],
        [OK + b"Transfer-Encoding: chunked\r\n\r\n", b"5\r\nhel"],
    ],
)
async def test_a_server_that_hangs_up_early_is_connection_lost(
    client: GuardedClient, parts: list[bytes]
) -> None:
    assert await code_of(client, saying(*parts)) == "connection_lost"


@pytest.mark.parametrize(
    "garbage", [b"SSH-2.0-OpenSSH_9.6\r\n\r\n", b"HTTP/9 what\r\n\r\n", os.urandom(4096)]
)
async def test_a_server_that_speaks_no_http_is_an_invalid_response(
    client: GuardedClient, garbage: bytes
) -> None:
    assert await code_of(client, saying(garbage)) in {"invalid_response", "connection_lost"}


async def test_headers_without_end_are_refused(client: GuardedClient) -> None:
    assert await code_of(client, saying(OK + b"X: " + b"x" * 1_000_000)) == "invalid_response"


async def test_a_body_larger_than_asked_for_is_cut_and_said_to_be(client: GuardedClient) -> None:
    async with serving(saying(OK + b"Content-Length: 5000000\r\n\r\n", b"x" * 5_000_000)) as url:
        answer = await client.send("GET", url, bytes_max=1000)
        assert (answer.body, answer.complete) == (b"x" * 1000, False)


@pytest.mark.parametrize(("size", "complete"), [(999, True), (1000, True), (1001, False)])
async def test_a_body_of_exactly_the_bound_is_complete(
    client: GuardedClient, size: int, complete: bool
) -> None:
    async with serving(saying(OK + f"Content-Length: {size}\r\n\r\n".encode(), b"x" * size)) as url:
        answer = await client.send("GET", url, bytes_max=1000)
    assert (len(answer.body), answer.complete) == (min(size, 1000), complete)


async def test_a_body_without_end_is_read_no_further_than_asked(client: GuardedClient) -> None:
    sent = 0

    async def endless(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(OK + b"\r\n")
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()
            sent += 65536

    async with serving(endless) as url:
        answer = await client.send("GET", url, bytes_max=100_000)
    assert (len(answer.body), answer.complete) == (100_000, False)
    assert sent < 50_000_000


async def test_a_compressed_body_is_bounded_by_what_it_inflates_to(client: GuardedClient) -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    head = OK + f"Content-Encoding: gzip\r\nContent-Length: {len(bomb)}\r\n\r\n".encode()
    async with serving(saying(head, bomb)) as url:
        answer = await client.send("GET", url, bytes_max=1000)
    assert (len(answer.body), answer.complete) == (1000, False)


async def test_a_body_is_passed_on_as_it_came_when_not_to_be_decompressed() -> None:
    packed = gzip.compress(b"hello")
    head = OK + f"Content-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n".encode()
    client = GuardedClient(LOOPBACK, decompress=False)
    try:
        async with serving(saying(head, packed)) as url:
            assert (await client.send("GET", url)).body == packed
    finally:
        await client.close()


async def test_a_streamed_answer_gives_its_first_bytes_before_the_last_are_sent(
    client: GuardedClient,
) -> None:
    rest = asyncio.Event()

    async def in_two_parts(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK + b"Content-Length: 10\r\n\r\nfirst")
        await writer.drain()
        await rest.wait()
        writer.write(b"later")

    async with serving(in_two_parts) as url, client.stream("GET", url) as answer:
        chunks = answer.chunks()
        assert await anext(chunks) == b"first"
        rest.set()
        assert b"".join([chunk async for chunk in chunks]) == b"later"


async def test_a_body_may_be_streamed_to_the_server(client: GuardedClient) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"hello "
        yield b"world"

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received = await reader.readuntil(b"0\r\n\r\n")
        writer.write(OK + f"Content-Length: {len(received)}\r\n\r\n".encode() + received)
        await writer.drain()

    async with serving(echo) as url, client.stream("POST", url, body=body()) as answer:
        assert await answer.read_bounded(1000) == (b"6\r\nhello \r\n5\r\nworld\r\n0\r\n\r\n", True)


def self_signed(directory: Path) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = directory / "server.pem"
    pem.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    return context


async def test_a_certificate_that_nobody_vouches_for_is_tls_failed(
    client: GuardedClient, tmp_path: Path
) -> None:
    async with serving(saying(OK + b"Content-Length: 0\r\n\r\n"), self_signed(tmp_path)) as url:
        with pytest.raises(CallFailed) as caught:
            await client.send("GET", url)
    assert caught.value.code == "tls_failed"
    assert "certificate" in caught.value.message


async def test_a_certificate_that_the_caller_trusts_is_accepted(tmp_path: Path) -> None:
    server_context = self_signed(tmp_path)
    trusting = ssl.create_default_context(cafile=str(tmp_path / "server.pem"))
    client = GuardedClient(LOOPBACK, ssl_context=trusting)
    try:
        async with serving(saying(OK + b"Content-Length: 2\r\n\r\nhi"), server_context) as url:
            assert (await client.send("GET", url)).body == b"hi"
    finally:
        await client.close()


async def test_a_proxy_in_the_environment_is_not_used(tmp_path: Path) -> None:
    program = tmp_path / "call.py"
    program.write_text(
        "import asyncio, sys\n"
        "from ipaddress import ip_network\n"
        "from crossdock.http.client import GuardedClient\n"
        "from crossdock.kit.egress import EgressPolicy\n"
        "async def main():\n"
        "    client = GuardedClient(EgressPolicy(allow=(ip_network('127.0.0.1'),)))\n"
        "    print((await client.send('GET', sys.argv[1])).body.decode())\n"
        "    await client.close()\n"
        "asyncio.run(main())\n"
    )
    nobody = f"http://127.0.0.1:{free_port()}"
    environ = {**os.environ, "http_proxy": nobody, "HTTP_PROXY": nobody, "ALL_PROXY": nobody, "no_proxy": ""}
    async with serving(saying(OK + b"Content-Length: 6\r\n\r\ndirect")) as url:
        child = await asyncio.create_subprocess_exec(
            sys.executable, str(program), url, env=environ, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await child.communicate()
    assert out.decode().strip() == "direct"
