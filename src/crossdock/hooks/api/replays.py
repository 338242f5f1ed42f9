"""Replays: one event by `/v1/hooks/events/{id}/replay`, many by `/v1/hooks/replays`."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery, JSONBody
from msgspec import Meta

from crossdock.hooks.model import EventStatus
from crossdock.hooks.rules.searching import span_of
from crossdock.hooks.service.principals import READ, WRITE
from crossdock.hooks.service.replays import Choice, ReplayedEvent, ReplayPlan, Replays, ShownReplay
from crossdock.http.bodies import RequestBody
from crossdock.http.guards import requires
from crossdock.http.idempotency import IdempotentRequest, created
from crossdock.http.pages import Page, PageRequest
from crossdock.http.principals import Principal

Id: TypeAlias = Annotated[str, Meta(max_length=64)]


class EventReplay(RequestBody):
    connection_id: Id | None = None


class NewReplay(RequestBody, kw_only=True):
    source_id: Id
    from_: str = msgspec.field(name="from")
    to: str
    status: Literal["processing", "filtered", "delivered", "retrying", "failed"] | None = None
    connection_id: Id | None = None
    dry_run: bool = False


class EventReplaysApi(Controller):
    path = "/v1/hooks/events/{event_id:str}/replay"
    tags = ("hooks",)

    @post(guards=[requires(WRITE)], summary="Send an event again")
    async def replay(
        self,
        event_id: FromPath[str],
        data: JSONBody[EventReplay],
        replays: NamedDependency[Replays],
        principal: NamedDependency[Principal],
        idempotency: NamedDependency[IdempotentRequest | None],
    ) -> Response[ReplayedEvent]:
        """To every connection whose filters match it now; or to `connection_id`, whatever its filters say.
        Attempts begin anew. Receivers see `generation` in the header `crossdock-replay`."""
        return created(await replays.replay_event(principal, event_id, data.connection_id, idempotency))


class ReplaysApi(Controller):
    path = "/v1/hooks/replays"
    tags = ("hooks",)

    @post(guards=[requires(WRITE)], summary="Send many events again, or plan to")
    async def start(
        self,
        data: JSONBody[NewReplay],
        replays: NamedDependency[Replays],
        principal: NamedDependency[Principal],
        idempotency: NamedDependency[IdempotentRequest | None],
    ) -> Response[ShownReplay | ReplayPlan]:
        """A source's events, by their time of receipt (inclusive). With `status` only events of that status,
        and of their deliveries only those that stand so: what failed goes again to where it failed. Filters
        are asked again. With `dry_run` nothing is sent, and the answer is 200: how many it would be."""
        status = None if data.status is None else EventStatus(data.status)
        choice = Choice(data.source_id, span_of(data.from_, data.to), status, data.connection_id)
        if data.dry_run:
            return Response(await replays.plan(principal, choice), status_code=200)
        once = await replays.start(principal, choice, idempotency)
        answer = created(once)
        return Response(answer.content, status_code=201, headers=answer.headers)

    @get(guards=[requires(READ)], summary="List a source's replays, newest first")
    async def list(
        self,
        source_id: FromQuery[str],
        replays: NamedDependency[Replays],
        principal: NamedDependency[Principal],
        page: NamedDependency[PageRequest],
    ) -> Page[ShownReplay]:
        return await replays.list(principal, source_id, page)

    @get("/{replay_id:str}", guards=[requires(READ)], summary="Show a replay and how far it has come")
    async def show(
        self,
        replay_id: FromPath[str],
        replays: NamedDependency[Replays],
        principal: NamedDependency[Principal],
    ) -> ShownReplay:
        """Kept for 30 days."""
        return await replays.get(principal, replay_id)

    @post("/{replay_id:str}/cancel", status_code=200, guards=[requires(WRITE)], summary="Cancel a replay")
    async def cancel(
        self,
        replay_id: FromPath[str],
        replays: NamedDependency[Replays],
        principal: NamedDependency[Principal],
    ) -> ShownReplay:
        """It stops within a second. What was replayed until then stays so."""
        return await replays.cancel(principal, replay_id)
