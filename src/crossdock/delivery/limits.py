"""How much may go to a destination at once, and in a while. In memory, for one process and one event loop.

- Rate: never more than `requests` begin within any `per_seconds`, whatever the pattern. All of them may begin
  together; the next then wait until the first ones are that old.
- Slots: so many calls at a time for a key, and so many in all. One key never gets more than its share of all.

Take the slot first and give it back when the rate says no: a slot can be given back, a beginning can't.
What has been idle is forgotten.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Annotated, Generic, TypeVar

import msgspec

from crossdock.delivery.parsing import convert
from crossdock.kit.clock import Clock

K = TypeVar("K", bound=Hashable)

# Beginnings closer together than this share of the period are kept as one, and leave the period as one.
_RUNS_PER_PERIOD = 20
_SWEEP_FROM_KEYS = 1024


@dataclass(frozen=True, slots=True)
class RateLimit:
    requests: int
    per_seconds: float


class _Settings(msgspec.Struct, forbid_unknown_fields=True):
    requests: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
    per_seconds: Annotated[float, msgspec.Meta(ge=1, le=86_400)]


def parse_rate_limit(raw: object, field: str = "rate_limit") -> RateLimit | None:
    """From `{"requests": n, "per_seconds": s}`; None: no limit. Raises InvalidInput."""
    if raw is None:
        return None
    settings = convert(raw, _Settings, field)
    return RateLimit(settings.requests, settings.per_seconds)


@dataclass(slots=True)
class _Run:
    """Some beginnings close together."""

    first: float
    last: float
    count: int


@dataclass(slots=True)
class _Window:
    """What began within the period, in order."""

    runs: deque[_Run] = field(default_factory=deque)
    count: int = 0
    idle_at: float = 0.0

    def forget(self, now: float, period_seconds: float) -> None:
        while self.runs and self.runs[0].last + period_seconds <= now:
            self.count -= self.runs.popleft().count

    def add(self, now: float, period_seconds: float) -> None:
        if self.runs and now - self.runs[-1].first < period_seconds / _RUNS_PER_PERIOD:
            self.runs[-1].last = now
            self.runs[-1].count += 1
        else:
            self.runs.append(_Run(now, now, 1))
        self.count += 1
        self.idle_at = now + period_seconds

    def room_at(self, limit: RateLimit) -> float:
        """When there will be room, if nothing else begins; for a full window."""
        left = self.count
        for run in self.runs:
            left -= run.count
            if left < limit.requests:
                return run.last + limit.per_seconds
        raise AssertionError("an empty window has room")


class RateLimiter(Generic[K]):
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._windows: dict[K, _Window] = {}
        self._sweep_at_keys = _SWEEP_FROM_KEYS

    def __len__(self) -> int:
        return len(self._windows)

    def try_acquire(self, key: K, limit: RateLimit) -> bool:
        """May one begin now? If so it is counted."""
        now = self._clock.monotonic()
        window = self._windows.get(key)
        if window is None:
            window = self._new(key, now)
        window.forget(now, limit.per_seconds)
        if window.count >= limit.requests:
            return False
        window.add(now, limit.per_seconds)
        return True

    def ready_at_ms(self, key: K, limit: RateLimit) -> int:
        """The wall-clock time from which there is room, as far as can be told now."""
        now, window = self._clock.monotonic(), self._windows.get(key)
        if window is None:
            return self._clock.now_ms()
        window.forget(now, limit.per_seconds)
        if window.count < limit.requests:
            return self._clock.now_ms()
        return self._clock.now_ms() + math.ceil((window.room_at(limit) - now) * 1000)

    def _new(self, key: K, now: float) -> _Window:
        # Swept whenever the keys have doubled: that costs a constant for each, and bounds what idles here.
        if len(self._windows) >= self._sweep_at_keys:
            self._windows = {key: window for key, window in self._windows.items() if window.idle_at > now}
            self._sweep_at_keys = max(_SWEEP_FROM_KEYS, 2 * len(self._windows))
        window = self._windows[key] = _Window()
        return window


class Slots(Generic[K]):
    def __init__(self, total_max: int, key_max: int) -> None:
        """`key_max` holds for every key: one that hangs must not take all there are."""
        if not 1 <= key_max <= total_max:
            raise ValueError("there is at least one slot for a key, and as many in all")
        self._total_max = total_max
        self._key_max = key_max
        self._taken: dict[K, int] = {}
        self._total = 0

    @property
    def total(self) -> int:
        """How many are taken."""
        return self._total

    def has_room(self) -> bool:
        """For some key."""
        return self._total < self._total_max

    def taken(self, key: K) -> int:
        return self._taken.get(key, 0)

    def try_acquire(self, key: K, key_max: int | None = None) -> bool:
        """`key_max`: a lower limit of this key's own."""
        taken = self._taken.get(key, 0)
        most = self._key_max if key_max is None else min(key_max, self._key_max)
        if taken >= most or self._total >= self._total_max:
            return False
        self._taken[key] = taken + 1
        self._total += 1
        return True

    def release(self, key: K) -> None:
        taken = self._taken.get(key, 0)
        if not taken:
            raise ValueError(f"no slot of {key!r} is taken")
        if taken == 1:
            del self._taken[key]
        else:
            self._taken[key] = taken - 1
        self._total -= 1
