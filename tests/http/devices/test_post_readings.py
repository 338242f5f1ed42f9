"""What a request of readings is answered, but for repeats (test_repeats.py)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.devices import (
    BOOT_ID,
    DAY_MS,
    DEVICES,
    READINGS,
    Served,
    new_batch_id,
    new_hardware_id,
    reading,
)

from crossdock.devices.model import REQUEST_BYTES_MAX
from crossdock.devices.store import DEVICES as DEVICES_TABLE
from crossdock.kit.clock import rfc3339

YEAR_1999_MS = 915_148_800_000


async def test_good_readings_are_acknowledged_by_batch_and_stored(shared: Served) -> None:
    hardware_id, first, second = await shared.device(), new_batch_id(), new_batch_id()
    sent = [
        reading(shared.now_ms - 2, first),
        reading(shared.now_ms - 1, second),
        reading(shared.now_ms, first, sensors={}, sensor_status={}),
    ]
    verdict = await shared.verdict(hardware_id, *sent)
    assert verdict == {"acknowledged": [first, second], "duplicates": [], "rejected": []}
    rows = await shared.rows(hardware_id)
    assert [{name: row[name] for name in sent[0]} for row in rows] == sent


async def test_a_hundred_readings_are_taken_and_101_refused_whole(shared: Served) -> None:
    hardware_id = await shared.device()
    sent = [reading(shared.now_ms - n) for n in range(101)]
    answer = await shared.send(hardware_id, *sent)
    assert (answer.status, answer.code, answer.fields) == (
        422,
        "invalid_input",
        [("readings", "wrong_length")],
    )
    assert await shared.rows(hardware_id) == []
    assert len((await shared.verdict(hardware_id, *sent[:100]))["acknowledged"]) == 100


# A change to a good reading, as a function of now, and the code that it is rejected with.
REJECTED: dict[str, tuple[dict[str, Any], str]] = {
    "status value": ({"sensor_status": {"temp": "great"}}, "invalid_reading"),
    "UUID version 1": ({"boot_id": "7c9e6679-7425-10de-944b-e07fc1f90ae7"}, "invalid_reading"),
    "257-character batch id": ({"batch_id": "x" * 257}, "invalid_reading"),
    "batch id with a space": ({"batch_id": "a b"}, "invalid_reading"),
    "batch id with #": ({"batch_id": "a#b"}, "invalid_reading"),
    "unknown field": ({"colour": "red"}, "invalid_reading"),
    "65 sensors": ({"sensors": {f"s{n}": 1 for n in range(65)}}, "invalid_reading"),
    "sensor name": ({"sensors": {"Temp C": 1}}, "invalid_reading"),
    "bool as value": ({"sensors": {"temp": True}}, "invalid_reading"),
    "text as value": ({"sensors": {"temp": "21.5"}}, "invalid_reading"),
    "NaN": ({"sensors": {"temp": float("nan")}}, "invalid_value"),
    "Infinity": ({"sensors": {"temp": float("inf")}}, "invalid_value"),
    "too large a number": ({"sensors": {"temp": 1e200}}, "invalid_value"),
    "U+0000 in the firmware version": ({"firmware_version": "1\0"}, "invalid_reading"),
    "U+0000 in a sensor name": ({"sensors": {"a\0": 1}}, "invalid_reading"),
    "U+0000 in the batch id": ({"batch_id": "a\0"}, "invalid_reading"),
    "year 1999": ({"timestamp_ms": YEAR_1999_MS}, "timestamp_out_of_range"),
}


@pytest.mark.parametrize(("changed", "code"), REJECTED.values(), ids=REJECTED.keys())
async def test_a_bad_reading_is_rejected_and_its_neighbours_are_stored(
    shared: Served, changed: dict[str, Any], code: str
) -> None:
    hardware_id, batch_id = await shared.device(), new_batch_id()
    good = [reading(shared.now_ms - n, batch_id) for n in (1, 2)]
    other = reading(shared.now_ms)
    bad = reading(shared.now_ms - 3, batch_id) | changed
    # Python's encoder writes NaN and Infinity as firmware does.
    body = json.dumps({"hardware_id": hardware_id, "readings": [good[0], bad, good[1], other]}).encode()
    client = shared.operator.with_key(await shared.any_key())
    answer = await client.request("POST", READINGS, body=body)
    assert answer.status == 200, answer
    verdict = answer.json()
    assert verdict["acknowledged"] == [batch_id, other["batch_id"]]
    [rejected] = verdict["rejected"]
    assert (rejected["index"], rejected["code"], rejected["batch_id"]) == (1, code, bad["batch_id"])
    assert rejected["detail"]
    times = [row["timestamp_ms"] for row in await shared.rows(hardware_id)]
    assert times == [shared.now_ms - 2, shared.now_ms - 1, shared.now_ms]


@pytest.mark.parametrize(
    ("shift_ms", "code"),
    [
        (DAY_MS + 60_000, "timestamp_out_of_range"),
        (DAY_MS + 1, "timestamp_out_of_range"),
        (DAY_MS, None),
        (-90 * DAY_MS + 1_000, None),
        (-90 * DAY_MS, "expired"),
        (-91 * DAY_MS, "expired"),
    ],
)
async def test_a_reading_too_far_ahead_or_too_old_is_rejected(
    shared: Served, shift_ms: int, code: str | None
) -> None:
    hardware_id = await shared.device()
    verdict = await shared.verdict(hardware_id, reading(shared.now_ms + shift_ms))
    assert [each["code"] for each in verdict["rejected"]] == ([] if code is None else [code])
    assert len(await shared.rows(hardware_id)) == (1 if code is None else 0)


async def test_1e999_is_a_bad_value_of_its_own_reading(shared: Served) -> None:
    hardware_id = await shared.device()
    body = json.dumps({"hardware_id": hardware_id, "readings": [reading(1), reading(shared.now_ms)]})
    body = body.replace("21.5", "1e999", 1)
    client = shared.operator.with_key(await shared.any_key())
    verdict = (await client.request("POST", READINGS, body=body.encode())).json()
    assert [(each["index"], each["code"]) for each in verdict["rejected"]] == [(0, "invalid_value")]
    assert len(verdict["acknowledged"]) == 1


async def test_of_one_batch_the_later_reading_of_the_same_millisecond_is_rejected(shared: Served) -> None:
    hardware_id, batch_id = await shared.device(), new_batch_id()
    sent = [reading(shared.now_ms, batch_id, sensors={"n": n}) for n in (1, 2)]
    verdict = await shared.verdict(hardware_id, *sent, reading(shared.now_ms))
    assert [(each["index"], each["code"]) for each in verdict["rejected"]] == [(1, "duplicate_timestamp")]
    assert len(verdict["acknowledged"]) == 2
    assert {"n": 2} not in [row["sensors"] for row in await shared.rows(hardware_id)]


async def test_a_reading_over_16_kb_is_rejected(shared: Served) -> None:
    hardware_id = await shared.device()
    # Nothing that a good reading may hold is that large, so an unknown field makes it so.
    large = reading(shared.now_ms, padding="x" * 17_000)
    verdict = await shared.verdict(hardware_id, large, reading(shared.now_ms))
    assert [each["index"] for each in verdict["rejected"]] == [0]
    assert len(verdict["acknowledged"]) == 1


async def test_the_largest_good_reading_is_stored(shared: Served) -> None:
    hardware_id = await shared.device()
    names = [f"{n:_>64}" for n in range(64)]
    sensors = dict.fromkeys(names, -1.2345678901234567e-100)
    sent = reading(
        shared.now_ms,
        new_batch_id().ljust(256, "x"),
        firmware_version="\N{GREEK SMALL LETTER BETA}" * 64,
        sensors=sensors,
        sensor_status=dict.fromkeys(names, "error"),
    )
    assert (await shared.verdict(hardware_id, sent))["rejected"] == []
    [row] = await shared.rows(hardware_id)
    assert row["sensors"] == sensors


@pytest.mark.parametrize(("count", "stored"), [(99, 99), (100, 0)])
async def test_a_batch_has_at_most_99_readings(shared: Served, count: int, stored: int) -> None:
    hardware_id, batch_id = await shared.device(), new_batch_id()
    sent = [reading(shared.now_ms - n, batch_id) for n in range(count)]
    verdict = await shared.verdict(hardware_id, *sent)
    assert verdict["acknowledged"] == ([batch_id] if stored else [])
    assert {each["code"] for each in verdict["rejected"]} == (set() if stored else {"batch_too_large"})
    assert len(verdict["rejected"]) == count - stored
    assert len(await shared.rows(hardware_id)) == stored


# --- the whole request -----------------------------------------------------------------------------


async def test_an_unknown_device_is_404(shared: Served) -> None:
    answer = await shared.send(new_hardware_id(), reading(shared.now_ms))
    assert (answer.status, answer.code) == (404, "device_not_registered")


async def test_a_device_registered_after_a_404_is_known_at_once_everywhere(shared: Served) -> None:
    hardware_id, other_node = new_hardware_id(), shared.another_node()
    key = await shared.any_key()
    for node in (shared.node, other_node):
        assert (await node.send(key, hardware_id, reading(shared.now_ms))).status == 404
    await shared.register(hardware_id)
    for node in (shared.node, other_node):
        assert (await node.send(key, hardware_id, reading(shared.now_ms))).status == 200


@pytest.mark.parametrize(
    "hardware_id", ["AA:BB:CC:DD:EE", "aa:bb:cc:dd:ee:ff", "AA-BB-CC-DD-EE-FF", "", 7, None]
)
async def test_a_malformed_hardware_id_is_422(shared: Served, hardware_id: object) -> None:
    client = shared.operator.with_key(await shared.any_key())
    body = {"hardware_id": hardware_id, "readings": [reading(shared.now_ms)]}
    answer = await client.post(READINGS, body)
    assert (answer.status, answer.code) == (422, "invalid_input")
    assert [field for field, _ in answer.fields] == ["hardware_id"]


async def test_no_readings_or_an_unknown_field_is_422(shared: Served) -> None:
    hardware_id = await shared.device()
    client = shared.operator.with_key(await shared.any_key())
    for body, problem in [
        ({"hardware_id": hardware_id, "readings": []}, ("readings", "wrong_length")),
        ({"hardware_id": hardware_id}, ("readings", "required")),
        ({"hardware_id": hardware_id, "readings": [{}], "x": 1}, ("x", "unknown_field")),
    ]:
        answer = await client.post(READINGS, body)
        assert (answer.status, answer.fields) == (422, [problem])


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b'{"hardware_id": "AA:BB:CC:DD:EE:FF", "readings": [}',
        b'{"hardware_id": "AA:BB:CC:DD:EE:FF", "readings": ["\xff"]}',
        b'{"hardware_id": "AA:BB:CC:DD:EE:FF", "readings": ["\\ud83d"]}',
        b"[" * 50_000,
    ],
)
async def test_what_is_no_json_is_400(shared: Served, raw: bytes) -> None:
    client = shared.operator.with_key(await shared.any_key())
    answer = await client.request("POST", READINGS, body=raw)
    assert (answer.status, answer.code) == (400, "malformed_json")


async def test_an_empty_body_is_400(shared: Served) -> None:
    answer = await shared.operator.with_key(await shared.any_key()).request("POST", READINGS)
    assert (answer.status, answer.code) == (400, "body_required")


async def test_too_large_a_body_is_413_announced_or_streamed(shared: Served) -> None:
    client = shared.operator.with_key(await shared.any_key())
    announced = await client.request(
        "POST", READINGS, headers={"content-length": str(REQUEST_BYTES_MAX + 1)}, body=b"{}"
    )
    streamed = await client.request("POST", READINGS, body=[b" " * 65_536] * 17)
    for answer in (announced, streamed):
        assert (answer.status, answer.code) == (413, "body_too_large")


async def test_a_body_of_exactly_the_limit_is_read(shared: Served) -> None:
    hardware_id = await shared.device()
    body = json.dumps({"hardware_id": hardware_id, "readings": [reading(shared.now_ms)]}).encode()
    client = shared.operator.with_key(await shared.any_key())
    answer = await client.request("POST", READINGS, body=body + b" " * (REQUEST_BYTES_MAX - len(body)))
    assert answer.status == 200


async def test_another_media_type_is_415_and_another_method_405(shared: Served) -> None:
    client = shared.operator.with_key(await shared.any_key())
    answer = await client.request("POST", READINGS, body=b"{}", headers={"content-type": "text/csv"})
    assert (answer.status, answer.code) == (415, "unsupported_media_type")
    answer = await client.get(READINGS)
    assert (answer.status, answer.code, answer.header("allow")) == (405, "method_not_allowed", "POST")


async def test_no_key_or_an_unknown_one_is_401(shared: Served) -> None:
    hardware_id = await shared.device()
    for key, code in [
        (None, "credential_required"),
        ("0" * 64, "invalid_credential"),
        ("x", "invalid_credential"),
    ]:
        answer = await shared.node.send(key, hardware_id, reading(shared.now_ms))
        assert (answer.status, answer.code) == (401, code)


async def test_a_key_bound_to_another_device_is_403(shared: Served) -> None:
    own, other = await shared.device(), await shared.device()
    _, key = await shared.key(own)
    assert (await shared.node.send(key, own, reading(shared.now_ms))).status == 200
    answer = await shared.node.send(key, other, reading(shared.now_ms))
    assert (answer.status, answer.code) == (403, "key_bound_to_other_device")
    assert await shared.rows(other) == []


async def test_a_device_key_may_not_manage(shared: Served) -> None:
    hardware_id = await shared.device()
    client = shared.operator.with_key(await shared.any_key())
    for method, path in [
        ("GET", ""),
        ("GET", "/keys"),
        ("POST", "/keys"),
        ("GET", f"/{hardware_id}"),
        ("PATCH", f"/{hardware_id}"),
        ("DELETE", f"/{hardware_id}"),
        ("GET", f"/{hardware_id}/readings"),
        ("GET", f"/{hardware_id}/readings/latest"),
        ("GET", f"/{hardware_id}/gaps?expected_seconds=1"),
    ]:
        answer = await client.request(method, DEVICES + path)
        assert (answer.status, answer.code) == (403, "permission_denied"), (method, path)


# --- what a request leaves beside its readings -----------------------------------------------------


async def test_activity_moves_at_most_once_a_minute_and_never_back(served: Served) -> None:
    hardware_id = await served.device()
    registered_ms = served.now_ms

    async def seen_after(seconds: float) -> object:
        served.clock.advance(seconds=seconds)
        await served.verdict(hardware_id, reading(served.now_ms))
        stored = await served.stored(DEVICES_TABLE, {"hardware_id": hardware_id})
        assert stored is not None
        assert stored["last_seen_at"] == stored["gsi1sk"]
        return stored["last_seen_at"]

    assert await seen_after(59) == rfc3339(registered_ms)
    assert await seen_after(1) == rfc3339(registered_ms + 60_000)
    assert await seen_after(59) == rfc3339(registered_ms + 60_000)
    served.clock.set_wall_clock(registered_ms - DAY_MS // 2)
    assert await seen_after(0) == rfc3339(registered_ms + 60_000)
    served.clock.set_wall_clock(registered_ms + 120_000)
    assert await seen_after(0) == rfc3339(registered_ms + 120_000)


async def test_a_request_of_nothing_but_bad_readings_is_activity_too(served: Served) -> None:
    hardware_id = await served.device()
    served.clock.advance(seconds=600)
    await served.verdict(hardware_id, "no reading")
    shown = await served.operator.get(f"{DEVICES}/{hardware_id}")
    assert shown.json()["last_seen_at"] == rfc3339(served.now_ms)


async def test_readings_keep_the_devices_name_of_their_time(served: Served) -> None:
    hardware_id = await served.device(friendly_name="old")
    key, other_node = await served.any_key(), served.another_node()
    for node in (served.node, other_node):
        await node.send(key, hardware_id, reading(served.now_ms))
    await served.operator.request("PATCH", f"{DEVICES}/{hardware_id}", json={"friendly_name": "new"})
    served.clock.advance(seconds=1)
    await served.verdict(hardware_id, reading(served.now_ms))
    served.clock.advance(seconds=5)
    await other_node.send(key, hardware_id, reading(served.now_ms))
    names = [row["friendly_name"] for row in await served.rows(hardware_id)]
    assert names == ["old", "old", "new", "new"]


async def test_without_retention_readings_have_no_expiration_and_any_age(shared: Served) -> None:
    hardware_id, node = await shared.device(), shared.another_node(retention_days=0)
    answer = await node.send(await shared.any_key(), hardware_id, reading(YEAR_1999_MS + 2 * 365 * DAY_MS))
    assert answer.json()["rejected"] == []
    [row] = await shared.rows(hardware_id)
    assert "expiration_time" not in row


async def test_a_boot_id_in_capitals_is_a_uuid_too(shared: Served) -> None:
    hardware_id = await shared.device()
    verdict = await shared.verdict(hardware_id, reading(shared.now_ms, boot_id=BOOT_ID.upper()))
    assert verdict["rejected"] == []
