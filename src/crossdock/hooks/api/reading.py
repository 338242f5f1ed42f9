"""The handlers by which events are read and replayed, over `service.reading`."""

from __future__ import annotations

from litestar import Router

from crossdock.hooks.api.events import EventsApi, SourceEventsApi
from crossdock.hooks.api.replays import EventReplaysApi, ReplaysApi
from crossdock.hooks.service.reading import EventServices
from crossdock.http.guards import Authenticator
from crossdock.http.management import guarded_router


def routers(services: EventServices, authenticator: Authenticator) -> list[Router]:
    shared = {"history": services.history, "replays": services.replays}
    handlers = [SourceEventsApi, EventsApi, EventReplaysApi, ReplaysApi]
    return [guarded_router(authenticator, handlers, shared)]
