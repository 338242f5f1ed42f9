"""A clock that moves only when a test moves it."""

from __future__ import annotations


class ManualClock:
    def __init__(self, now_ms: int = 1_735_732_800_000) -> None:
        """Starts at 2025-01-01T12:00:00Z unless told otherwise."""
        self._now_ms = now_ms
        self._monotonic_ms = 0

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic(self) -> float:
        return self._monotonic_ms / 1000

    def advance(self, *, seconds: float = 0, ms: int = 0) -> None:
        step_ms = round(seconds * 1000) + ms
        if step_ms < 0:
            raise ValueError("time does not go back; use set_wall_clock for a wall clock that does")
        self._now_ms += step_ms
        self._monotonic_ms += step_ms

    def set_wall_clock(self, now_ms: int) -> None:
        """As when an operator or NTP sets the time: the monotonic clock does not notice."""
        self._now_ms = now_ms
