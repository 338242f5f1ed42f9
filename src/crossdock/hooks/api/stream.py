"""`/v1/hooks/stream`: what happens to a source's events, as it happens."""

from __future__ import annotations

from typing import Any

from litestar import Controller, Request, Router, get
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import FromQuery

from crossdock.hooks.service.live_streams import LiveStreams
from crossdock.hooks.service.principals import READ
from crossdock.http.guards import Authenticator, requires
from crossdock.http.management import guarded_router
from crossdock.http.principals import Principal, require
from crossdock.http.sse import MEDIA_TYPE, EventStream

_DESCRIBED = {
    200: ResponseSpec(str, media_type=MEDIA_TYPE, description="Server-Sent Events", generate_examples=False)
}


class StreamApi(Controller):
    path = "/v1/hooks/stream"
    tags = ("hooks",)

    @get(
        guards=[requires(READ)],
        responses=_DESCRIBED,
        summary="Listen to a source's events and their deliveries, live",
    )
    async def listen(
        self,
        request: Request[Any, Any, Any],
        source_id: FromQuery[str],
        streams: NamedDependency[LiveStreams],
        authenticator: NamedDependency[Authenticator],
    ) -> EventStream:
        """Server-Sent Events until either side ends them. `listening`: it begins. `event`: one was accepted
        ({event_id, source_id, method, path, content_type, received_at, size}). `delivery`: one went from a
        state to another ({event_id, connection_id, state, attempts, status_code?}). `lagged`: something is
        missing here, so come back, or list the events. Who comes back with `Last-Event-ID` gets the events
        since, 200 at most; one may come twice."""
        scope: Any = request.scope

        async def authenticate() -> Principal:
            principal = await authenticator.authenticate(scope)
            require(principal, READ)
            return principal

        return await streams.open(source_id, request.headers.get("last-event-id"), authenticate)


def router(streams: LiveStreams, authenticator: Authenticator) -> Router:
    return guarded_router(authenticator, [StreamApi], {"streams": streams, "authenticator": authenticator})
