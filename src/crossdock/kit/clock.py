"""Time, passed in. Nothing else in the package reads a clock, so that tests never sleep."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Protocol

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall-clock time, in milliseconds since 1970."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes back."""


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


def rfc3339(ms: int) -> str:
    """RFC 3339 in UTC, to the second: `2024-01-15T10:30:00Z`, the form that sort keys need."""
    return _rfc3339_of_second(ms // 1000)


@lru_cache(maxsize=256)
def _rfc3339_of_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat() + "Z"


def ms_from_rfc3339(text: str) -> int:
    """The inverse of `rfc3339`; takes any RFC 3339 time with an offset. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return (moment - _EPOCH) // timedelta(milliseconds=1)
