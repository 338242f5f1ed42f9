"""Usage periods: months from a day on, without gaps, the same on every node."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.hooks.model import Plan, User
from crossdock.hooks.rules.usage import Period, day_of, period_of, summary_of
from crossdock.kit.clock import ms_from_rfc3339

days = st.dates(date(2000, 1, 1), date(2200, 1, 1))
moments = st.integers(ms_from_rfc3339("2000-01-01T00:00:00Z"), ms_from_rfc3339("2200-01-01T00:00:00Z"))


def ms(text: str) -> int:
    return ms_from_rfc3339(text if "T" in text else f"{text}T00:00:00Z")


@pytest.mark.parametrize(
    ("anchor", "now", "start", "end"),
    [
        ("2024-01-15", "2024-01-15", "2024-01-15", "2024-02-15"),
        ("2024-01-15", "2024-02-14T23:59:59.999Z", "2024-01-15", "2024-02-15"),
        ("2024-01-15", "2024-02-15", "2024-02-15", "2024-03-15"),
        ("2024-01-15", "2024-12-20", "2024-12-15", "2025-01-15"),
        ("2024-01-15", "2025-01-14", "2024-12-15", "2025-01-15"),
        ("2024-01-15", "2034-06-15", "2034-06-15", "2034-07-15"),
        ("2024-01-31", "2024-02-28", "2024-01-31", "2024-02-29"),
        ("2024-01-31", "2024-02-29", "2024-02-29", "2024-03-31"),
        ("2023-01-31", "2023-02-28", "2023-02-28", "2023-03-31"),
        ("2024-01-31", "2024-04-29", "2024-03-31", "2024-04-30"),
        ("2024-01-31", "2024-04-30", "2024-04-30", "2024-05-31"),
        ("2024-02-29", "2025-02-28", "2025-02-28", "2025-03-29"),
        ("2024-12-31", "2025-01-01", "2024-12-31", "2025-01-31"),
        ("2024-01-15", "2024-01-14T23:59:58Z", "2024-01-15", "2024-02-15"),
        ("2024-01-15", "2023-06-01", "2024-01-15", "2024-02-15"),
    ],
)
def test_a_period_is_a_month_from_the_anchor(anchor: str, now: str, start: str, end: str) -> None:
    assert period_of(anchor, ms(now)) == Period(start, end)


@given(days, moments)
def test_a_period_holds_its_moment_unless_that_is_before_the_anchor(anchor: date, now_ms: int) -> None:
    period = period_of(anchor.isoformat(), now_ms)
    today = day_of(now_ms)
    assert today < period.end
    assert period.start <= today or period.start == anchor.isoformat()
    length = date.fromisoformat(period.end) - date.fromisoformat(period.start)
    assert timedelta(days=28) <= length <= timedelta(days=31)


@given(days, moments)
def test_periods_follow_one_another_without_gap_or_overlap(anchor: date, now_ms: int) -> None:
    period = period_of(anchor.isoformat(), now_ms)
    following = period_of(anchor.isoformat(), ms(period.end))
    assert following.start == period.end
    assert period_of(anchor.isoformat(), ms(period.end) - 1) == period


@given(days, moments)
def test_a_period_that_was_begun_is_the_one_that_its_start_says(anchor: date, now_ms: int) -> None:
    """What is stored is the start alone: whoever reads it sees that the period of now is begun."""
    period = period_of(anchor.isoformat(), now_ms)
    assert period_of(period.start, now_ms).start == period.start


@given(moments)
def test_a_day_is_that_of_utc(now_ms: int) -> None:
    assert day_of(now_ms) == datetime.fromtimestamp(now_ms // 1000, UTC).date().isoformat()


USER = User(
    user_id="usr_1",
    email="a@example.com",
    name="A",
    plan=Plan.STARTER,
    created_at="2024-01-15T10:00:00Z",
    updated_at="2024-01-15T10:00:00Z",
    usage_this_month=30,
    usage_period_start="2024-01-15",
)


@pytest.mark.parametrize(
    ("now", "limit", "used", "remaining"),
    [
        ("2024-01-20", 100, 30, 70),
        ("2024-01-20", 30, 30, 0),
        ("2024-01-20", 10, 30, 0),
        ("2024-01-20", 0, 30, 0),
        ("2024-02-15", 100, 0, 100),
        ("2024-05-15", 100, 0, 100),
    ],
)
def test_a_count_belongs_to_the_period_that_it_was_begun_in(
    now: str, limit: int, used: int, remaining: int
) -> None:
    summary = summary_of(USER, limit, ms(now))
    assert (summary.plan, summary.limit) == (Plan.STARTER, limit)
    assert (summary.used, summary.remaining) == (used, remaining)


def test_a_summary_says_its_period() -> None:
    summary = msgspec.to_builtins(summary_of(USER, 100, ms("2024-02-20")))
    assert (summary["period_start"], summary["period_end"]) == ("2024-02-15", "2024-03-15")
