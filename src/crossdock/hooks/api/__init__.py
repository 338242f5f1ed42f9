"""`/v1/hooks`, a module for each kind of thing."""

from __future__ import annotations

from litestar import Router

from crossdock.hooks.api import accounts, configuration, reading, samples, stream
from crossdock.hooks.composition import HooksServices
from crossdock.http.guards import Authenticator


def routers(services: HooksServices, authenticator: Authenticator) -> list[Router]:
    return [
        *accounts.routers(services.accounts, authenticator),
        *configuration.routers(services.sources, authenticator),
        *reading.routers(services.events, authenticator),
        samples.router(services.samples, authenticator),
        stream.router(services.streams, authenticator),
    ]
