"""Downsampling and gaps, over readings in time order. Pure, and one pass: nothing holds a whole range.

Buckets are aligned to 1970-01-01 UTC, so a day is a UTC day. A bucket without readings is left out, and a
sensor without values in a bucket is left out of it: a gap in the data stays a gap in the chart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from crossdock.devices.model import Bucket, Gap, ReadingPoint


class BucketSize(StrEnum):
    FIVE_MINUTES = "5m"
    HOUR = "1h"
    DAY = "1d"

    @property
    def ms(self) -> int:
        return {"5m": 300_000, "1h": 3_600_000, "1d": 86_400_000}[self.value]


class Aggregate(StrEnum):
    MIN = "min"
    MAX = "max"
    AVG = "avg"
    COUNT = "count"


@dataclass(slots=True)
class _Tally:
    count: int = 0
    total: float = 0.0
    low: float = 0.0
    high: float = 0.0

    def add(self, value: float) -> None:
        self.low = value if self.count == 0 else min(self.low, value)
        self.high = value if self.count == 0 else max(self.high, value)
        self.total += value
        self.count += 1

    def values(self, aggregates: Sequence[Aggregate]) -> dict[str, float]:
        known = {
            Aggregate.MIN: self.low,
            Aggregate.MAX: self.high,
            Aggregate.AVG: self._average(),
            Aggregate.COUNT: self.count,
        }
        return {aggregate.value: known[aggregate] for aggregate in aggregates}

    def _average(self) -> float:
        # Rounding of the sum must not carry the average of equal values past them.
        return min(max(self.total / self.count, self.low), self.high)


@dataclass(slots=True)
class Downsampler:
    """Takes points in time order (up or down), gives each bucket when the next one begins."""

    bucket_ms: int
    aggregates: Sequence[Aggregate]
    _start_ms: int | None = None
    _tallies: dict[str, _Tally] = field(default_factory=dict)

    def add(self, point: ReadingPoint) -> Bucket | None:
        start_ms = point.timestamp_ms - point.timestamp_ms % self.bucket_ms
        finished = None
        if start_ms != self._start_ms:
            finished = self.finish()
            self._start_ms = start_ms
        for name, value in point.sensors.items():
            self._tallies.setdefault(name, _Tally()).add(value)
        return finished

    def finish(self) -> Bucket | None:
        if self._start_ms is None:
            return None
        sensors = {name: tally.values(self.aggregates) for name, tally in sorted(self._tallies.items())}
        bucket = Bucket(self._start_ms, sensors)
        self._start_ms, self._tallies = None, {}
        return bucket


def gaps(times_ms: Iterable[int], from_ms: int, to_ms: int, expected_seconds: float) -> Iterator[Gap]:
    """Periods of more than `expected_seconds` without a reading; the range's edges count as readings."""
    previous_ms = from_ms
    for time_ms in times_ms:
        yield from _gap(previous_ms, time_ms, expected_seconds)
        previous_ms = time_ms
    yield from _gap(previous_ms, to_ms, expected_seconds)


def _gap(from_ms: int, to_ms: int, expected_seconds: float) -> Iterator[Gap]:
    seconds = (to_ms - from_ms) / 1000
    if seconds > expected_seconds:
        yield Gap(from_ms, to_ms, seconds)
