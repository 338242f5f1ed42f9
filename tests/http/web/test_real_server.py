"""What only a real server shows: the same app behind uvicorn, asked over a socket."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import pytest
import uvicorn
from tests.http.web.conftest import KEY, assemble

HEAD = f"Host: test\r\nAuthorization: Bearer {KEY}\r\n"


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def code(self) -> str:
        assert self.headers["content-type"] == "application/problem+json"
        return str(msgspec.json.decode(self.body)["code"])


class Wire:
    """One connection."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, timeout=10)
        self._reader = self._socket.makefile("rb")

    def send(self, raw: str | bytes) -> None:
        self._socket.sendall(raw.encode("latin-1") if isinstance(raw, str) else raw)

    def reply(self, *, has_body: bool = True) -> Reply:
        status = int(self._reader.readline().split()[1])
        headers: dict[str, str] = {}
        while line := self._reader.readline().strip():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        length = int(headers.get("content-length", "0")) if has_body else 0
        return Reply(status, headers, self._reader.read(length))

    def close(self) -> None:
        self._reader.close()
        self._socket.close()


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, int]]:
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(assemble(), log_config=None, access_log=False, lifespan="on"))
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    deadline = time.monotonic() + 10
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.01)
    yield listening.getsockname()
    server.should_exit = True
    thread.join(timeout=10)
    listening.close()
    assert not thread.is_alive()


@pytest.fixture
def wire(address: tuple[str, int]) -> Iterator[Wire]:
    connection = Wire(address)
    yield connection
    connection.close()


def test_one_connection_serves_lanes_and_framework_one_after_the_other(wire: Wire) -> None:
    for path, status in (("/healthz", 200), ("/v1/toys/things", 200), ("/nope", 404), ("/readyz", 200)):
        wire.send(f"GET {path} HTTP/1.1\r\n{HEAD}\r\n")
        assert wire.reply().status == status


def test_head_has_no_body(wire: Wire) -> None:
    wire.send(f"HEAD /healthz HTTP/1.1\r\n{HEAD}\r\nGET /healthz HTTP/1.1\r\n{HEAD}\r\n")
    assert wire.reply(has_body=False).status == 200
    assert wire.reply().body == b'{"status":"ok"}'


def test_a_nul_in_the_path_is_404_and_in_the_query_400(wire: Wire) -> None:
    wire.send(f"GET /v1/toys/things/%00 HTTP/1.1\r\n{HEAD}\r\n")
    assert wire.reply().code == "not_found"
    wire.send(f"GET /v1/toys/things?cursor=%00 HTTP/1.1\r\n{HEAD}\r\n")
    assert wire.reply().code == "malformed_query"


@pytest.mark.parametrize("path", ["/v1/toys/echo", "/v1/toys/things"])
def test_a_body_announced_too_large_is_refused_before_it_is_sent(wire: Wire, path: str) -> None:
    wire.send(f"POST {path} HTTP/1.1\r\n{HEAD}Content-Length: 99999999\r\n\r\n")
    assert wire.reply().code == "body_too_large"


@pytest.mark.parametrize("path", ["/v1/toys/echo", "/v1/toys/things"])
def test_a_chunked_body_is_refused_once_it_is_too_large_and_the_connection_goes_on(
    wire: Wire, path: str
) -> None:
    wire.send(f"POST {path} HTTP/1.1\r\n{HEAD}Transfer-Encoding: chunked\r\n\r\n")
    for _ in range(40):
        wire.send(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
    wire.send(b"0\r\n\r\n")
    assert wire.reply().code == "body_too_large"
    wire.send(f"GET /healthz HTTP/1.1\r\n{HEAD}\r\n")
    assert wire.reply().status == 200


@pytest.mark.parametrize(
    "raw",
    [
        "POST /v1/toys/echo HTTP/1.1\r\nHost: t\r\nContent-Length: ten\r\n\r\n",
        "POST /v1/toys/echo HTTP/1.1\r\nHost: t\r\nContent-Length: -1\r\n\r\n",
        "POST /v1/toys/echo HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "POST /v1/toys/echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "GET /v1/\xff HTTP/1.1\r\nHost: t\r\n\r\n",
        "nonsense\r\n\r\n",
    ],
)
def test_what_is_no_http_is_400_and_the_server_lives_on(address: tuple[str, int], raw: str) -> None:
    bad = Wire(address)
    bad.send(raw)
    assert bad.reply(has_body=False).status in (400, 404)
    bad.close()
    good = Wire(address)
    good.send(f"GET /healthz HTTP/1.1\r\n{HEAD}\r\n")
    assert good.reply().status == 200
    good.close()


def test_a_client_that_hangs_up_half_way_leaves_no_error_behind(
    address: tuple[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    for path in ("/v1/toys/echo", "/v1/toys/things"):
        gone = Wire(address)
        gone.send(f"POST {path} HTTP/1.1\r\n{HEAD}Content-Length: 100\r\n\r\nhalf")
        time.sleep(0.05)
        gone.close()
    good = Wire(address)
    good.send(f"GET /healthz HTTP/1.1\r\n{HEAD}\r\n")
    assert good.reply().status == 200
    good.close()
    time.sleep(0.05)
    assert [record for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")] == []
