"""When attempts are made: waits before each, with jitter that only ever adds.

The wait before attempt n is that of the policy, and up to a tenth more (at most a minute), so that what
failed together does not come back together.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Annotated, Literal

import msgspec

from crossdock.delivery.parsing import convert, invalid, within
from crossdock.kit.backoff import Uniform
from crossdock.kit.errors import FieldProblem

ATTEMPTS_MAX = 8
DELAY_SECONDS_MAX = 86_400
JITTER_SHARE = 0.1
JITTER_SECONDS_MAX = 60

_MINUTE, _HOUR = 60, 3600
DEFAULT_DELAYS_SECONDS = (0, 5, 5 * _MINUTE, 30 * _MINUTE, 2 * _HOUR, 5 * _HOUR, 10 * _HOUR, 10 * _HOUR)

_DIGITS = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The waits before the attempts, the first one's included. Attempts are counted from 1."""

    delays_seconds: tuple[float, ...] = DEFAULT_DELAYS_SECONDS

    @property
    def attempts_max(self) -> int:
        return len(self.delays_seconds)

    def base_delay_seconds(self, attempt: int) -> float:
        """The wait before the attempt, without jitter."""
        if not 1 <= attempt <= self.attempts_max:
            raise ValueError(f"there is no attempt {attempt} of {self.attempts_max}")
        return self.delays_seconds[attempt - 1]

    def delay_seconds(self, attempt: int, uniform: Uniform) -> float:
        return with_jitter(self.base_delay_seconds(attempt), uniform)


DEFAULT_POLICY = RetryPolicy()


def with_jitter(seconds: float, uniform: Uniform) -> float:
    return seconds + min(seconds * JITTER_SHARE, JITTER_SECONDS_MAX) * uniform()


_Seconds = Annotated[float, msgspec.Meta(ge=0, le=DELAY_SECONDS_MAX)]


class _Listed(msgspec.Struct, forbid_unknown_fields=True):
    schedule_seconds: Annotated[list[_Seconds], msgspec.Meta(min_length=1, max_length=ATTEMPTS_MAX)]


class _Growing(msgspec.Struct, forbid_unknown_fields=True):
    strategy: Literal["exponential", "linear"]
    base_seconds: _Seconds
    max_seconds: _Seconds = DELAY_SECONDS_MAX
    max_attempts: Annotated[int, msgspec.Meta(ge=1, le=ATTEMPTS_MAX)] = ATTEMPTS_MAX


def parse_retry_policy(raw: object, field: str = "retry_config") -> RetryPolicy:
    """The policy that a destination's settings ask for; None: the default one. Raises InvalidInput.

    `{"schedule_seconds": [...]}` lists the waits. With `{"strategy", "base_seconds", "max_seconds",
    "max_attempts"}` the first attempt is made at once, and the waits then double, or grow by the base.
    """
    if raw is None:
        return DEFAULT_POLICY
    if not (isinstance(raw, dict) and "strategy" in raw):
        return RetryPolicy(tuple(convert(raw, _Listed, field).schedule_seconds))
    growing = convert(raw, _Growing, field)
    if growing.max_seconds < growing.base_seconds:
        place, detail = within(field, "max_seconds"), "It must not be less than base_seconds."
        raise invalid(field, FieldProblem(place, "out_of_range", detail))
    waits = (_factor(growing.strategy, attempt) for attempt in range(2, growing.max_attempts + 1))
    return RetryPolicy((0.0, *(min(growing.base_seconds * wait, growing.max_seconds) for wait in waits)))


def _factor(strategy: str, attempt: int) -> int:
    return 1 << (attempt - 2) if strategy == "exponential" else attempt - 1


def parse_retry_after(text: str | None, now_ms: int) -> float | None:
    """The seconds that a Retry-After header asks for, from now; None where it can't be understood."""
    if text is None:
        return None
    if _DIGITS.fullmatch(text.strip()):
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
        if moment.tzinfo is None:  # one of HTTP's three forms names no zone; all are UTC
            moment = moment.replace(tzinfo=UTC)
        return max(moment.timestamp() - now_ms / 1000, 0.0)
    except (ValueError, OverflowError, IndexError):
        return None
