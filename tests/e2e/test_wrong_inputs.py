"""Every wrong input of the devices API, over HTTP to a real server: its status and its code, never a 500.

What else holds of each (neighbours are stored, fields are named) is in tests/http/devices.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from tests.support.devices import (
    DAY_MS,
    KEYS,
    READINGS,
    REGISTER,
    reading,
    registration,
)
from tests.support.server import Server
from tests.support.waiting import wait_until

from crossdock.devices.model import REQUEST_BYTES_MAX

DEVICE = "02:00:E2:E0:00:01"
UNKNOWN_DEVICE = "02:00:E2:E0:00:02"
UUID1 = "7c9e6679-7425-10de-944b-e07fc1f90ae7"
YEAR_1999_MS = 915_148_800_000
STORED_BATCH = "wrong-inputs-stored"


@dataclass(frozen=True)
class Sensor:
    """One connection, kept open; what is sent is in the test's hands to the byte."""

    connection: http.client.HTTPConnection
    key: str | None

    def post(self, path: str, body: bytes) -> tuple[int, Any]:
        headers = {"Content-Type": "application/json"}
        if self.key is not None:
            headers["X-API-Key"] = self.key
        self.connection.request("POST", path, body, headers)
        answer = self.connection.getresponse()
        content = json.loads(answer.read())
        if answer.status >= 400:
            assert answer.headers["content-type"] == "application/problem+json"
            assert {"type", "title", "detail"} <= content.keys()
        return answer.status, content

    def send(self, *readings: object, hardware_id: str = DEVICE) -> tuple[int, Any]:
        return self.post(READINGS, body(hardware_id=hardware_id, readings=list(readings)))


def body(**fields: object) -> bytes:
    """Python's encoder writes NaN as firmware does."""
    return json.dumps(fields).encode()


def now_ms() -> int:
    return int(time.time() * 1000)


def connected(server: Server, key: str | None) -> Sensor:
    return Sensor(http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=10), key)


@pytest.fixture(scope="module")
def sensor(embedded_server: Server) -> Iterator[Sensor]:
    """A registered device, which has sent a batch."""
    key = embedded_server.client().post(KEYS, {})["api_key"]
    sensor = connected(embedded_server, key)
    with closing(sensor.connection):
        assert sensor.post(REGISTER, body(**registration(DEVICE)))[0] == 201
        status, verdict = sensor.send(reading(now_ms(), STORED_BATCH))
        assert (status, verdict["acknowledged"]) == (200, [STORED_BATCH])
        yield sensor


# --- one reading -----------------------------------------------------------------------------------

# A change to a good reading, as a function of now, and the code that it is rejected with.
REJECTED: dict[str, tuple[Callable[[int], dict[str, Any]], str]] = {
    "another UUID version": (lambda now: {"boot_id": UUID1}, "invalid_reading"),
    "a status that there is not": (lambda now: {"sensor_status": {"temp": "great"}}, "invalid_reading"),
    "a batch id of 257 characters": (lambda now: {"batch_id": "x" * 257}, "invalid_reading"),
    "an unknown field": (lambda now: {"colour": "red"}, "invalid_reading"),
    "NaN": (lambda now: {"sensors": {"temp_c": float("nan")}}, "invalid_value"),
    "the year 1999": (lambda now: {"timestamp_ms": YEAR_1999_MS}, "timestamp_out_of_range"),
    "a day and a minute ahead": (
        lambda now: {"timestamp_ms": now + DAY_MS + 60_000},
        "timestamp_out_of_range",
    ),
    "past its retention": (lambda now: {"timestamp_ms": now - 91 * DAY_MS}, "expired"),
    "a known batch with other content": (
        lambda now: {"batch_id": STORED_BATCH, "sensors": {}},
        "batch_conflict",
    ),
}


@pytest.mark.parametrize(("changed", "code"), REJECTED.values(), ids=REJECTED.keys())
def test_a_wrong_reading_is_rejected_alone_with_its_code(
    sensor: Sensor, changed: Callable[[int], dict[str, Any]], code: str
) -> None:
    now = now_ms()
    good = reading(now)
    status, verdict = sensor.send(reading(now) | changed(now), good)
    assert (status, verdict["acknowledged"]) == (200, [good["batch_id"]])
    assert [(each["index"], each["code"]) for each in verdict["rejected"]] == [(0, code)]


def test_of_two_readings_of_the_same_millisecond_the_later_is_rejected(sensor: Sensor) -> None:
    twice = [reading(now_ms(), "wrong-inputs-twice")] * 2
    _, verdict = sensor.send(*twice)
    assert [(each["index"], each["code"]) for each in verdict["rejected"]] == [(1, "duplicate_timestamp")]


# --- a whole request -------------------------------------------------------------------------------

READING = reading(YEAR_1999_MS)
"""Whatever its own faults are, the request's come first."""

REFUSED: dict[str, tuple[str, bytes, int, str]] = {
    "a hardware id that is no MAC address": (
        READINGS,
        body(hardware_id="AA:BB:CC:DD:EE", readings=[READING]),
        422,
        "invalid_input",
    ),
    "101 readings": (
        READINGS,
        body(hardware_id=DEVICE, readings=[READING] * 101),
        422,
        "invalid_input",
    ),
    "an unknown field": (
        READINGS,
        body(hardware_id=DEVICE, readings=[READING], colour="red"),
        422,
        "invalid_input",
    ),
    "a device that is not registered": (
        READINGS,
        body(hardware_id=UNKNOWN_DEVICE, readings=[READING]),
        404,
        "device_not_registered",
    ),
    "a body over 1 MB": (READINGS, b" " * (REQUEST_BYTES_MAX + 1), 413, "body_too_large"),
    "broken JSON": (READINGS, b'{"hardware_id": ', 400, "malformed_json"),
    "no body": (READINGS, b"", 400, "body_required"),
    "a registration of no MAC address": (REGISTER, body(**registration("no MAC")), 422, "invalid_input"),
    "a registration with another UUID version": (
        REGISTER,
        body(**registration(DEVICE, boot_id=UUID1)),
        422,
        "invalid_input",
    ),
    "a registration with an unknown field": (
        REGISTER,
        body(**registration(DEVICE, colour="red")),
        422,
        "invalid_input",
    ),
    "a registration over 1 MB": (REGISTER, b" " * (REQUEST_BYTES_MAX + 1), 413, "body_too_large"),
    "a registration in broken JSON": (REGISTER, b"{", 400, "malformed_json"),
    "a key made by a device": (KEYS, b"{}", 403, "permission_denied"),
}


@pytest.mark.parametrize(("path", "raw", "status", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_a_wrong_request_is_refused_with_its_status_and_code(
    sensor: Sensor, path: str, raw: bytes, status: int, code: str
) -> None:
    answered, problem = sensor.post(path, raw)
    assert (answered, problem["status"], problem["code"]) == (status, status, code)
    assert sensor.send(reading(now_ms()))[0] == 200, "the connection is of no use any more"


def test_without_a_key_a_request_is_401(embedded_server: Server) -> None:
    nobody = connected(embedded_server, None)
    with closing(nobody.connection):
        status, problem = nobody.send(reading(now_ms()))
    assert (status, problem["code"]) == (401, "credential_required")


def test_a_revoked_key_is_refused_by_every_lane_within_five_seconds(embedded_server: Server) -> None:
    operator = embedded_server.client()
    key = operator.post(KEYS, {})
    sensors = [connected(embedded_server, key["api_key"]) for _ in range(2)]
    lanes = embedded_server.children("serving lane")
    for sensor, other in zip(sensors, lanes, strict=True):
        with asleep(other):
            assert sensor.send(reading(now_ms()), hardware_id=UNKNOWN_DEVICE)[0] == 404
    operator.post(f"{KEYS}/{key['key_id']}/revoke")
    revoked_at = time.monotonic()
    wait_until(lambda: all(sensor.send(reading(now_ms()))[0] == 401 for sensor in sensors))
    assert time.monotonic() - revoked_at < 5
    for sensor in sensors:
        sensor.connection.close()


@contextmanager
def asleep(lane: int) -> Iterator[None]:
    """Meanwhile new connections are another lane's."""
    os.kill(lane, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(lane, signal.SIGCONT)
