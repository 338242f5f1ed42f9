"""Looking through a source's events for some of them: within a span of time, and within bounds. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from crossdock.hooks.model import Event
from crossdock.kit.clock import Clock, ms_from_rfc3339, rfc3339
from crossdock.kit.errors import FieldProblem, InvalidInput, MalformedRequest

MS_MAX = 9_999_999_999_999
CHUNK_FIRST = 25
CHUNK_MAX = 100
CHUNK_MIN = 10
_CHUNK_BYTES_LOW = 512 * 1024
_CHUNK_BYTES_HIGH = 4 * 1024 * 1024

_SORT_KEY = re.compile(r"EVT#(\d{13})#evt_[0-9A-Za-z_-]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class SearchBudget:
    """What one page of a list may cost, however little of it is found."""

    events: int = 5_000
    seconds: float = 2.0


@dataclass(frozen=True, slots=True)
class Span:
    """Times of receipt, inclusive at both ends."""

    from_ms: int = 0
    to_ms: int = MS_MAX


# --- times -----------------------------------------------------------------------------------------


def moment(ms: int) -> str:
    """RFC 3339 in UTC, to the millisecond: `2024-01-15T10:30:00.042Z`."""
    return f"{rfc3339(ms).removesuffix('Z')}.{ms % 1000:03d}Z"


def span_of(since: str | None, until: str | None) -> Span:
    """From texts in RFC 3339. Raises InvalidInput, naming the fields `from` and `to`."""
    problems: list[FieldProblem] = []
    from_ms = _ms(since, "from", 0, problems)
    to_ms = _ms(until, "to", MS_MAX, problems)
    if not problems and from_ms > to_ms:
        problems.append(FieldProblem("from", "out_of_range", "from is after to."))
    if problems:
        raise InvalidInput("The span of time is not valid.", *problems)
    return Span(from_ms, to_ms)


def _ms(text: str | None, field: str, default: int, problems: list[FieldProblem]) -> int:
    if text is None:
        return default
    try:
        return min(max(ms_from_rfc3339(text), 0), MS_MAX)
    except ValueError:
        detail = "A time in RFC 3339, with its offset: 2024-01-15T10:30:00Z. In a URL, + is written %2B."
        problems.append(FieldProblem(field, "wrong_format", detail))
        return default


# --- going through ---------------------------------------------------------------------------------


def checked_position(sort_key: str, span: Span) -> str:
    """A sort key that a cursor says to go on after; stores take none from outside the span."""
    found = _SORT_KEY.fullmatch(sort_key)
    if found is None or not span.from_ms <= int(found.group(1)) <= span.to_ms:
        raise MalformedRequest(
            "invalid_cursor", "The cursor is not one this list gave out. Start again without a cursor."
        )
    return sort_key


class Allowance:
    """A budget being spent. The first event is looked at whatever it takes, so that going on from where one
    page ended always comes to an end."""

    def __init__(self, budget: SearchBudget, clock: Clock) -> None:
        self._clock = clock
        self._events_max = budget.events
        self._deadline = clock.monotonic() + budget.seconds
        self.looked_at = 0

    @property
    def is_spent(self) -> bool:
        if self.looked_at == 0:
            return False
        return self.looked_at >= self._events_max or self._clock.monotonic() >= self._deadline

    def take(self) -> bool:
        """May one more be looked at? If so it is counted."""
        if self.is_spent:
            return False
        self.looked_at += 1
        return True


def looked_through(
    events: Sequence[Event], is_wanted: Callable[[Event], bool], room: int, allowance: Allowance
) -> tuple[list[Event], int]:
    """Those that are wanted, at most `room`, and how many were looked at to find them."""
    found: list[Event] = []
    for looked_at, event in enumerate(events):
        if len(found) == room or not allowance.take():
            return found, looked_at
        if is_wanted(event):
            found.append(event)
    return found, len(events)


def next_chunk(size: int, bytes_read: int) -> int:
    """How many events to read next, after a chunk of `size` that held so many bytes of bodies: few large
    ones, or many small ones, so that no list holds more than a few megabytes for long."""
    if bytes_read > _CHUNK_BYTES_HIGH:
        return max(size // 2, CHUNK_MIN)
    return min(size * 2, CHUNK_MAX) if bytes_read < _CHUNK_BYTES_LOW else size
