"""A request sent as it is, to a real server on a port of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.support.ports import free_port

from crossdock.kit.clock import SystemClock
from crossdock.terminal.sending import ANSWER_BYTES_MAX, NotAnswered, Reply, send_request


@dataclass
class Target:
    status: int = 200
    answer: bytes = b"thanks"
    headers: dict[str, str] = field(default_factory=dict)
    silent: bool = False
    got: list[tuple[str, str, list[tuple[str, str]], bytes]] = field(default_factory=list)
    url: str = ""
    done: threading.Event = field(default_factory=threading.Event)


@pytest.fixture
def target() -> Iterator[Target]:
    state = Target()

    class Handler(BaseHTTPRequestHandler):
        def take(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            state.got.append((self.command, self.path, self.headers.items(), body))
            if state.silent:
                state.done.wait(10)
                return
            self.send_response(state.status)
            for name, value in {"Content-Length": str(len(state.answer)), **state.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(state.answer)

        do_GET = do_POST = do_PUT = take  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    yield state
    state.done.set()
    server.shutdown()
    server.server_close()
    thread.join()


def sent(
    url: str,
    method: str = "POST",
    headers: list[tuple[str, str]] | None = None,
    body: bytes = b"",
    timeout_seconds: float = 10,
) -> Reply:
    return send_request(
        method, url, headers or [], body, clock=SystemClock(), timeout_seconds=timeout_seconds
    )


def test_method_path_query_headers_and_bytes_arrive_as_given_and_nothing_is_added(target: Target) -> None:
    given = [("X-Twice", "1"), ("X-Twice", "2"), ("X-Text", "grüße")]
    reply = sent(f"{target.url}/hook/1?a=%20&b", "PUT", given, bytes(range(256)))
    assert (reply.status, reply.body) == (200, b"thanks")
    [(method, path, headers, body)] = target.got
    assert (method, path, body) == ("PUT", "/hook/1?a=%20&b", bytes(range(256)))
    as_bytes = [(name, value.encode("latin-1").decode()) for name, value in headers]
    assert as_bytes == [("Host", target.url[7:]), *given, ("Content-Length", "256")]


@pytest.mark.parametrize("status", [204, 302, 404, 500])
def test_any_answer_is_an_answer_and_a_redirect_is_not_followed(target: Target, status: int) -> None:
    target.status, target.answer, target.headers = status, b"", {"Location": "/elsewhere"}
    reply = sent(target.url)
    assert (reply.status, reply.header("location")) == (status, "/elsewhere")
    assert len(target.got) == 1


def test_of_a_long_answer_the_beginning_is_read(target: Target) -> None:
    target.answer = b"x" * (ANSWER_BYTES_MAX + 1)
    assert len(sent(target.url).body) == ANSWER_BYTES_MAX


def test_a_port_where_nothing_listens_says_so() -> None:
    with pytest.raises(NotAnswered, match="nothing listens there"):
        sent(f"http://127.0.0.1:{free_port()}/")


def test_a_server_that_does_not_answer_in_time_says_so(target: Target) -> None:
    target.silent = True
    with pytest.raises(NotAnswered, match=r"no answer within 0\.1 s"):
        sent(target.url, timeout_seconds=0.1)


@pytest.mark.parametrize(
    ("url", "header"),
    [
        ("http://crossdock.invalid/", ("X-A", "1")),
        ("http://127.0.0.1:1/\n", ("X-A", "1")),
        ("http://127.0.0.1:1/", ("X A", "1")),
        ("http://127.0.0.1:1/", ("X-A", "1\r\nX-B: 2")),
    ],
)
def test_what_can_not_be_sent_says_why(url: str, header: tuple[str, str]) -> None:
    with pytest.raises(NotAnswered) as caught:
        sent(url, headers=[header])
    assert str(caught.value)
