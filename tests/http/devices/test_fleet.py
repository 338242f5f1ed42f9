"""Listing, showing and changing devices."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote

import pytest
from tests.support.devices import DEVICES, Served, new_hardware_id, reading

from crossdock.devices.store import DEVICES as TABLE
from crossdock.kit.pagination import encode_cursor


async def listed(served: Served, query: str = "") -> list[str]:
    """The hardware ids of all pages."""
    found: list[str] = []
    cursor = None
    while True:
        more = "" if cursor is None else f"&cursor={cursor}"
        answer = await served.operator.get(f"{DEVICES}?limit=3{query}{more}")
        assert answer.status == 200, answer
        page = answer.json()
        assert len(page["data"]) <= 3
        found += [device["hardware_id"] for device in page["data"]]
        cursor = page["next_cursor"]
        if cursor is None:
            return found


async def test_devices_are_listed_newest_activity_first_without_skips_or_repeats(lagging: Served) -> None:
    devices = []
    for position in range(8):
        devices.append(await lagging.device())
        if position % 3 == 0:  # some of the same second
            lagging.clock.advance(seconds=1)
    await asyncio.sleep(0.6)  # a list may be as old as its index
    found = await listed(lagging)
    assert sorted(found) == sorted(devices)
    stored = [await lagging.stored(TABLE, {"hardware_id": each}) for each in found]
    times = [item["last_seen_at"] for item in stored if item is not None]
    assert times == sorted(times, key=str, reverse=True)
    assert await listed(lagging) == found


async def test_a_page_ends_the_list_exactly_when_nothing_follows(served: Served) -> None:
    for _ in range(3):
        await served.device()
    page = (await served.operator.get(f"{DEVICES}?limit=3")).json()
    assert (len(page["data"]), page["next_cursor"]) == (3, None)
    page = (await served.operator.get(f"{DEVICES}?limit=2")).json()
    assert (len(page["data"]), page["next_cursor"] is None) == (2, False)


async def test_devices_that_come_and_go_while_paging_leave_the_others_in_place(served: Served) -> None:
    devices = []
    for _ in range(6):
        devices.append(await served.device())
        served.clock.advance(seconds=1)
    first = (await served.operator.get(f"{DEVICES}?limit=3")).json()
    assert [each["hardware_id"] for each in first["data"]] == devices[:2:-1]
    await served.operator.request("DELETE", f"{DEVICES}/{devices[3]}")  # the one that the cursor names
    await served.operator.request("DELETE", f"{DEVICES}/{devices[1]}")
    await served.device()
    rest = (await served.operator.get(f"{DEVICES}?limit=3&cursor={first['next_cursor']}")).json()
    assert [each["hardware_id"] for each in rest["data"]] == [devices[2], devices[0]]


async def test_a_list_shows_devices_as_they_are_now(lagging: Served) -> None:
    hardware_id = await lagging.device()
    await asyncio.sleep(0.6)
    await lagging.operator.request("PATCH", f"{DEVICES}/{hardware_id}", json={"friendly_name": "new"})
    [device] = (await lagging.operator.get(DEVICES)).json()["data"]
    assert device["friendly_name"] == "new"


async def test_status_follows_each_devices_own_patience(served: Served) -> None:
    patient, eager, usual = [await served.device() for _ in range(3)]
    for hardware_id, seconds in ((patient, 3600), (eager, 10)):
        change = {"offline_after_seconds": seconds}
        await served.operator.request("PATCH", f"{DEVICES}/{hardware_id}", json=change)
    for elapsed_seconds, silent in ((10, set()), (1, {eager}), (889, {eager}), (1, {eager, usual})):
        served.clock.advance(seconds=elapsed_seconds)
        assert set(await listed(served, "&status=silent")) == silent
        assert set(await listed(served, "&status=reporting")) == {patient, eager, usual} - silent
    shown = await served.operator.get(f"{DEVICES}/{eager}")
    assert shown.json()["status"] == "silent"
    await served.verdict(eager, reading(served.now_ms))
    assert set(await listed(served, "&status=silent")) == {usual}


async def test_a_status_filter_pages_over_what_it_passes_over(served: Served) -> None:
    devices = []
    for position in range(9):
        devices.append(await served.device())
        if position % 2:
            change = {"offline_after_seconds": 1}
            await served.operator.request("PATCH", f"{DEVICES}/{devices[-1]}", json=change)
        served.clock.advance(seconds=2)
    assert await listed(served, "&status=silent") == devices[7::-2]
    assert await listed(served, "&status=reporting") == devices[8::-2]


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("limit=0", 422, "invalid_input"),
        ("limit=201", 422, "invalid_input"),
        ("limit=x", 422, "invalid_input"),
        ("status=asleep", 422, "invalid_input"),
        ("cursor=garbage", 400, "invalid_cursor"),
        ("cursor=" + encode_cursor({"hardware_id": "x", "gsi1sk": "y"}), 400, "invalid_cursor"),
        ("cursor=" + encode_cursor({"hardware_id": "", "gsi1sk": ""}), 400, "invalid_cursor"),
        ("cursor=" + encode_cursor({"ts_batch": "0000000000000#x"}), 400, "invalid_cursor"),
        ("cursor=" + encode_cursor({"key_id": "x", "gsi1sk": "y"}), 400, "invalid_cursor"),
    ],
)
async def test_a_wrong_parameter_is_told(shared: Served, query: str, status: int, code: str) -> None:
    answer = await shared.operator.get(f"{DEVICES}?{query}")
    assert (answer.status, answer.code) == (status, code)


async def test_a_forged_cursor_reaches_nothing_that_a_list_does_not_show(served: Served) -> None:
    hardware_id, deleted = await served.device(), await served.device()
    await served.operator.request("DELETE", f"{DEVICES}/{deleted}")
    forged = encode_cursor({"hardware_id": "FF:FF:FF:FF:FF:FF", "gsi1sk": "9999-01-01T00:00:00Z"})
    page = (await served.operator.get(f"{DEVICES}?cursor={forged}")).json()
    assert [each["hardware_id"] for each in page["data"]] == [hardware_id]


# --- one device ------------------------------------------------------------------------------------


async def test_a_device_is_shown_as_it_registered(shared: Served) -> None:
    hardware_id = new_hardware_id()
    registered = await shared.register(hardware_id, friendly_name="greenhouse")
    for path in (hardware_id, quote(hardware_id, safe="")):
        shown = await shared.operator.get(f"{DEVICES}/{path}")
        assert (shown.status, shown.json()) == (200, registered.json())


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
async def test_an_unknown_device_is_404_and_a_malformed_id_422(shared: Served, method: str) -> None:
    json = {"friendly_name": "x"} if method == "PATCH" else None
    answer = await shared.operator.request(method, f"{DEVICES}/{new_hardware_id()}", json=json)
    assert (answer.status, answer.code) == (404, "device_not_found")
    for malformed in ("aa:bb:cc:dd:ee:ff", "x", "x" * 5000, "AA:BB:CC:DD:EE:FF%0A"):
        answer = await shared.operator.request(method, f"{DEVICES}/{malformed}", json=json)
        assert (answer.status, answer.code) == (422, "invalid_input")
        assert answer.fields == [("hardware_id", "wrong_format")]


async def test_without_a_credential_everything_is_401(shared: Served) -> None:
    nobody = shared.operator.with_key(None)
    for method, path in [
        ("GET", ""),
        ("GET", "/keys"),
        ("POST", "/keys"),
        ("POST", "/register"),
        ("POST", "/readings"),
        ("GET", "/AA:BB:CC:DD:EE:FF"),
        ("PATCH", "/AA:BB:CC:DD:EE:FF"),
        ("DELETE", "/AA:BB:CC:DD:EE:FF"),
        ("GET", "/AA:BB:CC:DD:EE:FF/readings"),
        ("GET", "/AA:BB:CC:DD:EE:FF/readings/latest"),
        ("GET", "/AA:BB:CC:DD:EE:FF/gaps"),
    ]:
        answer = await nobody.request(method, DEVICES + path)
        assert (answer.status, answer.code) == (401, "credential_required"), (method, path)


async def patch(shared: Served, hardware_id: str, change: object) -> Any:
    return await shared.operator.request("PATCH", f"{DEVICES}/{hardware_id}", json=change)


async def test_a_change_changes_what_is_given_and_null_puts_it_back(shared: Served) -> None:
    hardware_id = await shared.device(friendly_name="old")

    async def shown_after(change: dict[str, Any]) -> tuple[Any, Any]:
        answer = await patch(shared, hardware_id, change)
        assert answer.status == 200
        device = answer.json()
        assert (await shared.operator.get(f"{DEVICES}/{hardware_id}")).json() == device
        return device["friendly_name"], device["offline_after_seconds"]

    assert await shown_after({}) == ("old", 900)
    assert await shown_after({"offline_after_seconds": 5}) == ("old", 5)
    assert await shown_after({"friendly_name": "new"}) == ("new", 5)
    assert await shown_after({"friendly_name": None}) == (None, 5)
    assert await shown_after({"offline_after_seconds": None}) == (None, 900)
    stored = await shared.stored(TABLE, {"hardware_id": hardware_id})
    assert stored is not None
    assert {"friendly_name", "offline_after_seconds"}.isdisjoint(stored)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"friendly_name": ""}, ("friendly_name", "wrong_format")),
        ({"friendly_name": "x" * 129}, ("friendly_name", "wrong_format")),
        ({"friendly_name": 5}, ("friendly_name", "wrong_type")),
        ({"offline_after_seconds": 0}, ("offline_after_seconds", "out_of_range")),
        ({"offline_after_seconds": 366 * 86_400 + 1}, ("offline_after_seconds", "out_of_range")),
        ({"offline_after_seconds": 1.5}, ("offline_after_seconds", "wrong_type")),
        ({"offline_after_seconds": "5"}, ("offline_after_seconds", "wrong_type")),
        ({"firmware_version": "2"}, ("firmware_version", "unknown_field")),
    ],
)
async def test_a_wrong_change_is_422(shared: Served, change: object, problem: tuple[str, str]) -> None:
    hardware_id = await shared.device()
    answer = await patch(shared, hardware_id, change)
    assert (answer.status, answer.code, answer.fields) == (422, "invalid_input", [problem])


async def test_a_change_without_json_is_400(shared: Served) -> None:
    answer = await shared.operator.request("PATCH", f"{DEVICES}/{await shared.device()}", body=b"{")
    assert (answer.status, answer.code) == (400, "malformed_json")
