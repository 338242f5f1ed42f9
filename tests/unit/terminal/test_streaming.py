"""Live streams as commands read them, from a real server on a port of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.ports import free_port

from crossdock.http.sse import BEGINNING, KEEP_ALIVE, event_frame
from crossdock.terminal.client import ApiClient
from crossdock.terminal.failures import CommandFailed, ExitCode
from crossdock.terminal.streaming import ServerEvent, StreamingClient, parse_events


def parsed(text: str, last_event_id: str | None = None) -> list[ServerEvent]:
    return list(parse_events(text.encode().splitlines(keepends=True), last_event_id))


@pytest.mark.parametrize(
    ("text", "events"),
    [
        ("", []),
        (":\n\n", []),
        ("retry: 2000\n\n", []),
        ("event: a\ndata: 1\n\n", [ServerEvent("a", "1", None)]),
        ("data: 1\n\n", [ServerEvent("message", "1", None)]),
        ("event:a\ndata:1\n\n", [ServerEvent("a", "1", None)]),
        ("event: a\ndata:  1\n\n", [ServerEvent("a", " 1", None)]),
        ("event: a\r\ndata: 1\r\n\r\n", [ServerEvent("a", "1", None)]),
        ("event: a\ndata: 1\ndata: 2\n\n", [ServerEvent("a", "1\n2", None)]),
        ("event: a\n\ndata: 1\n\n", [ServerEvent("message", "1", None)]),
        ("id: x\nevent: a\ndata: 1\n\nevent: b\ndata: 2\n\n", [
            ServerEvent("a", "1", "x"), ServerEvent("b", "2", "x")]),
        ("id: x\0y\ndata: 1\n\n", [ServerEvent("message", "1", None)]),
        (": a comment\ndata: 1\nunknown: 2\nnothing\n\n", [ServerEvent("message", "1", None)]),
        ("data: 1\n\ndata: cut off", [ServerEvent("message", "1", None)]),
        ("data: 1\n\ndata: cut off\n", [ServerEvent("message", "1", None)]),
        ("data: {\"a\": \"b: c\"}\n\n", [ServerEvent("message", '{"a": "b: c"}', None)]),
    ],
)  # fmt: skip
def test_a_stream_is_read_as_the_standard_says(text: str, events: list[ServerEvent]) -> None:
    assert parsed(text) == events


def test_where_one_was_stays_until_an_event_says_where_it_is() -> None:
    assert [each.last_event_id for each in parsed("data: 1\n\nid: y\ndata: 2\n\n", "x")] == ["x", "y"]


@given(
    st.lists(
        st.tuples(
            st.from_regex(r"[a-z]{1,8}", fullmatch=True),
            st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), min_size=1),
        )
    )
)
def test_what_the_server_writes_is_what_a_command_reads(told: list[tuple[str, str]]) -> None:
    frames = [event_frame(name, data.encode(), str(n)) for n, (name, data) in enumerate(told)]
    stream = BEGINNING + KEEP_ALIVE.join(frames)
    lines = [line + b"\n" for line in stream.split(b"\n")]
    assert list(parse_events(lines)) == [
        ServerEvent(name, data, str(n)) for n, (name, data) in enumerate(told)
    ]


# --- over a connection -----------------------------------------------------------------------------

CHUNKED = {"Transfer-Encoding": "chunked", "Content-Type": "text/event-stream; charset=utf-8"}


class Streaming:
    """A server whose one answer is told part by part."""

    def __init__(self) -> None:
        self.status = 200
        self.headers = dict(CHUNKED)
        self.parts: list[bytes] = []
        self.hangs_after = False
        self.breaks_off = False
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.url = ""
        self.done = threading.Event()


@pytest.fixture
def streaming() -> Iterator[Streaming]:
    state = Streaming()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            state.asked.append((self.path, dict(self.headers)))
            self.send_response(state.status)
            for name, value in state.headers.items():
                self.send_header(name, value)
            self.end_headers()
            for part in state.parts:
                chunked = "Transfer-Encoding" in state.headers
                self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part) if chunked else part)
                self.wfile.flush()
            if state.hangs_after:
                state.done.wait(10)
            elif not state.breaks_off and "Transfer-Encoding" in state.headers:
                self.wfile.write(b"0\r\n\r\n")
            self.close_connection = True

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


def client_of(streaming: Streaming, silence_seconds_max: float = 10) -> StreamingClient:
    return StreamingClient.like(ApiClient(streaming.url + "/base", "k1"), silence_seconds_max)


@contextmanager
def failing(exit_code: ExitCode, said: str) -> Iterator[None]:
    with pytest.raises(CommandFailed, match=said) as caught:
        yield
    assert caught.value.exit_code == exit_code


def test_events_are_read_as_they_come_and_the_stream_may_go_on(streaming: Streaming) -> None:
    streaming.parts = [BEGINNING, b"event: a\nda", b"ta: 1\n", b"\n", KEEP_ALIVE, b"event: b\ndata: 2\n\n"]
    streaming.hangs_after = True
    opened: list[str] = []
    events = client_of(streaming).events("/x", {"source_id": "s 1"}, on_open=lambda: opened.append("yes"))
    assert next(events) == ServerEvent("a", "1", None)
    assert next(events) == ServerEvent("b", "2", None)
    assert opened == ["yes"]
    [(path, headers)] = streaming.asked
    assert path == "/base/x?source_id=s+1"
    assert (headers["Authorization"], headers["Accept"]) == ("Bearer k1", "text/event-stream")
    assert "Last-Event-ID" not in headers


def test_who_goes_on_says_where_it_was(streaming: Streaming) -> None:
    assert list(client_of(streaming).events("/x", {}, last_event_id="42")) == []
    assert streaming.asked[0][1]["Last-Event-ID"] == "42"


@pytest.mark.parametrize("breaks_off", [False, True])
def test_a_stream_that_ends_ends_in_whatever_way(streaming: Streaming, breaks_off: bool) -> None:
    streaming.breaks_off = breaks_off
    streaming.parts = [b"data: 1\n\n", b"data: half"]
    events = []
    try:
        for event in client_of(streaming).events("/x", {}):
            events.append(event)  # noqa: PERF402 -- what came before it broke off counts
    except CommandFailed as failure:
        assert breaks_off
        assert failure.exit_code == ExitCode.UNAVAILABLE
    assert events == [ServerEvent("message", "1", None)]


def test_a_server_that_falls_silent_is_given_up(streaming: Streaming) -> None:
    streaming.hangs_after = True
    with failing(ExitCode.UNAVAILABLE, "no answer within 0.1 s"):
        list(client_of(streaming, silence_seconds_max=0.1).events("/x", {}))


def test_a_refusal_is_told_and_nothing_opened(streaming: Streaming) -> None:
    streaming.status = 404
    streaming.headers = {"Content-Type": "application/problem+json"}
    streaming.parts = [b'{"code": "source_not_found", "detail": "There is no source."}']
    opened: list[str] = []
    with failing(ExitCode.NOT_FOUND, "There is no source"):
        list(client_of(streaming).events("/x", {}, on_open=lambda: opened.append("yes")))
    assert opened == []


def test_an_answer_that_is_no_stream_is_told(streaming: Streaming) -> None:
    streaming.headers = {"Content-Type": "text/html"}
    streaming.parts = [b"<html>"]
    with failing(ExitCode.FAILED, "something other than events"):
        list(client_of(streaming).events("/x", {}))


def test_a_server_that_is_not_there_is_told() -> None:
    client = StreamingClient.like(ApiClient(f"http://127.0.0.1:{free_port()}", "k"))
    with failing(ExitCode.UNAVAILABLE, "nothing listens there"):
        list(client.events("/x", {}))


def test_what_goes_wrong_with_the_reader_is_not_blamed_on_the_server(streaming: Streaming) -> None:
    streaming.parts = [b"data: 1\n\n"]
    with pytest.raises(OSError, match="disk full"):
        for _ in client_of(streaming).events("/x", {}):
            raise OSError("disk full")
