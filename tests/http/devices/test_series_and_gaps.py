"""Downsampled series and gaps, against a look at every reading."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest
from tests.support.devices import DEVICES, Served, reading

from crossdock.kit.pagination import encode_cursor

HOUR_MS = 3_600_000
BUCKET_MS = {"5m": 300_000, "1h": HOUR_MS, "1d": 24 * HOUR_MS}


async def filled(served: Served, count: int = 300) -> tuple[str, list[dict[str, Any]]]:
    """A device with readings strewn over five days, some with holes, and the readings by time."""
    hardware_id, draw = await served.device(), random.Random(7)
    times = sorted(draw.sample(range(served.now_ms - 120 * HOUR_MS, served.now_ms), count))
    sent = [
        reading(
            time,
            sensors={
                name: draw.choice([draw.uniform(-50, 50), draw.randrange(-5, 5)])
                for name in ("a", "b", "c")
                if draw.random() < 0.7
            },
        )
        for time in times
        if not 40 * HOUR_MS < served.now_ms - time < 60 * HOUR_MS
    ]
    shuffled = draw.sample(sent, len(sent))
    for start in range(0, len(shuffled), 100):
        await served.verdict(hardware_id, *shuffled[start : start + 100])
    return hardware_id, sent


async def paged(served: Served, target: str, limit: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor = None
    while True:
        more = "" if cursor is None else f"&cursor={cursor}"
        answer = await served.operator.get(f"{DEVICES}/{target}&limit={limit}{more}")
        assert answer.status == 200, answer
        page = answer.json()
        assert len(page["data"]) <= limit
        found += page["data"]
        cursor = page["next_cursor"]
        if cursor is None:
            return found


def brute_force(sent: list[dict[str, Any]], bucket_ms: int) -> list[dict[str, Any]]:
    starts = sorted({each["timestamp_ms"] // bucket_ms * bucket_ms for each in sent})
    buckets = []
    for start in starts:
        inside = [each["sensors"] for each in sent if start <= each["timestamp_ms"] < start + bucket_ms]
        sensors = {}
        for name in ("a", "b", "c"):
            values = [each[name] for each in inside if name in each]
            if values:
                sensors[name] = {
                    "min": min(values),
                    "max": max(values),
                    "avg": pytest.approx(sum(values) / len(values)),
                    "count": len(values),
                }
        buckets.append({"start_ms": start, "sensors": sensors})
    return buckets


@pytest.mark.parametrize("size", ["5m", "1h", "1d"])
async def test_a_series_is_what_a_look_at_every_reading_gives(shared: Served, size: str) -> None:
    hardware_id, sent = await filled(shared)
    expected = brute_force(sent, BUCKET_MS[size])
    for limit in (2, 200) if size != "5m" else (50,):
        assert await paged(shared, f"{hardware_id}/readings?bucket={size}", limit) == expected
        descending = await paged(shared, f"{hardware_id}/readings?bucket={size}&order=desc", limit)
        assert descending == expected[::-1]


async def test_a_series_of_a_range_holds_only_its_readings(shared: Served) -> None:
    hardware_id, sent = await filled(shared)
    from_ms, to_ms = sent[20]["timestamp_ms"], sent[70]["timestamp_ms"]
    expected = brute_force(sent[20:71], HOUR_MS)
    query = f"from_ms={from_ms}&to_ms={to_ms}&bucket=1h&agg=min,max,avg,count"
    for order in ("asc", "desc"):
        for limit in (3, 200):
            found = await paged(shared, f"{hardware_id}/readings?{query}&order={order}", limit)
            assert found == expected[:: 1 if order == "asc" else -1]


async def test_only_the_aggregates_asked_for_are_given_in_any_order(shared: Served) -> None:
    hardware_id = await shared.device()
    await shared.verdict(hardware_id, reading(shared.now_ms, sensors={"a": 1}))
    for agg, expected in (
        ("count,max", {"count": 1, "max": 1}),
        ("avg", {"avg": 1}),
        ("min, min", {"min": 1}),
    ):
        target = f"{DEVICES}/{hardware_id}/readings?bucket=1d&agg={agg.replace(' ', '%20')}"
        [bucket] = (await shared.operator.get(target)).json()["data"]
        assert bucket["sensors"] == {"a": expected}


async def test_a_device_without_readings_has_an_empty_series(shared: Served) -> None:
    hardware_id = await shared.device()
    answer = await shared.operator.get(f"{DEVICES}/{hardware_id}/readings?bucket=1h")
    assert answer.json() == {"data": [], "next_cursor": None}


# --- gaps ------------------------------------------------------------------------------------------


def gaps_in(times_ms: list[int], from_ms: int, to_ms: int, expected_seconds: float) -> list[dict[str, Any]]:
    edges = [from_ms, *times_ms, to_ms]
    return [
        {"from_ms": start, "to_ms": end, "seconds": (end - start) / 1000}
        for start, end in pairwise(edges)
        if end - start > expected_seconds * 1000
    ]


@pytest.mark.parametrize("expected_seconds", [60, 3600, 7200.5, 40_000])
async def test_gaps_are_the_periods_without_readings_edges_included(
    shared: Served, expected_seconds: float
) -> None:
    hardware_id, sent = await filled(shared)
    from_ms, to_ms = shared.now_ms - 130 * HOUR_MS, shared.now_ms
    expected = gaps_in([each["timestamp_ms"] for each in sent], from_ms, to_ms, expected_seconds)
    assert expected
    query = f"from_ms={from_ms}&to_ms={to_ms}&expected_seconds={expected_seconds}"
    for limit in (1, 5, 200) if len(expected) < 100 else (70,):
        assert await paged(shared, f"{hardware_id}/gaps?{query}", limit) == expected


async def test_gaps_are_of_the_last_day_unless_told_otherwise(shared: Served) -> None:
    hardware_id, now_ms = await shared.device(), shared.now_ms
    await shared.verdict(hardware_id, reading(now_ms - HOUR_MS), reading(now_ms - 40 * HOUR_MS))
    answer = await shared.operator.get(f"{DEVICES}/{hardware_id}/gaps?expected_seconds=1800")
    assert answer.json()["data"] == gaps_in([now_ms - HOUR_MS], now_ms - 24 * HOUR_MS, now_ms, 1800)


async def test_the_time_to_come_is_no_gap(shared: Served) -> None:
    hardware_id, now_ms = await shared.device(), shared.now_ms
    await shared.verdict(hardware_id, reading(now_ms))
    for query in (
        f"from_ms={now_ms}&to_ms={now_ms + HOUR_MS}",
        f"from_ms={now_ms + 1000}&to_ms={now_ms + HOUR_MS}",
        f"from_ms={now_ms + 1000}",
    ):
        answer = await shared.operator.get(f"{DEVICES}/{hardware_id}/gaps?expected_seconds=1&{query}")
        assert (answer.status, answer.json()) == (200, {"data": [], "next_cursor": None}), query


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("", ("expected_seconds", "required")),
        ("expected_seconds=0", ("expected_seconds", "out_of_range")),
        ("expected_seconds=-5", ("expected_seconds", "out_of_range")),
        ("expected_seconds=x", ("expected_seconds", "wrong_type")),
        ("expected_seconds=nan", ("expected_seconds", "out_of_range")),
        ("expected_seconds=inf", ("expected_seconds", "out_of_range")),
        ("expected_seconds=1&from_ms=2&to_ms=1", ("from_ms", "out_of_range")),
        ("expected_seconds=1&from_ms=9000000000000&to_ms=8000000000000", ("from_ms", "out_of_range")),
        ("expected_seconds=1&limit=201", ("limit", "out_of_range")),
    ],
)
async def test_a_wrong_parameter_is_422_and_named(
    shared: Served, query: str, problem: tuple[str, str]
) -> None:
    answer = await shared.operator.get(f"{DEVICES}/{await shared.device()}/gaps?{query}")
    assert (answer.status, answer.code, answer.fields) == (422, "invalid_input", [problem])


@pytest.mark.parametrize("path", ["gaps?expected_seconds=1", "readings?bucket=1h"])
@pytest.mark.parametrize(
    ("cursor", "status"),
    [
        ("garbage", 400),
        (encode_cursor({"ts_batch": "0000000000001#a"}), 400),
        (encode_cursor({"from_ms": "1"}), 400),
        (encode_cursor({"from_ms": -5}), 200),
        (encode_cursor({"from_ms": 2**62}), 200),
    ],
)
@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_a_forged_cursor_is_refused_or_harmless(
    shared: Served, path: str, cursor: str, status: int, order: str
) -> None:
    hardware_id = await shared.device()
    await shared.verdict(hardware_id, reading(shared.now_ms))
    order = f"&order={order}" if path.startswith("readings") else ""
    answer = await shared.operator.get(f"{DEVICES}/{hardware_id}/{path}{order}&cursor={cursor}")
    assert answer.status == status
    if status == 400:
        assert answer.code == "invalid_cursor"
