"""`crossdock devices mqtt` beside a running server, against a real Mosquitto, killed (-9) on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.devices import reading, registration
from tests.support.engines import missing_engine
from tests.support.mosquitto import MEND, Mosquitto, find_mosquitto
from tests.support.mqtt_device import MqttDevice
from tests.support.server import COMMAND, Server, clean_environ, run_command
from tests.support.waiting import wait_until

DEVICE = "02:00:00:00:0A:01"
BATCHES = 60

pytestmark = pytest.mark.mosquitto


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as found:
        found.client().post("/v1/devices/register", registration(DEVICE))
        yield found


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    if find_mosquitto() is None:
        missing_engine("Mosquitto", MEND)
    with Mosquitto(tmp_path / "broker") as found:
        yield found


@contextmanager
def ingesting(
    server: Server, broker: Mosquitto, log: Path, client_id: str = "crossdock-test"
) -> Iterator[subprocess.Popen[bytes]]:
    """The command, ready; killed at the end unless it ended."""
    arguments = ("devices", "mqtt", "--broker", broker.url, "--client-id", client_id)
    with log.open("wb") as said:
        process = subprocess.Popen(
            [*COMMAND, *arguments], env=clean_environ(server.environ), stdout=said, stderr=said
        )
    try:
        wait_until(
            lambda: process.poll() is not None or b"takes readings" in log.read_bytes(), patience_seconds=30
        )
        assert process.poll() is None, log.read_text()
        yield process
    finally:
        process.kill()
        process.wait()


def publish(device: MqttDevice, *readings: Mapping[str, Any]) -> None:
    body = {"hardware_id": DEVICE, "readings": readings}
    device.publish(f"crossdock/{DEVICE}/readings", json.dumps(body).encode())


def stored(server: Server) -> list[str]:
    path = f"/v1/devices/{DEVICE}/readings"
    return sorted(each["batch_id"] for each in server.client().pages(path, {"limit": 200}))


def test_readings_published_are_stored_and_the_sender_is_told(
    server: Server, broker: Mosquitto, tmp_path: Path
) -> None:
    now_ms = int(time.time() * 1000)
    with (
        MqttDevice(broker, "crossdock/+/results") as device,
        ingesting(server, broker, tmp_path / "log") as it,
    ):
        publish(device, reading(now_ms, "told-1"), reading(3_600_000, "told-2"))
        topic, payload = device.hear()
        verdict = json.loads(payload)
        assert topic == f"crossdock/{DEVICE}/results"
        assert verdict["acknowledged"] == ["told-1"]
        assert [each["code"] for each in verdict["rejected"]] == ["timestamp_out_of_range"]
        it.send_signal(signal.SIGTERM)
        assert it.wait(15) == 0, (tmp_path / "log").read_text()
    assert "told-1" in stored(server)


def test_killed_again_and_again_it_loses_nothing_and_acknowledges_nothing_twice(
    server: Server, broker: Mosquitto, tmp_path: Path
) -> None:
    now_ms = int(time.time() * 1000)
    batch_ids = [f"kill-{number:03}" for number in range(BATCHES)]
    acknowledged: list[str] = []
    told: set[str] = set()
    with MqttDevice(broker, "crossdock/+/results") as device:
        for part in range(3):
            with ingesting(server, broker, tmp_path / "log") as process:
                for number in range(part * 20, part * 20 + 20):
                    publish(device, reading(now_ms + number, batch_ids[number]))
                os.kill(process.pid, signal.SIGKILL)
        with ingesting(server, broker, tmp_path / "log"):
            while told != set(batch_ids):
                verdict = json.loads(device.hear()[1])
                acknowledged += verdict["acknowledged"]
                told |= {*verdict["acknowledged"], *verdict["duplicates"]}
    assert len(acknowledged) == len(set(acknowledged)), "a batch was acknowledged twice"
    assert [each for each in stored(server) if each.startswith("kill-")] == batch_ids


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Missing option '--broker'"),
        (("--broker", "http://x"), "must be a URL like mqtt://host"),
        (("--broker", "mqtt://user:secret@host:port"), "must be a URL like mqtt://host"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(arguments: tuple[str, ...], said: str) -> None:
    result = run_command("devices", "mqtt", *arguments)
    assert result.returncode == 2
    assert said in result.stderr
    assert "secret" not in result.stderr
    assert "Traceback" not in result.stderr


def test_a_refused_login_ends_it_with_the_reason(server: Server, tmp_path: Path) -> None:
    if find_mosquitto() is None:
        missing_engine("Mosquitto", MEND)
    with Mosquitto(tmp_path / "closed", settings=("allow_anonymous false",)) as broker:
        result = run_command("devices", "mqtt", "--broker", broker.url, environ=server.environ)
    assert result.returncode == 1
    assert "The broker refuses the connection" in result.stderr
    assert "Traceback" not in result.stderr
