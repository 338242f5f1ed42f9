"""`/v1/hooks/events`, and a source's list of them: what came, and what became of it."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec
from litestar import Controller, Response, get
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery, QueryParameter

from crossdock.hooks.model import EventStatus
from crossdock.hooks.rules.filters import Filters, parse_filters
from crossdock.hooks.rules.searching import span_of
from crossdock.hooks.service.history import History, Search
from crossdock.hooks.service.principals import READ
from crossdock.hooks.service.shown_events import EventSummary, ShownAttempt, ShownEvent, ShownRefusal
from crossdock.http.guards import requires
from crossdock.http.pages import Page, PageRequest
from crossdock.http.principals import Principal
from crossdock.kit.errors import FieldProblem, InvalidInput

_HEADER_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?")

SINCE = QueryParameter(name="from", description="The first time of receipt, in RFC 3339.")
UNTIL = QueryParameter(name="to", description="The last time of receipt, in RFC 3339.")
FILTERS = QueryParameter(name="q", description="Filters, as a connection has them: a JSON array of rules.")


class SourceEventsApi(Controller):
    path = "/v1/hooks/sources/{source_id:str}"
    tags = ("hooks",)
    guards = (requires(READ),)

    @get("/events", summary="List or search a source's events, newest first")
    async def list(
        self,
        source_id: FromPath[str],
        history: NamedDependency[History],
        principal: NamedDependency[Principal],
        page: NamedDependency[PageRequest],
        *,
        status: FromQuery[EventStatus | None] = None,
        since: Annotated[str | None, SINCE] = None,
        until: Annotated[str | None, UNTIL] = None,
        q: Annotated[str | None, FILTERS] = None,
    ) -> Page[EventSummary]:
        """Times are inclusive. A page looks at 5,000 events or for 2 seconds at most: with `status` or `q` it
        may be short, or empty, and yet have a `next_cursor`, which goes on where it stopped."""
        search = Search(span_of(since, until), status, parse_query(q))
        return await history.events(principal, source_id, search, page)

    @get("/refused", summary="List the requests that a source refused, newest first")
    async def refused(
        self,
        source_id: FromPath[str],
        history: NamedDependency[History],
        principal: NamedDependency[Principal],
    ) -> Page[ShownRefusal]:
        """With the reason. The last hundred are kept, for a week."""
        return await history.refused(principal, source_id)


class EventsApi(Controller):
    path = "/v1/hooks/events/{event_id:str}"
    tags = ("hooks",)
    guards = (requires(READ),)

    @get(summary="Show an event and its deliveries")
    async def show(
        self,
        event_id: FromPath[str],
        history: NamedDependency[History],
        principal: NamedDependency[Principal],
    ) -> ShownEvent:
        """A body over 64 KB is left out (`body_truncated`): it is at `body_url`."""
        return await history.shown(principal, event_id, f"/v1/hooks/events/{event_id}/body")

    @get("/body", summary="Download an event's body, byte for byte")
    async def body(
        self,
        event_id: FromPath[str],
        history: NamedDependency[History],
        principal: NamedDependency[Principal],
    ) -> Response[bytes]:
        event = await history.event(principal, event_id)
        return Response(event.body, headers=body_headers(event.content_type, event.event_id))

    @get("/attempts", summary="List the calls made for an event, in order")
    async def attempts(
        self,
        event_id: FromPath[str],
        history: NamedDependency[History],
        principal: NamedDependency[Principal],
        page: NamedDependency[PageRequest],
    ) -> Page[ShownAttempt]:
        """To all connections, and of all replays. One that was cut short, or that was our own fault, is not
        charged: the next one has the same number."""
        return await history.attempts(principal, event_id, page)


def parse_query(text: str | None) -> Filters | None:
    if text is None:
        return None
    try:
        raw = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        problem = FieldProblem("q", "wrong_format", 'JSON: [{"on": "body", "match": {…}}].')
        raise InvalidInput("The filters are not valid.", problem) from error
    return parse_filters(raw, "q")


def body_headers(content_type: str, name: str) -> dict[str, str]:
    """Anybody may have sent the body: no browser may take it for a page of ours, nor guess what it is."""
    is_sound = _HEADER_VALUE.fullmatch(content_type) is not None
    return {
        "content-type": content_type if is_sound else "application/octet-stream",
        "content-disposition": f'attachment; filename="{name}"',
        "x-content-type-options": "nosniff",
        "content-security-policy": "default-src 'none'; sandbox",
    }
