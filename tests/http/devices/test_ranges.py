"""Readings by time: a range, and the latest."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.devices import DAY_MS, DEVICES, Served, new_batch_id, new_hardware_id, reading

from crossdock.kit.pagination import encode_cursor

STEP_MS = 10


async def filled(served: Served, count: int = 20) -> tuple[str, int]:
    """A device with readings at start, start + STEP_MS, …, two batches at each time, sent in disorder."""
    hardware_id, start_ms = await served.device(), served.now_ms - 1_000_000
    sent = [
        reading(start_ms + n * STEP_MS, f"{hardware_id}_{kind}", sensors={"n": n})
        for n in range(count)
        for kind in "ab"
    ]
    sent.sort(key=lambda each: (each["sensors"]["n"] * 7) % count)
    await served.verdict(hardware_id, *sent)
    return hardware_id, start_ms


async def ranged(served: Served, hardware_id: str, query: str, limit: int = 7) -> list[dict[str, Any]]:
    """The readings of all pages."""
    found: list[dict[str, Any]] = []
    cursor = None
    while True:
        more = "" if cursor is None else f"&cursor={cursor}"
        target = f"{DEVICES}/{hardware_id}/readings?{query}&limit={limit}{more}"
        answer = await served.operator.get(target)
        assert answer.status == 200, answer
        page = answer.json()
        assert len(page["data"]) == limit or page["next_cursor"] is None
        found += page["data"]
        cursor = page["next_cursor"]
        if cursor is None:
            return found


async def test_a_reading_is_shown_as_it_is_stored(shared: Served) -> None:
    hardware_id = await shared.device(friendly_name="greenhouse")
    sent = reading(shared.now_ms, sensors={"a": 2.0, "b": 0.1, "c": 12, "d": -1e-7})
    await shared.verdict(hardware_id, sent)
    [shown] = await ranged(shared, hardware_id, "")
    assert shown == sent | {
        "hardware_id": hardware_id,
        "ts_batch": f"{shared.now_ms}#{sent['batch_id']}",
        "friendly_name": "greenhouse",
        "expiration_time": shared.now_ms // 1000 + 90 * 86_400,
    }


@pytest.mark.parametrize("limit", [1, 7, 200])
async def test_pages_of_both_directions_hold_every_reading_once_in_order(shared: Served, limit: int) -> None:
    hardware_id, start_ms = await filled(shared)
    expected = [f"{start_ms + n * STEP_MS}#{hardware_id}_{kind}" for n in range(20) for kind in "ab"]
    for query, order in (("", expected), ("order=asc", expected), ("order=desc", expected[::-1])):
        found = await ranged(shared, hardware_id, query, limit)
        assert [each["ts_batch"] for each in found] == order


@pytest.mark.parametrize(
    ("from_shift", "to_shift", "expected"),
    [
        (0, 3 * STEP_MS, [0, 1, 2, 3]),
        (1, 3 * STEP_MS - 1, [1, 2]),
        (2 * STEP_MS, 2 * STEP_MS, [2]),
        (2 * STEP_MS + 1, 3 * STEP_MS - 1, []),
        (-1000, -1, []),
        (19 * STEP_MS, 10**7, [19]),
    ],
)
async def test_a_range_holds_both_its_ends(
    shared: Served, from_shift: int, to_shift: int, expected: list[int]
) -> None:
    hardware_id, start_ms = await filled(shared)
    query = f"from_ms={start_ms + from_shift}&to_ms={start_ms + to_shift}"
    for order in ("asc", "desc"):
        found = await ranged(shared, hardware_id, f"{query}&order={order}", limit=3)
        numbers = [each["sensors"]["n"] for each in found]
        assert sorted(numbers) == sorted(expected * 2)
        assert numbers == sorted(numbers, reverse=order == "desc")


async def test_readings_that_come_while_paging_repeat_and_hide_none_of_the_others(shared: Served) -> None:
    hardware_id, start_ms = await filled(shared)
    page = (await shared.operator.get(f"{DEVICES}/{hardware_id}/readings?limit=10")).json()
    await shared.verdict(hardware_id, reading(start_ms - 5), reading(start_ms + 15 * STEP_MS + 1))
    rest = await ranged(shared, hardware_id, f"cursor={page['next_cursor']}", limit=200)
    numbers = [each["sensors"].get("n") for each in rest]
    assert [n for n in numbers if n is not None] == [n for n in range(5, 20) for _ in "ab"]
    assert numbers.count(None) == 1


@pytest.mark.parametrize(
    ("query", "status", "problem"),
    [
        ("from_ms=2&to_ms=1", 422, ("from_ms", "out_of_range")),
        ("limit=201", 422, ("limit", "out_of_range")),
        ("limit=0", 422, ("limit", "out_of_range")),
        ("limit=-1", 422, ("limit", "out_of_range")),
        ("from_ms=-1", 422, ("from_ms", "out_of_range")),
        ("to_ms=10000000000000", 422, ("to_ms", "out_of_range")),
        ("from_ms=x", 422, ("from_ms", "wrong_type")),
        ("from_ms=1.5", 422, ("from_ms", "wrong_type")),
        ("order=up", 422, ("order", "not_a_choice")),
        ("order=asc%0A", 422, ("order", "not_a_choice")),
        ("bucket=2h", 422, ("bucket", "not_a_choice")),
        ("bucket=1h&agg=median", 422, ("agg", "not_a_choice")),
        ("bucket=1h&agg=", 422, ("agg", "not_a_choice")),
        ("agg=min", 422, ("agg", "required")),
    ],
)
async def test_a_wrong_parameter_is_422_and_named(
    shared: Served, query: str, status: int, problem: tuple[str, str]
) -> None:
    hardware_id = await shared.device()
    answer = await shared.operator.get(f"{DEVICES}/{hardware_id}/readings?{query}")
    assert (answer.status, answer.code, answer.fields) == (status, "invalid_input", [problem])


@pytest.mark.parametrize(
    "cursor",
    [
        "garbage",
        "%FF",
        "",
        encode_cursor({"ts_batch": ""}),
        encode_cursor({"ts_batch": "x"}),
        encode_cursor({"ts_batch": "0000000000000#" + "x" * 3000}),
        encode_cursor({"ts_batch": 5}),
        encode_cursor({"from_ms": 5}),
        encode_cursor({"ts_batch": "0000000000001#a", "more": "b"}),
    ],
)
async def test_a_cursor_that_is_none_of_ours_is_400(shared: Served, cursor: str) -> None:
    hardware_id = await shared.device()
    answer = await shared.operator.get(f"{DEVICES}/{hardware_id}/readings?cursor={cursor}")
    assert (answer.status, answer.code) == (400, "invalid_cursor")


async def test_a_cursor_of_another_range_is_400(shared: Served) -> None:
    hardware_id, start_ms = await filled(shared)
    page = (await shared.operator.get(f"{DEVICES}/{hardware_id}/readings?limit=2")).json()
    query = f"from_ms={start_ms + 1}&cursor={page['next_cursor']}"
    answer = await shared.operator.get(f"{DEVICES}/{hardware_id}/readings?{query}")
    assert (answer.status, answer.code) == (400, "invalid_cursor")


async def test_readings_of_an_unknown_device_are_404_and_of_a_malformed_one_422(shared: Served) -> None:
    for path in ("readings", "readings/latest", "readings?bucket=1d", "gaps?expected_seconds=1"):
        answer = await shared.operator.get(f"{DEVICES}/{new_hardware_id()}/{path}")
        assert (answer.status, answer.code) == (404, "device_not_found"), path
        answer = await shared.operator.get(f"{DEVICES}/aa:bb:cc:dd:ee:ff/{path}")
        assert (answer.status, answer.fields) == (422, [("hardware_id", "wrong_format")]), path


# --- the latest ------------------------------------------------------------------------------------


async def latest(served: Served, hardware_id: str) -> Any:
    answer = await served.operator.get(f"{DEVICES}/{hardware_id}/readings/latest")
    assert (answer.status, answer.header("content-type")) == (200, "application/json")
    return answer.json()


async def test_the_latest_is_the_newest_by_its_own_time_not_by_arrival(shared: Served) -> None:
    hardware_id = await shared.device()
    for shift_ms, expected in ((-500, -500), (-2000, -500), (-100, -100), (-300, -100), (DAY_MS, DAY_MS)):
        await shared.verdict(hardware_id, reading(shared.now_ms + shift_ms))
        assert (await latest(shared, hardware_id))["timestamp_ms"] == shared.now_ms + expected
    found = await ranged(shared, hardware_id, "")
    assert [each["timestamp_ms"] - shared.now_ms for each in found] == [-2000, -500, -300, -100, DAY_MS]


async def test_a_device_without_readings_has_no_latest(shared: Served) -> None:
    hardware_id = await shared.device()
    answer = await shared.operator.get(f"{DEVICES}/{hardware_id}/readings/latest")
    assert (answer.status, answer.code) == (404, "no_readings")


async def test_the_latest_passes_over_what_has_expired(served: Served) -> None:
    hardware_id, key = await served.device(), await served.any_key()
    old = reading(served.now_ms - 10 * DAY_MS)
    await served.another_node(retention_days=0).send(key, hardware_id, old)
    recent = reading(served.now_ms, new_batch_id())
    await served.another_node(retention_days=1).send(key, hardware_id, recent)
    assert (await latest(served, hardware_id))["timestamp_ms"] == recent["timestamp_ms"]
    served.clock.advance(seconds=86_400)
    assert (await latest(served, hardware_id))["timestamp_ms"] == old["timestamp_ms"]
