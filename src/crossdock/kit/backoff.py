"""Exponential backoff with full jitter.

Each wait is drawn evenly from zero to a ceiling that doubles per attempt: of the usual schemes it spreads
a crowd of callers that failed together the fastest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

Uniform: TypeAlias = Callable[[], float]
"""Evenly distributed from 0 (included) to 1 (excluded): `random.random`."""


@dataclass(frozen=True, slots=True)
class Backoff:
    base_seconds: float
    cap_seconds: float

    def ceiling_seconds(self, attempt: int) -> float:
        """The longest wait after failed attempt number `attempt`, counted from 1."""
        if attempt < 1:
            raise ValueError("attempts are counted from 1")
        # Beyond 2**63 every sensible cap is reached, and a float would overflow in the end.
        return min(self.cap_seconds, self.base_seconds * 2.0 ** min(attempt - 1, 63))

    def delay_seconds(self, attempt: int, uniform: Uniform) -> float:
        return self.ceiling_seconds(attempt) * uniform()
