"""The commands' HTTP client against a real server on a port of its own."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import click
import pytest
from click.testing import CliRunner
from tests.support.ports import free_port

from crossdock.kit.errors import Conflict, CrossdockError, FieldProblem, InvalidInput, NotFound, Unavailable
from crossdock.terminal.client import ApiClient, path
from crossdock.terminal.failures import CommandFailed, ExitCode, told_to_the_user


@dataclass
class Served:
    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    requests: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    by_path: dict[str, object] = field(default_factory=dict)
    url: str = ""


@pytest.fixture
def served() -> Iterator[Served]:
    state = Served()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            state.requests.append((self.command, self.path, dict(self.headers), content))
            body = json.dumps(state.by_path[self.path]).encode() if state.by_path else state.body
            self.send_response(state.status)
            for name, value in {"Content-Length": str(len(body)), **state.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    yield state
    server.shutdown()
    server.server_close()
    thread.join()


def failure(served: Served) -> CommandFailed:
    with pytest.raises(CommandFailed) as caught:
        ApiClient(served.url, "k").get("/v1/x")
    return caught.value


def test_a_call_carries_the_key_and_json(served: Served) -> None:
    served.body = b'{"id": 1}'
    answer = ApiClient(served.url + "/base/", "k1").post("/v1/x", {"a": "\u00e9"}, idempotency_key="once")
    assert answer == {"id": 1}
    ((method, target, headers, content),) = served.requests
    assert (method, target, json.loads(content)) == ("POST", "/base/v1/x", {"a": "\u00e9"})
    assert headers["Authorization"] == "Bearer k1"
    assert headers["Content-Type"] == "application/json"
    assert headers["Idempotency-Key"] == "once"


def test_without_a_key_none_is_sent(served: Served) -> None:
    ApiClient(served.url, None).get("/v1/x")
    assert "Authorization" not in served.requests[0][2]


def test_query_values_are_escaped_and_those_not_given_left_out(served: Served) -> None:
    ApiClient(served.url, "k").get("/v1/x", {"status": "a b&c", "limit": 5, "cursor": None})
    assert served.requests[0][1] == "/v1/x?status=a+b%26c&limit=5"


def test_a_path_keeps_each_segment_whole() -> None:
    assert path("v1", "devices", "AA:BB/../keys?x") == "/v1/devices/AA%3ABB%2F..%2Fkeys%3Fx"


def test_an_answer_without_a_body_is_none(served: Served) -> None:
    served.status, served.body = 204, b""
    assert ApiClient(served.url, "k").delete("/v1/x") is None


def test_a_list_is_read_page_after_page(served: Served) -> None:
    served.by_path = {
        "/v1/x?limit=2": {"data": [{"n": 1}, {"n": 2}], "next_cursor": "c1"},
        "/v1/x?limit=2&cursor=c1": {"data": [], "next_cursor": "c2"},
        "/v1/x?limit=2&cursor=c2": {"data": [{"n": 3}], "next_cursor": None},
    }
    entries = ApiClient(served.url, "k").pages("/v1/x", {"limit": 2})
    assert [entry["n"] for entry in entries] == [1, 2, 3]


def test_a_download_is_written_as_it_comes(served: Served) -> None:
    served.body = bytes(range(256)) * 1000
    into = io.BytesIO()
    assert ApiClient(served.url, "k").download("/v1/x", into, accept="text/csv") == 256_000
    assert into.getvalue() == served.body
    assert served.requests[0][2]["Accept"] == "text/csv"


def test_a_problem_becomes_its_detail_its_code_and_its_fields(served: Served) -> None:
    served.status = 422
    served.body = json.dumps(
        {
            "type": "about:blank",
            "status": 422,
            "code": "invalid_input",
            "detail": "Some fields are wrong.",
            "errors": [
                {"field": "readings[3].sensors.temp", "code": "not_finite", "detail": "Send a number."}
            ],
        }
    ).encode()
    failed = failure(served)
    assert failed.message == (
        "Some fields are wrong. (invalid_input)\n  readings[3].sensors.temp: Send a number."
    )
    assert (failed.code, failed.status) == ("invalid_input", 422)


@pytest.mark.parametrize(
    ("status", "exit_code"),
    [
        (400, ExitCode.REFUSED_INPUT),
        (422, ExitCode.REFUSED_INPUT),
        (401, ExitCode.NO_ACCESS),
        (403, ExitCode.NO_ACCESS),
        (404, ExitCode.NOT_FOUND),
        (409, ExitCode.CONFLICT),
        (429, ExitCode.UNAVAILABLE),
        (503, ExitCode.UNAVAILABLE),
        (500, ExitCode.FAILED),
        (418, ExitCode.FAILED),
    ],
)
def test_each_status_has_its_exit_code(served: Served, status: int, exit_code: ExitCode) -> None:
    served.status = status
    assert failure(served).exit_code == exit_code


@pytest.mark.parametrize("body", [b"<html>Bad Gateway</html>", b"", b"[]", b'{"detail": 3}', b"\xff\xfe"])
def test_an_error_of_something_in_between_is_told_by_its_status(served: Served, body: bytes) -> None:
    served.status, served.body = 502, body
    assert failure(served).message == "The server answered 502 Bad Gateway."


def test_a_redirect_is_not_followed_with_the_key(served: Served) -> None:
    served.status, served.headers = 301, {"Location": "https://elsewhere.example/"}
    assert "https://elsewhere.example/" in failure(served).message
    assert len(served.requests) == 1


@pytest.mark.parametrize("body", [b"<html>", b"\xff"])
def test_an_answer_that_is_no_json_says_so(served: Served, body: bytes) -> None:
    served.body = body
    assert "something other than JSON" in failure(served).message


def test_a_server_that_is_not_there_is_told_with_how_to_start_it() -> None:
    with pytest.raises(CommandFailed) as caught:
        ApiClient(f"http://127.0.0.1:{free_port()}", "k").get("/v1/x")
    assert "crossdock up" in caught.value.message
    assert caught.value.exit_code == ExitCode.UNAVAILABLE


def test_an_answer_cut_short_is_told(served: Served) -> None:
    served.headers = {"Content-Length": "1000"}
    failed = failure(served)
    assert "broke off its answer" in failed.message
    assert failed.exit_code == ExitCode.UNAVAILABLE


@pytest.mark.parametrize("url", ["", "localhost:8420", "ftp://x", "http://", "/v1"])
def test_a_base_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(CommandFailed) as caught:
        ApiClient(url, "k")
    assert caught.value.exit_code == ExitCode.REFUSED_INPUT


def test_a_command_that_fails_prints_one_line_and_leaves_with_the_exit_code(served: Served) -> None:
    served.status = 404
    served.body = b'{"code": "device_not_found", "detail": "No such device."}'

    @click.command()
    def show() -> None:
        ApiClient(served.url, "k").get("/v1/devices/x")

    result = CliRunner().invoke(show)
    assert (result.exit_code, result.stdout) == (4, "")
    assert result.stderr == "Error: No such device. (device_not_found)\n"


@pytest.mark.parametrize(
    ("error", "exit_code", "message"),
    [
        (NotFound("device_not_found", "No such device."), 4, "No such device."),
        (Conflict("busy", "Another is at it."), 5, "Another is at it."),
        (
            Unavailable("database_away", "The database is away.", internal="secret detail"),
            6,
            "The database is away.",
        ),
        (InvalidInput("Wrong.", FieldProblem("port", "range", "1 to 9.")), 2, "Wrong.\n  port: 1 to 9."),
        (CrossdockError("odd", "Odd."), 1, "Odd."),
    ],
)
def test_a_domain_error_in_a_command_becomes_its_message_and_exit_code(
    error: CrossdockError, exit_code: int, message: str
) -> None:
    with pytest.raises(CommandFailed) as caught, told_to_the_user():
        raise error
    assert (caught.value.exit_code, caught.value.message) == (exit_code, message)
