"""What came: a source's events listed and searched, one of them shown with all that became of it.

A list reads events by their keys, newest first, so that what comes or changes meanwhile moves nothing in it.
A search looks at so many events a page and no more; its cursor goes on where that ended, so a page may be
short, or empty, and yet have one after it.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from crossdock.engines.items.port import Item, Items
from crossdock.hooks.model import Attempt, Event, EventStatus
from crossdock.hooks.rules.filters import Filters
from crossdock.hooks.rules.searching import (
    CHUNK_FIRST,
    Allowance,
    SearchBudget,
    Span,
    checked_position,
    looked_through,
    next_chunk,
)
from crossdock.hooks.service.event_finding import EventFinder
from crossdock.hooks.service.fan_out import subject_of
from crossdock.hooks.service.shown_events import (
    EventSummary,
    ShownAttempt,
    ShownEvent,
    ShownRefusal,
    shown_attempt,
    shown_event,
    shown_refusal,
    summary_of,
)
from crossdock.hooks.service.trials import Sample
from crossdock.hooks.store.deliveries import attempt_of, delivery_of
from crossdock.hooks.store.duplicates import refused_of, refused_requests
from crossdock.hooks.store.events import event_of, events_of_source, records_of_event, sort_key_of
from crossdock.http.pages import Page, PageRequest, page_of
from crossdock.http.principals import Principal
from crossdock.kit.clock import Clock
from crossdock.kit.errors import NotFound
from crossdock.kit.pagination import encode_cursor

RECORDS_PAGE = 100
_POSITION = "after"

_Placed: TypeAlias = tuple[int, str, Attempt]
"""An attempt after what it is sorted by."""


@dataclass(frozen=True, slots=True)
class Search:
    """What is looked for among a source's events."""

    span: Span
    status: EventStatus | None = None
    filters: Filters | None = None

    @property
    def wants_all(self) -> bool:
        return self.status is None and self.filters is None

    def wants(self, event: Event) -> bool:
        if self.status is not None and event.status is not self.status:
            return False
        return self.filters is None or self.filters.matches(subject_of(event))


class History:
    def __init__(
        self, items: Items, finder: EventFinder, clock: Clock, budget: SearchBudget | None = None
    ) -> None:
        self._items = items
        self._finder = finder
        self._clock = clock
        self._budget = budget or SearchBudget()

    # --- many ---------------------------------------------------------------------------------------

    async def events(
        self, principal: Principal, source_id: str, search: Search, page: PageRequest
    ) -> Page[EventSummary]:
        await self._finder.source(principal, source_id)
        span, after = search.span, _position(page, search.span)
        allowance = Allowance(self._budget, self._clock)
        found: list[EventSummary] = []
        size = CHUNK_FIRST
        while True:
            room = page.limit - len(found)
            limit = min(size, room) if search.wants_all else size
            part = await self._items.query(
                events_of_source(source_id, span.from_ms, span.to_ms, limit, after)
            )
            events = [event_of(item) for item in part.items]
            wanted, count = await _looked_through(events, search, room, allowance)
            found += [summary_of(event) for event in wanted]
            if count == len(events) and part.cursor is None:
                return Page(found, None)
            after = sort_key_of(events[count - 1]) if count else after
            if count < len(events) or len(found) == page.limit or allowance.is_spent:
                assert after is not None, "a page looks at one event at least"
                return Page(found, encode_cursor({_POSITION: after}))
            size = next_chunk(size, sum(len(event.body) for event in events))

    async def refused(self, principal: Principal, source_id: str) -> Page[ShownRefusal]:
        """All that are kept, newest first."""
        await self._finder.source(principal, source_id)
        page = await self._items.query(refused_requests(source_id))
        requests = sorted(map(refused_of, page.items), key=lambda each: each.refused_at, reverse=True)
        return Page([shown_refusal(each) for each in requests], None)

    # --- one ----------------------------------------------------------------------------------------

    async def event(self, principal: Principal, event_id: str) -> Event:
        return await self._finder.event(principal, event_id)

    async def shown(self, principal: Principal, event_id: str, body_url: str) -> ShownEvent:
        event = await self._finder.event(principal, event_id)
        deliveries = [delivery_of(item) async for items in self._records(event_id, "DLV#") for item in items]
        return shown_event(event, deliveries, body_url)

    async def attempts(self, principal: Principal, event_id: str, page: PageRequest) -> Page[ShownAttempt]:
        """In the order in which they were made. They are kept in that of their numbers, of several
        connections and replays, so all of them are read for a page; no more than a page is held."""
        await self._finder.event(principal, event_id)
        after = _attempt_position(page)
        first: list[_Placed] = []
        async for items in self._records(event_id, "ATT#"):
            placed = (_placed(item) for item in items)
            following = (each for each in placed if after is None or each[:2] > after)
            first = heapq.nsmallest(page.limit + 1, (*first, *following), key=_place)
        found = page_of(first, page.limit, lambda each: {"attempted_at": each[0], "key": each[1]})
        return found.map(lambda each: shown_attempt(each[2]))

    async def find_sample(self, principal: Principal, event_id: str) -> Sample | None:
        """The event's request, to try filters and transforms on; None: there is no such event."""
        try:
            event = await self._finder.event(principal, event_id)
        except NotFound:
            return None
        return Sample(event.body, event.headers, event.query, event.path, event.method)

    async def _records(self, event_id: str, prefix: str) -> AsyncIterator[list[Item]]:
        query = records_of_event(event_id, prefix, RECORDS_PAGE)
        while True:
            page = await self._items.query(query)
            yield page.items
            if page.cursor is None:
                return
            query = replace(query, after=page.cursor)


async def _looked_through(
    events: list[Event], search: Search, room: int, allowance: Allowance
) -> tuple[list[Event], int]:
    """Filters are bounded, but many of them take a while: others are answered meanwhile."""
    if search.filters is None:
        return looked_through(events, search.wants, room, allowance)
    return await asyncio.to_thread(looked_through, events, search.wants, room, allowance)


def _position(page: PageRequest, span: Span) -> str | None:
    after = page.after({_POSITION: str})
    return None if after is None else checked_position(str(after[_POSITION]), span)


def _attempt_position(page: PageRequest) -> tuple[int, str] | None:
    after = page.after({"attempted_at": int, "key": str})
    return None if after is None else (int(after["attempted_at"]), str(after["key"]))


def _placed(item: Item) -> _Placed:
    attempt = attempt_of(item)
    return attempt.attempted_at, str(item["SK"]), attempt


def _place(placed: _Placed) -> tuple[int, str]:
    return placed[:2]
