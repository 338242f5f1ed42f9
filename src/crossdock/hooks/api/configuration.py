"""The handlers by which sources are configured, over `service.configuration`."""

from __future__ import annotations

from litestar import Router

from crossdock.hooks.api.connections import ConnectionsApi, SourceConnectionsApi
from crossdock.hooks.api.sources import SourcesApi
from crossdock.hooks.api.trials import TrialsApi
from crossdock.hooks.service.configuration import SourceServices
from crossdock.http.guards import Authenticator
from crossdock.http.management import guarded_router


def routers(services: SourceServices, authenticator: Authenticator) -> list[Router]:
    shared = {
        "sources": services.sources,
        "connections": services.connections,
        "trials": services.trials,
    }
    handlers = [SourcesApi, SourceConnectionsApi, ConnectionsApi, TrialsApi]
    return [guarded_router(authenticator, handlers, shared)]
