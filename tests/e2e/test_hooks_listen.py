"""`crossdock hooks listen` against a real `crossdock up`, as a process of its own, stopped by Ctrl-C."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from tests.support.lasting_port import lasting_port
from tests.support.ports import free_port
from tests.support.server import COMMAND, Server, clean_environ, run_command
from tests.support.waiting import wait_until

from crossdock.terminal.failures import ExitCode

LOG_LINE = re.compile(
    r"\d\d:\d\d:\d\d  (evt_[\w-]{16})  (\w+) (\S+)  ([\d,]+) B -> (?:(\d{3})  \d+ ms|no answer: (.*))"
)
LARGEST = 256 * 1024


# --- both ends -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Got:
    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


@dataclass
class Target:
    """A developer's server, on a port that it may leave and take again."""

    port: int = field(default_factory=lasting_port)
    status: int = 200
    got: list[Got] = field(default_factory=list)
    _server: ThreadingHTTPServer | None = None
    _thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    def start(self) -> None:
        target = self

        class Handler(BaseHTTPRequestHandler):
            def take(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                target.got.append(Got(self.command, self.path, self.headers.items(), body))
                self.send_response(target.status)
                self.end_headers()

            do_GET = do_POST = do_PUT = take  # noqa: N815

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def stop(self) -> None:
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
            self._server = None


class Listen:
    """The command, from when it says that it listens until it is stopped."""

    def __init__(
        self, server: Server, source_id: str, target_url: str, *arguments: str, key: str = ""
    ) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="crossdock-listen-"))
        self._said: dict[str, str] = {}
        command = [*COMMAND, "hooks", "listen", "--source", source_id, "--to", target_url, *arguments]
        environ = {**server.environ, "PYTHONUNBUFFERED": "1"}
        if key:
            environ["CROSSDOCK_OPERATOR_KEY"] = key
        with self._file("stdout").open("wb") as stdout, self._file("stderr").open("wb") as stderr:
            self._process = subprocess.Popen(
                command, env=clean_environ(environ), stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr
            )

    def _file(self, name: str) -> Path:
        return self._directory / name

    @property
    def stdout(self) -> str:
        return self._said_on("stdout")

    @property
    def stderr(self) -> str:
        return self._said_on("stderr")

    def _said_on(self, name: str) -> str:
        return self._said[name] if name in self._said else self._file(name).read_text()

    @property
    def lines(self) -> list[str]:
        return self.stdout.splitlines()

    def interrupt(self) -> int:
        """Ctrl-C. The exit status."""
        self._process.send_signal(signal.SIGINT)
        return self._process.wait(10)

    def __enter__(self) -> Listen:
        try:
            wait_until(lambda: "Listening: " in self.stderr or self._process.poll() is not None)
            assert "Listening: " in self.stderr, self.stderr
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._said = {name: self._said_on(name) for name in ("stdout", "stderr")}
        shutil.rmtree(self._directory)


@dataclass(frozen=True)
class Sender:
    """A provider, and the source that it sends to."""

    server: Server
    source_id: str
    user_id: str

    def send(
        self,
        body: bytes = b'{"n": 1}',
        below: str = "",
        *,
        method: str = "POST",
        headers: Mapping[str, str] = {},
    ) -> str:
        """The event's id."""
        parts = urlsplit(self.server.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
        try:
            connection.request(method, f"/in/{self.source_id}{below}", body, dict(headers))
            answer = connection.getresponse()
            content = answer.read()
            assert answer.status == 200, content
        finally:
            connection.close()
        return str(json.loads(content)["event_id"])


def sender_of(server: Server) -> Sender:
    client = server.client()
    user = client.post("/v1/hooks/users", {"email": f"{uuid4().hex}@example.com", "name": "Ann"})
    wanted = {"name": "a source", "provider": "github", "user_id": user["user_id"]}
    source = client.post("/v1/hooks/sources", wanted)
    return Sender(server, source["source_id"], user["user_id"])


@pytest.fixture
def sender(embedded_server: Server) -> Sender:
    return sender_of(embedded_server)


@pytest.fixture
def target() -> Iterator[Target]:
    target = Target()
    target.start()
    yield target
    target.stop()


def printed(listen: Listen) -> list[tuple[str, ...]]:
    """Each line as id, method, path, bytes, status, and why there was no answer."""
    matches = [LOG_LINE.fullmatch(line) for line in listen.lines]
    assert None not in matches, listen.stdout
    return [match.groups("") for match in matches if match is not None]


# --- what arrives ----------------------------------------------------------------------------------

BODIES = {
    "none": b"",
    "text": '{"grüße": 1}\n'.encode(),
    "every byte there is": bytes(range(256)) * 4,
    "as large as one may be": b"x" * LARGEST,
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_body_arrives_byte_for_byte(sender: Sender, target: Target, body: bytes) -> None:
    with Listen(sender.server, sender.source_id, target.url) as listen:
        event_id = sender.send(body)
        wait_until(lambda: len(listen.lines) == 1)
    assert [got.body for got in target.got] == [body]
    assert printed(listen) == [(event_id, "POST", "/", f"{len(body):,}", "200", "")]


def test_method_path_query_and_headers_arrive_as_they_came_but_for_what_was_not_kept(
    sender: Sender, target: Target
) -> None:
    given = {
        "Content-Type": "application/json; charset=utf-8",
        "X-Hub-Signature-256": "sha256=abc",
        "webhook-id": "msg_1",
        "X-Text": "grüße".encode().decode("latin-1"),
        "Authorization": "Bearer secret-of-the-provider",
        "Expect": "nothing",
    }
    with Listen(sender.server, sender.source_id, f"{target.url}?own=1") as listen:
        sender.send(b"{}", "/orders/gr%C3%BC%C3%9Fe%20x?a=%2F&b", method="PUT", headers=given)
        wait_until(lambda: len(target.got) == 1 and len(listen.lines) == 1)
    [got] = target.got
    assert (got.method, got.path) == ("PUT", "/hook/orders/gr%C3%BC%C3%9Fe%20x?own=1&a=%2F&b")
    for name in ("Content-Type", "X-Hub-Signature-256", "webhook-id", "X-Text"):
        assert got.header(name) == given[name]
    assert got.header("Host") == f"127.0.0.1:{target.port}"
    assert (got.header("Authorization"), got.header("Expect")) == (None, None)
    assert "secret-of-the-provider" not in str(got.headers)


def test_many_events_over_all_lanes_arrive_once_each(sender: Sender, target: Target) -> None:
    with Listen(sender.server, sender.source_id, target.url) as listen:
        sent = [sender.send(b"%d" % n) for n in range(60)]
        wait_until(lambda: len(listen.lines) == len(sent), patience_seconds=20)
        time.sleep(0.3)  # for one too many
    assert sorted(line[0] for line in printed(listen)) == sorted(sent)
    assert sorted(int(got.body) for got in target.got) == list(range(60))


def test_what_came_before_it_listened_and_other_sources_are_not_heard(sender: Sender, target: Target) -> None:
    other = sender_of(sender.server)
    sender.send(b"before")
    with Listen(sender.server, sender.source_id, target.url) as listen:
        other.send(b"elsewhere")
        sender.send(b"now")
        wait_until(lambda: len(listen.lines) == 1)
    assert [got.body for got in target.got] == [b"now"]


def test_a_key_that_may_look_is_enough(sender: Sender, target: Target) -> None:
    wanted = {"user_id": sender.user_id, "name": "laptop", "permissions": "read"}
    key = sender.server.client().post("/v1/hooks/keys", wanted)["api_key"]
    with Listen(sender.server, sender.source_id, target.url, key=key) as listen:
        sender.send()
        wait_until(lambda: len(listen.lines) == 1)
    assert len(target.got) == 1


# --- what is printed -------------------------------------------------------------------------------


def test_a_port_that_refuses_is_shown_and_not_the_end(sender: Sender, target: Target) -> None:
    with Listen(sender.server, sender.source_id, target.url) as listen:
        target.stop()
        first = sender.send()
        wait_until(lambda: len(listen.lines) == 1)
        target.start()
        second = sender.send()
        wait_until(lambda: len(listen.lines) == 2)
        target.status = 500
        third = sender.send(below="/a")
        wait_until(lambda: len(listen.lines) == 3)
        assert listen.interrupt() == 0
    assert printed(listen) == [
        (first, "POST", "/", "8", "", "nothing listens there"),
        (second, "POST", "/", "8", "200", ""),
        (third, "POST", "/a", "8", "500", ""),
    ]
    assert "3 events: 1 answered with 2xx, 1 with something else, 1 not at all." in listen.stderr


def test_ctrl_c_ends_it_at_once_with_what_it_did(sender: Sender, target: Target) -> None:
    with Listen(sender.server, sender.source_id, target.url) as listen:
        assert listen.interrupt() == 0
    assert listen.stdout == ""
    first, *_, last = listen.stderr.splitlines()
    assert first == f"Listening: {sender.source_id} -> {target.url}. Ctrl-C stops it."
    assert last == "0 events: 0 answered with 2xx, 0 with something else, 0 not at all."


def test_only_events_below_a_path_if_one_is_given(sender: Sender, target: Target) -> None:
    with Listen(sender.server, sender.source_id, target.url, "--path", "/orders") as listen:
        sender.send(below="/orders-old")
        sender.send(below="/customers")
        sender.send(below="/orders/1")
        wait_until(lambda: len(listen.lines) == 1)
    assert [got.path for got in target.got] == ["/hook/orders/1"]


def test_only_what_went_well_is_printed_if_that_is_wanted_and_all_is_counted(
    sender: Sender, target: Target
) -> None:
    target.status = 500
    with Listen(sender.server, sender.source_id, target.url, "--status-ok-only") as listen:
        sender.send()
        wait_until(lambda: len(target.got) == 1)
        target.status = 204
        good = sender.send()
        wait_until(lambda: len(listen.lines) == 1)
        assert listen.interrupt() == 0
    assert [line[0] for line in printed(listen)] == [good]
    assert "2 events: 1 answered with 2xx, 1 with something else" in listen.stderr


def test_with_json_every_event_is_a_line_of_it(sender: Sender, target: Target) -> None:
    with Listen(sender.server, sender.source_id, target.url, "--json") as listen:
        first = sender.send(below="/a")
        wait_until(lambda: len(listen.lines) == 1)
        target.stop()
        second = sender.send()
        wait_until(lambda: len(listen.lines) == 2)
    told = [json.loads(line) for line in listen.lines]
    assert [(each["event_id"], each["path"], each["status"], each["error"]) for each in told] == [
        (first, "/a", 200, None),
        (second, "", None, "nothing listens there"),
    ]


def test_what_a_sender_put_into_a_path_can_not_steer_the_terminal(sender: Sender, target: Target) -> None:
    with Listen(sender.server, sender.source_id, target.url) as listen:
        sender.send(below="/%1B%5B2J%0Afake")
        wait_until(lambda: len(listen.lines) == 1)
    assert "\x1b" not in listen.stdout
    assert "/\\x1b[2J\\nfake" in listen.stdout


# --- when it can't go on ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "exit_code", "said"),
    [
        (
            ["--source", "src_0000000000000000", "--to", "http://127.0.0.1:1"],
            ExitCode.NOT_FOUND,
            "source_not_found",
        ),
        (
            ["--source", "src_0000000000000000", "--to", "localhost:3000"],
            ExitCode.REFUSED_INPUT,
            "is not a URL",
        ),
        (["--to", "http://127.0.0.1:1"], ExitCode.REFUSED_INPUT, "--source"),
        (
            ["--source", "s", "--to", "http://127.0.0.1:1", "--key", "fh_" + "a" * 43],
            ExitCode.NO_ACCESS,
            "invalid_credential",
        ),
        (
            ["--source", "s", "--to", "http://127.0.0.1:1", "--url", f"http://127.0.0.1:{free_port()}"],
            ExitCode.UNAVAILABLE,
            "nothing listens there",
        ),
    ],
)
def test_what_trying_again_would_not_mend_ends_it_with_the_reason(
    embedded_server: Server, arguments: list[str], exit_code: ExitCode, said: str
) -> None:
    done = run_command("hooks", "listen", *arguments, environ=embedded_server.environ)
    assert (done.returncode, done.stdout) == (exit_code, "")
    assert said in done.stderr


def test_a_deleted_source_ends_it(sender: Sender, target: Target) -> None:
    with Listen(sender.server, sender.source_id, target.url) as listen:
        sender.server.client().delete(f"/v1/hooks/sources/{sender.source_id}")
        wait_until(lambda: "source_not_found" in listen.stderr, patience_seconds=20)


@pytest.mark.parametrize("way", ["stop", "kill"])
def test_a_server_that_comes_back_is_found_again_and_nothing_left_out_or_sent_twice(
    target: Target, way: str
) -> None:
    with Server("--port", str(lasting_port()), "--workers", "2") as server:
        sender = sender_of(server)
        with Listen(server, sender.source_id, target.url) as listen:
            sent = [sender.send(b"%d" % n) for n in range(5)]
            wait_until(lambda: len(listen.lines) == 5)
            if way == "stop":
                began_at = time.monotonic()
                assert server.stop() == 0
                assert time.monotonic() - began_at < 8, "an open stream held up the stop"
            else:
                server.kill()
            wait_until(lambda: "Trying again." in listen.stderr)
            server.start()
            sent += [sender.send(b"%d" % n) for n in range(5, 10)]
            wait_until(lambda: "Listening again." in listen.stderr, patience_seconds=60)
            sent += [sender.send(b"%d" % n) for n in range(10, 15)]
            wait_until(lambda: len(listen.lines) >= len(sent), patience_seconds=20)
            time.sleep(0.3)  # for one too many
            assert listen.interrupt() == 0
        assert sorted(line[0] for line in printed(listen)) == sorted(sent)
        assert sorted(int(got.body) for got in target.got) == list(range(15))
