"""What becomes of a message, over both stores; the broker itself is in tests/contract and tests/e2e."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.devices import Served, new_hardware_id, reading

from crossdock.devices.mqtt import MqttReadings, topic_hardware_id
from crossdock.engines.mqtt.subscriber import Received
from crossdock.kit.backoff import Backoff

AT_ONCE = Backoff(base_seconds=0, cap_seconds=0)


async def publish(served: Served, topic_id: str, payload: bytes) -> tuple[str, dict[str, Any]]:
    handler = MqttReadings(served.node.services.ingestion)
    reply = await handler.handle(Received(f"crossdock/{topic_id}/readings", payload))
    return reply.topic, json.loads(reply.payload)


def sent(hardware_id: str, *readings: object) -> bytes:
    return json.dumps({"hardware_id": hardware_id, "readings": list(readings)}).encode()


async def test_a_batch_is_acknowledged_once_and_then_a_duplicate_over_http_too(shared: Served) -> None:
    hardware_id = await shared.device()
    one = reading(shared.now_ms, "mqtt-1" + hardware_id)
    topic, verdict = await publish(shared, hardware_id, sent(hardware_id, one))
    assert topic == f"crossdock/{hardware_id}/results"
    assert verdict == {"acknowledged": [one["batch_id"]], "duplicates": [], "rejected": []}
    _, again = await publish(shared, hardware_id, sent(hardware_id, one))
    assert again == {"acknowledged": [], "duplicates": [one["batch_id"]], "rejected": []}
    assert await shared.verdict(hardware_id, one) == again
    [row] = await shared.rows(hardware_id)
    assert row["batch_id"] == one["batch_id"]


async def test_a_bad_reading_is_rejected_alone(shared: Served) -> None:
    hardware_id = await shared.device()
    good, bad = reading(shared.now_ms), reading(3_600_000)
    _, verdict = await publish(shared, hardware_id, sent(hardware_id, good, bad))
    assert verdict["acknowledged"] == [good["batch_id"]]
    assert [each["code"] for each in verdict["rejected"]] == ["timestamp_out_of_range"]


@pytest.mark.parametrize(
    ("payload", "status", "code"),
    [
        (b"", 400, "body_required"),
        (b"{", 400, "malformed_json"),
        (b"\xff\xfe", 400, "malformed_json"),
        (b"[]", 422, "invalid_input"),
        (b'{"hardware_id": "aa", "readings": []}', 422, "invalid_input"),
        (b" " * (1024 * 1024 + 1), 413, "body_too_large"),
    ],
)
async def test_what_can_not_be_read_is_told_as_over_http(
    shared: Served, payload: bytes, status: int, code: str
) -> None:
    _, problem = await publish(shared, "02:00:00:00:00:01", payload)
    assert (problem["status"], problem["code"]) == (status, code)


async def test_an_unknown_device_is_told_to_register(shared: Served) -> None:
    hardware_id = new_hardware_id()
    _, problem = await publish(shared, hardware_id, sent(hardware_id, reading(shared.now_ms)))
    assert (problem["status"], problem["code"]) == (404, "device_not_registered")


async def test_a_device_can_not_speak_for_another(shared: Served) -> None:
    mine, others = await shared.device(), await shared.device()
    topic, problem = await publish(shared, mine, sent(others, reading(shared.now_ms)))
    assert topic == f"crossdock/{mine}/results"
    assert problem["status"] == 422
    assert [each["code"] for each in problem["errors"]] == ["topic_mismatch"]
    assert await shared.rows(others) == []


async def test_readings_wait_until_the_store_is_back(served: Served) -> None:
    hardware_id = await served.device()
    one = reading(served.now_ms)
    await served.verdict(hardware_id, one)
    handler = MqttReadings(Flaky(served.node.services.ingestion, failures=3), AT_ONCE)  # type: ignore[arg-type]
    reply = await handler.handle(Received(f"crossdock/{hardware_id}/readings", sent(hardware_id, one)))
    assert json.loads(reply.payload)["duplicates"] == [one["batch_id"]]


class Flaky:
    """Ingestion whose store is away for a few calls."""

    def __init__(self, ingestion: Any, failures: int) -> None:
        self._ingestion = ingestion
        self._failures = failures

    async def ingest(self, *arguments: Any) -> Any:
        if self._failures:
            self._failures -= 1
            raise ConnectionRefusedError
        return await self._ingestion.ingest(*arguments)


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("crossdock/AA:BB:CC:DD:EE:FF/readings", "AA:BB:CC:DD:EE:FF"),
        ("crossdock/whatever/readings", "whatever"),
        ("crossdock//readings", ""),
        ("crossdock/a/b/readings", ""),
        ("other/a/readings", ""),
    ],
)
def test_the_topic_says_who_sends(topic: str, expected: str) -> None:
    assert topic_hardware_id(topic) == expected
