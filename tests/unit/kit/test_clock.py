from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crossdock.kit.clock import SystemClock, ms_from_rfc3339, rfc3339

# The years 0001 to 9999: what RFC 3339 can say.
MOMENTS_MS = st.integers(-62_135_596_800_000, 253_402_300_799_999)
RECENT_MS = st.integers(0, 4_102_444_800_000)


def in_ms(ms: int, offset: timedelta = timedelta(0)) -> str:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
    return moment.astimezone(timezone(offset)).isoformat(timespec="milliseconds")


def test_the_system_clock_tells_the_time_in_ms_and_never_goes_back() -> None:
    clock = SystemClock()
    assert abs(clock.now_ms() - time.time() * 1000) < 1000
    readings = [clock.monotonic() for _ in range(1000)]
    assert readings == sorted(readings)


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (999, "1970-01-01T00:00:00Z"),
        (1000, "1970-01-01T00:00:01Z"),
        (-1, "1969-12-31T23:59:59Z"),
        (1_705_314_600_000, "2024-01-15T10:30:00Z"),
        (1_709_164_800_000, "2024-02-29T00:00:00Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59Z"),
    ],
)
def test_a_time_is_written_in_utc_to_the_second_it_lies_in(ms: int, text: str) -> None:
    assert rfc3339(ms) == text


@given(RECENT_MS)
def test_what_was_written_reads_back_as_the_second(ms: int) -> None:
    assert ms_from_rfc3339(rfc3339(ms)) == ms - ms % 1000


@given(RECENT_MS, RECENT_MS)
def test_written_times_sort_as_the_times_do(one: int, other: int) -> None:
    assert (rfc3339(one) < rfc3339(other)) == (one // 1000 < other // 1000)


@given(MOMENTS_MS)
def test_a_written_time_always_has_the_same_length(ms: int) -> None:
    assert len(rfc3339(ms)) == 20


@example(1_092_785_083_291, 0)  # in floating point 1092785083.291 * 1000 is a little less than whole
@given(RECENT_MS, st.integers(-14 * 60, 14 * 60))
def test_a_time_with_milliseconds_and_any_offset_is_read_exactly(ms: int, offset_minutes: int) -> None:
    assert ms_from_rfc3339(in_ms(ms, timedelta(minutes=offset_minutes))) == ms


@pytest.mark.parametrize(
    "text", ["", "2024-01-15", "2024-01-15T10:30:00", "2024-13-01T00:00:00Z", "2024-02-30T00:00:00Z", "now"]
)
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        ms_from_rfc3339(text)
