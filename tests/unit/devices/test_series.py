from __future__ import annotations

import math
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.devices.model import Bucket, Gap, ReadingPoint
from crossdock.devices.rules.series import Aggregate, BucketSize, Downsampler, gaps

ALL = list(Aggregate)
HOUR_MS = 3_600_000


def downsampled(
    points: list[ReadingPoint], bucket_ms: int, aggregates: list[Aggregate] = ALL
) -> list[Bucket]:
    sampler = Downsampler(bucket_ms, aggregates)
    found = [sampler.add(point) for point in points]
    return [bucket for bucket in (*found, sampler.finish()) if bucket is not None]


@pytest.mark.parametrize(
    ("size", "ms"), [(BucketSize("5m"), 300_000), (BucketSize("1h"), HOUR_MS), (BucketSize("1d"), 86_400_000)]
)
def test_bucket_sizes(size: BucketSize, ms: int) -> None:
    assert size.ms == ms


def test_buckets_begin_at_whole_hours_and_leave_out_what_has_no_value() -> None:
    points = [
        ReadingPoint(HOUR_MS + 1, {"a": 1, "b": 5}),
        ReadingPoint(2 * HOUR_MS - 1, {"a": 3}),
        ReadingPoint(5 * HOUR_MS, {"b": 7}),
        ReadingPoint(6 * HOUR_MS, {}),
    ]
    assert downsampled(points, HOUR_MS) == [
        Bucket(
            HOUR_MS,
            {
                "a": {"min": 1, "max": 3, "avg": 2, "count": 2},
                "b": {"min": 5, "max": 5, "avg": 5, "count": 1},
            },
        ),
        Bucket(5 * HOUR_MS, {"b": {"min": 7, "max": 7, "avg": 7, "count": 1}}),
        Bucket(6 * HOUR_MS, {}),
    ]


def test_only_the_aggregates_asked_for_are_given() -> None:
    points = [ReadingPoint(0, {"a": 1})]
    assert downsampled(points, HOUR_MS, [Aggregate.AVG, Aggregate.MIN])[0].sensors == {
        "a": {"avg": 1, "min": 1}
    }


def test_without_points_there_is_no_bucket() -> None:
    assert downsampled([], HOUR_MS) == []


points_in_time = st.lists(
    st.builds(
        ReadingPoint,
        st.integers(0, 40),
        st.dictionaries(st.sampled_from("abc"), st.floats(-1e6, 1e6) | st.integers(-5, 5), max_size=3),
    ),
    max_size=30,
).map(lambda points: sorted(points, key=lambda point: point.timestamp_ms))


@given(points_in_time, st.sampled_from([1, 7, 10, 100]), st.booleans())
def test_downsampling_is_what_a_look_at_each_bucket_gives(
    points: list[ReadingPoint], bucket_ms: int, descending: bool
) -> None:
    if descending:
        points = points[::-1]
    by_bucket: dict[int, dict[str, list[float]]] = {}
    for point in points:
        values_by_name = by_bucket.setdefault(point.timestamp_ms // bucket_ms * bucket_ms, defaultdict(list))
        for name, value in point.sensors.items():
            values_by_name[name].append(value)
    found = downsampled(points, bucket_ms)
    assert [bucket.start_ms for bucket in found] == list(by_bucket)
    for bucket in found:
        expected = by_bucket[bucket.start_ms]
        assert bucket.sensors.keys() == expected.keys()
        for name, values in expected.items():
            got = bucket.sensors[name]
            assert (got["min"], got["max"], got["count"]) == (min(values), max(values), len(values))
            assert math.isclose(got["avg"], math.fsum(values) / len(values), rel_tol=1e-9, abs_tol=1e-6)
            assert got["min"] <= got["avg"] <= got["max"]


# --- gaps ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("times_ms", "expected"),
    [
        ([], [(0, 10_000)]),
        ([0], [(0, 10_000)]),
        ([10_000], [(0, 10_000)]),
        ([5_000], [(0, 5_000), (5_000, 10_000)]),
        ([2_000, 4_000, 6_000, 8_000], []),
        ([2_000, 4_001, 6_000, 8_000], [(2_000, 4_001)]),
        ([2_000, 2_000, 7_000, 7_000, 9_000], [(2_000, 7_000)]),
        ([1_000, 2_000, 3_000], [(3_000, 10_000)]),
        ([7_999, 9_000], [(0, 7_999)]),
    ],
)
def test_a_gap_is_a_period_of_more_than_the_expected_seconds(
    times_ms: list[int], expected: list[tuple[int, int]]
) -> None:
    found = list(gaps(times_ms, 0, 10_000, 2))
    assert found == [Gap(start, end, (end - start) / 1000) for start, end in expected]


@given(st.lists(st.integers(0, 100)).map(sorted), st.integers(1, 60))
def test_no_reading_lies_in_a_gap_and_elsewhere_they_lie_close(times: list[int], expected_ms: int) -> None:
    found = list(gaps(times, 0, 100, expected_ms / 1000))
    edges = {0, 100, *times}
    for gap in found:
        assert gap.to_ms - gap.from_ms > expected_ms
        assert {gap.from_ms, gap.to_ms} <= edges
        assert not any(gap.from_ms < time < gap.to_ms for time in times)
    for start, end in zip(sorted(edges), sorted(edges)[1:], strict=False):
        is_gap = any((gap.from_ms, gap.to_ms) == (start, end) for gap in found)
        assert is_gap is (end - start > expected_ms)


def test_a_range_without_extent_has_no_gap() -> None:
    assert list(gaps([], 5, 5, 0.001)) == []
    assert list(gaps([], 6, 5, 0.001)) == []
