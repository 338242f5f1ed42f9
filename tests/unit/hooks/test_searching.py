"""Spans of time, positions in a list, and what one page of a search may cost."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.clock import ManualClock

from crossdock.hooks.model import Event, EventStatus
from crossdock.hooks.rules.searching import (
    CHUNK_FIRST,
    CHUNK_MAX,
    CHUNK_MIN,
    MS_MAX,
    Allowance,
    SearchBudget,
    Span,
    checked_position,
    looked_through,
    moment,
    next_chunk,
    span_of,
)
from crossdock.hooks.store.events import sort_key_of
from crossdock.kit.clock import ms_from_rfc3339
from crossdock.kit.errors import InvalidInput, MalformedRequest
from crossdock.kit.ids import nanoid

NOON_MS = 1_735_732_800_000


def event(received_at: int = NOON_MS, body: bytes = b"{}") -> Event:
    return Event(
        event_id="evt_" + nanoid(os.urandom, 16),
        source_id="src_1",
        user_id="usr_1",
        status=EventStatus.DELIVERED,
        method="POST",
        path="",
        query="",
        headers=(),
        body=body,
        content_type="",
        source_ip="",
        verified=True,
        received_at=received_at,
        expires_at=received_at // 1000 + 86_400,
    )


# --- times -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (NOON_MS + 42, "2025-01-01T12:00:00.042Z"),
        (MS_MAX, "2286-11-20T17:46:39.999Z"),
    ],
)
def test_a_moment_is_told_to_the_millisecond(ms: int, text: str) -> None:
    assert moment(ms) == text


@given(st.integers(0, MS_MAX))
def test_a_moment_that_was_told_is_understood(ms: int) -> None:
    assert ms_from_rfc3339(moment(ms)) == ms
    assert span_of(moment(ms), moment(ms)) == Span(ms, ms)


@pytest.mark.parametrize(
    ("since", "until", "span"),
    [
        (None, None, Span(0, MS_MAX)),
        ("2025-01-01T12:00:00Z", None, Span(NOON_MS, MS_MAX)),
        (None, "2025-01-01T14:00:00+02:00", Span(0, NOON_MS)),
        ("2025-01-01T12:00:00.042Z", "2025-01-01T12:00:00.042Z", Span(NOON_MS + 42, NOON_MS + 42)),
        ("1912-06-23T00:00:00Z", "9999-12-31T23:59:59Z", Span(0, MS_MAX)),
    ],
)
def test_a_span_is_inclusive_and_open_where_nothing_is_said(
    since: str | None, until: str | None, span: Span
) -> None:
    assert span_of(since, until) == span


@pytest.mark.parametrize(
    ("since", "until", "wrong"),
    [
        ("yesterday", None, [("from", "wrong_format")]),
        ("", "", [("from", "wrong_format"), ("to", "wrong_format")]),
        ("2025-01-01T12:00:00", None, [("from", "wrong_format")]),
        ("2025-01-01", None, [("from", "wrong_format")]),
        (None, "2025-13-01T12:00:00Z", [("to", "wrong_format")]),
        (None, "2025-01-01T14:00:00 02:00", [("to", "wrong_format")]),
        ("2025-01-01T12:00:00.001Z", "2025-01-01T12:00:00Z", [("from", "out_of_range")]),
    ],
)
def test_what_is_no_span_is_said_field_by_field(
    since: str | None, until: str | None, wrong: list[tuple[str, str]]
) -> None:
    with pytest.raises(InvalidInput) as refused:
        span_of(since, until)
    assert [(each.field, each.code) for each in refused.value.fields] == wrong


# --- positions -------------------------------------------------------------------------------------


def test_the_sort_key_of_any_event_of_the_span_is_a_position() -> None:
    for ms in (0, NOON_MS, MS_MAX):
        key = sort_key_of(event(ms))
        assert checked_position(key, Span()) == key
        assert checked_position(key, Span(ms, ms)) == key


@pytest.mark.parametrize(
    "position",
    [
        "",
        "EVT#",
        "EVT#1735732800000#",
        "EVT#173573280000#evt_0123456789abcdef",
        "EVT#1735732799999#evt_0123456789abcdef",
        "EVT#1735732800101#evt_0123456789abcdef",
        "EVT#1735732800000#evt_0123456789abcdef\n",
        "EVT#1735732800000#conn_0123456789abcdef",
        "EVT#١735732800000#evt_0123456789abcdef",
        "REF#17",
    ],
)
def test_a_position_outside_the_list_is_refused(position: str) -> None:
    with pytest.raises(MalformedRequest) as refused:
        checked_position(position, Span(NOON_MS, NOON_MS + 100))
    assert refused.value.code == "invalid_cursor"


# --- going through ---------------------------------------------------------------------------------


def allowance(events: int = 100, seconds: float = 2.0, clock: ManualClock | None = None) -> Allowance:
    return Allowance(SearchBudget(events, seconds), clock or ManualClock())


def test_no_more_events_are_looked_at_than_the_budget_has() -> None:
    allowed = allowance(events=3)
    events = [event() for _ in range(5)]
    assert looked_through(events, lambda _: True, 10, allowed) == (events[:3], 3)
    assert allowed.is_spent
    assert looked_through(events, lambda _: True, 10, allowed) == ([], 0)


def test_a_search_stops_when_its_time_is_up() -> None:
    clock = ManualClock()
    allowed = allowance(seconds=2.0, clock=clock)

    def is_wanted(_: Event) -> bool:
        clock.advance(seconds=0.9)
        return False

    assert looked_through([event() for _ in range(9)], is_wanted, 10, allowed) == ([], 3)


@pytest.mark.parametrize("budget", [SearchBudget(events=0), SearchBudget(seconds=0)])
def test_the_first_event_is_looked_at_whatever_it_takes(budget: SearchBudget) -> None:
    events = [event(), event()]
    assert looked_through(events, lambda _: True, 10, Allowance(budget, ManualClock())) == (events[:1], 1)


def test_nothing_is_looked_at_once_the_page_is_full() -> None:
    allowed, events = allowance(), [event() for _ in range(5)]
    assert looked_through(events, lambda each: each is not events[1], 2, allowed) == (
        [events[0], events[2]],
        3,
    )
    assert allowed.looked_at == 3


@given(
    wanted=st.lists(st.booleans(), max_size=30),
    room=st.integers(1, 5),
    budget=st.integers(1, 5),
)
def test_pages_that_go_on_where_the_last_one_stopped_find_everything_once(
    wanted: list[bool], room: int, budget: int
) -> None:
    events = [event() for _ in wanted]
    asked = {each.event_id for each, is_wanted in zip(events, wanted, strict=True) if is_wanted}
    found: list[Event] = []
    left = events
    while left:
        page, count = looked_through(left, lambda each: each.event_id in asked, room, allowance(budget))
        assert count > 0
        assert len(page) <= room
        found += page
        left = left[count:]
    assert [each.event_id for each in found] == [each.event_id for each in events if each.event_id in asked]


@given(st.lists(st.integers(0, 256 * 1024), min_size=1, max_size=50))
def test_a_list_of_large_bodies_is_read_in_small_chunks(body_bytes: list[int]) -> None:
    """Each body the size of the last: what is read in one go stays near what it was meant to be."""
    size = CHUNK_FIRST
    for length in body_bytes:
        size = next_chunk(size, size * length)
        assert CHUNK_MIN <= size <= CHUNK_MAX
    for _ in range(5):
        size = next_chunk(size, size * 256 * 1024)
    assert size <= 16


def test_a_list_of_small_bodies_is_read_in_large_chunks() -> None:
    size = CHUNK_FIRST
    for _ in range(5):
        size = next_chunk(size, size * 1024)
    assert size == CHUNK_MAX
