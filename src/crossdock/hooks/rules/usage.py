"""A user's usage period: a month counted from the day it began, whatever the calendar says.

Days are UTC, written as they are stored: `2024-01-31`. Where a month is too short the period begins on its
last day; the period after that is counted from there, so that of one stored day every node makes the same.
"""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, date, datetime

from crossdock.hooks.accounts_model import UsageSummary
from crossdock.hooks.model import User


@dataclass(frozen=True, slots=True)
class Period:
    """`end` is the first day that is not in it."""

    start: str
    end: str


def period_of(anchor: str, now_ms: int) -> Period:
    """The period that this moment is in. One before the anchor (a clock is behind) counts to the first."""
    first, today = date.fromisoformat(anchor), _day(now_ms)
    months = (today.year - first.year) * 12 + today.month - first.month
    if _months_after(first, months) > today:
        months -= 1
    months = max(0, months)
    return Period(_months_after(first, months).isoformat(), _months_after(first, months + 1).isoformat())


def day_of(now_ms: int) -> str:
    return _day(now_ms).isoformat()


def summary_of(user: User, limit: int, now_ms: int) -> UsageSummary:
    """A count of an earlier period, which nobody has begun anew yet, is none of this one's."""
    period = period_of(user.usage_period_start, now_ms)
    used = user.usage_this_month if period.start == user.usage_period_start else 0
    return UsageSummary(
        plan=user.plan,
        period_start=period.start,
        period_end=period.end,
        used=used,
        limit=limit,
        remaining=max(0, limit - used),
    )


def _day(now_ms: int) -> date:
    return datetime.fromtimestamp(now_ms / 1000, UTC).date()


def _months_after(day: date, months: int) -> date:
    years, month = divmod(day.month - 1 + months, 12)
    year = day.year + years
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))
