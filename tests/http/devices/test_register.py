from __future__ import annotations

from typing import Any

import pytest
from tests.support.asgi_client import Answer
from tests.support.devices import (
    BOOT_ID,
    DEVICES,
    REGISTER,
    Served,
    new_hardware_id,
    registration,
)

from crossdock.devices.store import DEVICES as TABLE
from crossdock.kit.clock import rfc3339
from crossdock.kit.ids import is_uuid4

OTHER_BOOT_ID = "0f8fad5b-d9cb-469f-a165-70867728950e"


async def post(shared: Served, body: object, key: str | None = None, **more: Any) -> Answer:
    client = shared.operator.with_key(await shared.any_key() if key is None else key)
    return await client.post(REGISTER, body, **more)


async def test_the_first_registration_is_201_with_the_record(shared: Served) -> None:
    hardware_id, now = new_hardware_id(), rfc3339(shared.now_ms)
    answer = await post(shared, registration(hardware_id, friendly_name="greenhouse"))
    assert answer.status == 201
    record = answer.json()
    assert is_uuid4(record.pop("confirmation_id"))
    assert record == {
        "hardware_id": hardware_id,
        "capabilities": {"sensors": ["bme280"], "features": {"tft_display": True}},
        "first_registered_at": now,
        "last_seen_at": now,
        "last_boot_id": BOOT_ID,
        "firmware_version": "1.0.16",
        "friendly_name": "greenhouse",
        "offline_after_seconds": 900,
        "status": "reporting",
    }


async def test_a_later_registration_is_200_keeps_identity_and_name_and_takes_the_rest(served: Served) -> None:
    hardware_id = new_hardware_id()
    first = (await post(served, registration(hardware_id))).json()
    await served.operator.request(
        "PATCH", f"{DEVICES}/{hardware_id}", json={"friendly_name": "the operator's"}
    )
    served.clock.advance(seconds=5)
    answer = await post(
        served,
        registration(
            hardware_id,
            boot_id=OTHER_BOOT_ID,
            firmware_version="2.0",
            capabilities={},
            friendly_name="the device's",
        ),
    )
    now = rfc3339(served.now_ms)
    assert answer.status == 200
    assert answer.json() == first | {
        "friendly_name": "the operator's",
        "last_boot_id": OTHER_BOOT_ID,
        "firmware_version": "2.0",
        "capabilities": {},
        "last_seen_at": now,
    }
    stored = await served.stored(TABLE, {"hardware_id": hardware_id})
    assert stored is not None
    assert (stored["last_seen_at"], stored["gsi1sk"]) == (now, now)
    assert stored["first_registered_at"] == first["first_registered_at"] != now


async def test_a_later_registration_names_a_device_that_has_no_name(shared: Served) -> None:
    hardware_id = await shared.device()
    answer = await shared.register(hardware_id, friendly_name="first name")
    assert (answer.status, answer.json()["friendly_name"]) == (200, "first name")
    again = await shared.register(hardware_id, friendly_name="second name")
    assert again.json()["friendly_name"] == "first name"


async def test_a_clock_that_went_back_does_not_move_last_seen_back(served: Served) -> None:
    hardware_id = await served.device()
    seen_at = rfc3339(served.now_ms)
    served.clock.set_wall_clock(served.now_ms - 3_600_000)
    answer = await post(served, registration(hardware_id, firmware_version="2.0"))
    assert (answer.status, answer.json()["last_seen_at"]) == (200, seen_at)
    assert answer.json()["firmware_version"] == "2.0"


WRONG: list[tuple[dict[str, Any], tuple[str, str]]] = [
    ({"hardware_id": "AA:BB:CC:DD:EE"}, ("hardware_id", "wrong_format")),
    ({"hardware_id": "aa:bb:cc:dd:ee:ff"}, ("hardware_id", "wrong_format")),
    ({"hardware_id": "AABBCCDDEEFF"}, ("hardware_id", "wrong_format")),
    ({"hardware_id": 7}, ("hardware_id", "wrong_type")),
    ({"boot_id": "7c9e6679-7425-10de-944b-e07fc1f90ae7"}, ("boot_id", "wrong_format")),
    ({"boot_id": "7c9e6679-7425-40de-744b-e07fc1f90ae7"}, ("boot_id", "wrong_format")),
    ({"boot_id": "x"}, ("boot_id", "wrong_format")),
    ({"firmware_version": ""}, ("firmware_version", "wrong_format")),
    ({"firmware_version": "x" * 65}, ("firmware_version", "wrong_format")),
    ({"friendly_name": ""}, ("friendly_name", "wrong_format")),
    ({"friendly_name": "x" * 129}, ("friendly_name", "wrong_format")),
    ({"friendly_name": "a\nb"}, ("friendly_name", "wrong_format")),
    ({"capabilities": []}, ("capabilities", "wrong_type")),
    ({"capabilities": None}, ("capabilities", "wrong_type")),
    ({"capabilities": {"x": "y" * 8192}}, ("capabilities", "too_large")),
    ({"capabilities": {"x": "a\0b"}}, ("capabilities.x", "nul_character")),
    ({"colour": "red"}, ("colour", "unknown_field")),
]


@pytest.mark.parametrize(("changed", "problem"), WRONG)
async def test_a_wrong_field_is_422_and_named(
    shared: Served, changed: dict[str, Any], problem: tuple[str, str]
) -> None:
    answer = await post(shared, registration(new_hardware_id()) | changed)
    assert (answer.status, answer.code) == (422, "invalid_input")
    assert answer.fields == [problem]


@pytest.mark.parametrize("name", ["hardware_id", "boot_id", "firmware_version", "capabilities"])
async def test_a_missing_field_is_422_and_named(shared: Served, name: str) -> None:
    body = registration(new_hardware_id())
    del body[name]
    answer = await post(shared, body)
    assert (answer.status, answer.fields) == (422, [(name, "required")])


@pytest.mark.parametrize(
    "capabilities", [{"x": 10**130}, {"": 1}, {"a": {"": []}}, {"n": [None, 1.5, True, "", [], {}]}]
)
async def test_odd_capabilities_are_stored_or_refused_but_no_failure_of_ours(
    shared: Served, capabilities: dict[str, Any]
) -> None:
    hardware_id = new_hardware_id()
    answer = await post(shared, registration(hardware_id, capabilities=capabilities))
    assert answer.status in (201, 422), answer
    if answer.status == 201:
        shown = await shared.operator.get(f"{DEVICES}/{hardware_id}")
        assert shown.json()["capabilities"] == capabilities


async def test_nested_too_deeply_is_422(shared: Served) -> None:
    deep: dict[str, Any] = {}
    for _ in range(40):
        deep = {"x": deep}
    answer = await post(shared, registration(new_hardware_id(), capabilities=deep))
    assert (answer.status, answer.code) == (422, "item_rejected")


async def test_broken_json_is_400(shared: Served) -> None:
    key = await shared.any_key()
    answer = await shared.operator.with_key(key).request("POST", REGISTER, body=b"{")
    assert (answer.status, answer.code) == (400, "malformed_json")


async def test_too_large_a_body_is_413(shared: Served) -> None:
    answer = await post(shared, registration(new_hardware_id(), capabilities={"x": "y" * 1_100_000}))
    assert (answer.status, answer.code) == (413, "body_too_large")


async def test_no_key_or_an_unknown_one_is_401(shared: Served) -> None:
    body = registration(new_hardware_id())
    answer = await shared.operator.with_key(None).post(REGISTER, body)
    assert (answer.status, answer.code) == (401, "credential_required")
    for unknown in ("f" * 64, "F" * 64, "nonsense", "dk_nobody"):
        answer = await post(shared, body, key=unknown)
        assert (answer.status, answer.code) == (401, "invalid_credential")


async def test_a_key_may_come_as_x_api_key(shared: Served) -> None:
    headers = {"x-api-key": await shared.any_key()}
    body = registration(new_hardware_id())
    answer = await shared.operator.with_key(None).post(REGISTER, body, headers=headers)
    assert answer.status == 201


async def test_a_bound_key_registers_its_own_device_and_no_other(shared: Served) -> None:
    own, other = new_hardware_id(), new_hardware_id()
    _, key = await shared.key(own)
    assert (await post(shared, registration(own), key)).status == 201
    answer = await post(shared, registration(other), key)
    assert (answer.status, answer.code) == (403, "key_bound_to_other_device")
    assert await shared.stored(TABLE, {"hardware_id": other}) is None


async def test_a_key_that_was_used_to_register_says_when(served: Served) -> None:
    key_id, key = await served.key()
    await post(served, registration(new_hardware_id()), key)
    shown = await served.operator.get(f"{DEVICES}/keys/{key_id}")
    assert shown.json()["last_used_at"] == rfc3339(served.now_ms)


async def test_a_request_repeated_under_its_idempotency_key_is_answered_as_at_first(shared: Served) -> None:
    hardware_id, headers = new_hardware_id(), {"idempotency-key": new_hardware_id()}
    first = await post(shared, registration(hardware_id), headers=headers)
    again = await post(shared, registration(hardware_id), headers=headers)
    assert (first.status, again.status) == (201, 201)
    assert again.json() == first.json()
    assert (first.header("idempotency-replayed"), again.header("idempotency-replayed")) == (None, "true")
    other = await post(shared, registration(hardware_id, firmware_version="2"), headers=headers)
    assert (other.status, other.code) == (409, "idempotency_conflict")
