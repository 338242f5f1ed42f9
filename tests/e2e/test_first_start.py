"""The life of `crossdock up`: its first start, its next, what keeps it from starting, and its end."""

from __future__ import annotations

import re
import signal
import socket
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.support.devices import READINGS, REGISTER, reading, registration
from tests.support.server import Server, command, is_alive, run_command
from tests.support.waiting import wait_until

from crossdock.engines.sql.postmaster import read_pid_file
from crossdock.terminal.failures import CommandFailed, ExitCode

DEVICE = "AA:BB:CC:DD:EE:FF"
KEY = re.compile(r"\bdk_[A-Za-z0-9]{43}\b")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Started where nothing was."""
    with Server() as server:
        yield server


# --- starting --------------------------------------------------------------------------------------


def test_the_operator_key_is_printed_on_the_first_start_and_never_again(server: Server) -> None:
    assert KEY.findall(server.said) == [server.operator_key]
    assert str(server.data_dir / "secrets" / "operator_key") in server.stdout
    assert server.stop() == 0
    assert KEY.findall(server.said) == [server.operator_key]
    server.start()
    assert KEY.findall(server.said) == []
    assert server.client().get("/v1/devices") == {"data": [], "next_cursor": None}


def test_what_is_secret_is_for_this_account_only(server: Server) -> None:
    directory = server.data_dir / "secrets"
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir() if path.is_file()}
    assert {"operator_key", "secret_key", "devices_key_pepper"} <= modes.keys()
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


@pytest.mark.parametrize(("path", "status"), [("/healthz", "ok"), ("/readyz", "ready")])
def test_it_says_that_it_is_up_and_that_it_can_serve(server: Server, path: str, status: str) -> None:
    with urlopen(server.url + path) as answer:
        assert (answer.status, msgspec.json.decode(answer.read())) == (200, {"status": status})


def test_its_metrics_can_be_read_by_prometheus(server: Server) -> None:
    with urlopen(server.url + "/metrics") as answer:
        assert answer.headers["content-type"].startswith("text/plain; version=")
        families = {family.name: family for family in text_string_to_metric_families(answer.read().decode())}
    assert any(name.startswith("crossdock_") for name in families)
    assert all(family.documentation for family in families.values())


def test_its_api_describes_itself(server: Server) -> None:
    with urlopen(server.url + "/openapi.json") as answer:
        description = msgspec.json.decode(answer.read())
    assert description["openapi"].startswith("3.")
    assert {REGISTER, READINGS, "/v1/devices", "/v1/devices/keys"} <= description["paths"].keys()
    with urlopen(server.url + "/docs") as page:
        assert page.headers["content-type"].startswith("text/html")


# --- not starting ----------------------------------------------------------------------------------

WRONG_SETTINGS: dict[str, tuple[Sequence[str], dict[str, str], str]] = {
    "a slice that there is not": (["--slices", "devices,pigeons"], {}, "not 'devices,pigeons'."),
    "no lane": (["--workers", "0"], {}, "--workers must be at least 1, not '0'."),
    "a port that there is not": (["--port", "65536"], {}, "--port must be at most 65535, not '65536'."),
    "a store that there is not": ([], {"CROSSDOCK_ITEMS": "mongodb"}, "CROSSDOCK_ITEMS must be postgres or"),
    "another database": (
        [],
        {"CROSSDOCK_DATABASE_URL": "mysql://crossdock:hush@db/x"},
        "CROSSDOCK_DATABASE_URL must be a URL that starts with postgresql://",
    ),
    "a secret that is none": (
        [],
        {"CROSSDOCK_SECRET_KEY": "hush"},
        "CROSSDOCK_SECRET_KEY must be at least 16 random bytes in hex or base64",
    ),
    "an operator key of another form": (
        [],
        {"CROSSDOCK_OPERATOR_KEY": "hush"},
        'CROSSDOCK_OPERATOR_KEY must be "dk_" and',
    ),
}


@pytest.mark.parametrize(("arguments", "environ", "said"), WRONG_SETTINGS.values(), ids=WRONG_SETTINGS.keys())
def test_a_wrong_setting_is_named_before_anything_is_done(
    tmp_path: Path, arguments: Sequence[str], environ: dict[str, str], said: str
) -> None:
    done = run_command("up", "--data-dir", str(tmp_path / "data"), *arguments, environ=environ)
    check_refusal(done.returncode, done.stdout, done.stderr, ExitCode.REFUSED_INPUT, said)
    assert "hush" not in done.stderr
    assert not (tmp_path / "data").exists()


def test_all_wrong_settings_are_told_at_once(tmp_path: Path) -> None:
    environ = {"CROSSDOCK_PORT": "x", "CROSSDOCK_SLICES": "y", "CROSSDOCK_DATA_DIR": str(tmp_path / "data")}
    done = command("up", "--workers", "0", environ=environ)
    assert done.exit_code == ExitCode.REFUSED_INPUT
    named = [line.removeprefix("Error: ").split()[0] for line in done.stderr.splitlines()]
    assert sorted(named) == ["--workers", "CROSSDOCK_PORT", "CROSSDOCK_SLICES"]


def test_a_port_that_is_taken_is_told_and_the_database_stopped_again(server: Server) -> None:
    port = server.url.rpartition(":")[2]
    second = Server("--port", port)
    second.launch()
    status = second.process.wait(30)
    logged, _, error = second.stderr.partition("Error: ")
    cluster = read_pid_file(second.data_dir / "postgres")
    said = second.stdout
    second.close()
    assert all(msgspec.json.decode(line) for line in logged.splitlines())
    wanted = f"Port {port} on 127.0.0.1 is taken by another program. Stop it, or choose one with --port."
    check_refusal(status, said, "Error: " + error, ExitCode.CONFLICT, wanted)
    assert cluster is None


def test_a_data_directory_that_is_in_use_is_told_with_the_process_that_has_it(server: Server) -> None:
    done = run_command("up", "--port", "0", "--data-dir", str(server.data_dir))
    said = f"is in use by the server with process {server.process.pid}. Stop it, or name another"
    check_refusal(done.returncode, done.stdout, done.stderr, ExitCode.CONFLICT, said)


def test_a_database_that_is_away_is_told_without_its_password(tmp_path: Path) -> None:
    environ = {"CROSSDOCK_DATABASE_URL": "postgresql://crossdock:hush@127.0.0.1:1/crossdock"}
    done = run_command("up", "--data-dir", str(tmp_path / "data"), environ=environ)
    said = "Check that it runs and that CROSSDOCK_DATABASE_URL names its host, user, password and database."
    check_refusal(done.returncode, done.stdout, done.stderr, ExitCode.FAILED, said)
    assert "hush" not in done.stderr


def check_refusal(status: int, stdout: str, stderr: str, wanted: ExitCode, said: str) -> None:
    """One paragraph, and nothing of how we came to it."""
    assert (status, stdout) == (wanted, "")
    assert stderr.startswith("Error: ")
    assert said in stderr
    assert "Traceback" not in stderr
    assert "\n\n" not in stderr


# --- stopping --------------------------------------------------------------------------------------


class Writer(threading.Thread):
    """Sends reading after reading until the server is gone, and keeps those that it was told are stored."""

    def __init__(self, server: Server, key: str) -> None:
        super().__init__()
        self._sensor = server.client(key)
        self.acknowledged: list[dict[str, Any]] = []
        self.failure: CommandFailed | None = None

    def run(self) -> None:
        while self.failure is None:
            sent = reading(int(time.time() * 1000))
            try:
                verdict = self._sensor.post(READINGS, {"hardware_id": DEVICE, "readings": [sent]})
            except CommandFailed as failure:
                self.failure = failure
            else:
                assert verdict["acknowledged"] == [sent["batch_id"]]
                self.acknowledged.append(sent)


def test_sigterm_finishes_what_is_in_flight_and_leaves_nothing_running() -> None:
    with Server("--workers", "2") as server:
        key = server.client().post("/v1/devices/keys", {})["api_key"]
        sensor = server.client(key)
        sensor.post(REGISTER, registration(DEVICE))
        writers = [Writer(server, key) for _ in range(3)]
        for writer in writers:
            writer.start()
        sent = reading(int(time.time() * 1000))
        half_sent = HalfSent(server.url, key, {"hardware_id": DEVICE, "readings": [sent]})
        wait_until(lambda: all(writer.acknowledged for writer in writers))
        running = processes_below(server)
        assert len(running) == 4, "two lanes, the worker and PostgreSQL"

        server.process.send_signal(signal.SIGTERM)
        # The lane without a request is gone; the other one waits.
        wait_until(lambda: len(server.children("serving lane")) == 1)
        status, verdict = half_sent.finish()
        assert (status, verdict["acknowledged"]) == (200, [sent["batch_id"]])
        for writer in writers:
            writer.join()
        assert server.process.wait(30) == 0
        assert [pid for pid in running if is_alive(pid)] == []
        for writer in writers:
            assert writer.failure is not None
            assert writer.failure.exit_code == ExitCode.UNAVAILABLE, writer.failure

        server.start()
        stored = {
            each["batch_id"]
            for each in server.client().pages(f"/v1/devices/{DEVICE}/readings", {"limit": 200})
        }
        told = {each["batch_id"] for writer in writers for each in writer.acknowledged}
        assert told | {sent["batch_id"]} <= stored


class HalfSent:
    """A request that the server has begun to work on, and whose second half is still to come."""

    def __init__(self, url: str, key: str, body: object) -> None:
        host, _, port = url.removeprefix("http://").partition(":")
        content = msgspec.json.encode(body)
        self._rest = content[len(content) // 2 :]
        self._connection = socket.create_connection((host, int(port)), timeout=10)
        head = (
            f"POST {READINGS} HTTP/1.1\r\nHost: {host}\r\nX-API-Key: {key}\r\n"
            f"Content-Length: {len(content)}\r\nExpect: 100-continue\r\n\r\n"
        )
        self._connection.sendall(head.encode())
        # It asks for the body once the key was found good.
        assert self._connection.recv(65_536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        self._connection.sendall(content[: len(content) // 2])

    def finish(self) -> tuple[int, Any]:
        self._connection.sendall(self._rest)
        answer = b""
        while part := self._connection.recv(65_536):
            answer += part
        self._connection.close()
        head, _, content = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]), msgspec.json.decode(content)


def processes_below(server: Server) -> list[int]:
    """Its lanes, its worker, and PostgreSQL, which may be nobody's child."""
    postgres = read_pid_file(server.data_dir / "postgres")
    assert postgres is not None
    return [*server.children("crossdock.serving"), postgres.pid]
