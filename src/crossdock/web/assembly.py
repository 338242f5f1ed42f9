"""Everything that is served, as one ASGI callable.

A request is first looked up among the raw lanes (a dict, before any framework); the rest is the management
API. Each request is measured once: its duration, by slice and class of status.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from typing import Any

import msgspec
from litestar.types import ControllerRouterHandler

from crossdock.http.asgi import (
    App,
    Message,
    Receive,
    Scope,
    Send,
    lane,
    send_json,
    send_problem,
    send_response,
)
from crossdock.http.management import management_app
from crossdock.http.problems import render
from crossdock.kit import metrics
from crossdock.kit.clock import Clock
from crossdock.kit.errors import MalformedRequest, NotFound
from crossdock.web import docs_page, openapi
from crossdock.web.health import ReadinessCheck, healthz, metrics_page, readyz
from crossdock.web.lanes import Lane, LaneTable

REQUEST_SECONDS = metrics.histogram(
    "http_request_seconds", "Requests by slice and class of status, with their duration.", ("slice", "status")
)

PLATFORM = "platform"
_STATUS_CLASSES = ("", "1xx", "2xx", "3xx", "4xx", "5xx")

Lifespan = Callable[[], AbstractAsyncContextManager[object]]


def build(
    handlers: Sequence[ControllerRouterHandler],
    lanes: Sequence[Lane],
    *,
    checks: Mapping[str, ReadinessCheck],
    slices: Sequence[str],
    version: str,
    clock: Clock,
    lifespan: Lifespan = nullcontext,
) -> App:
    """`handlers`: the slices' routers. `checks`: what `/readyz` asks. `lifespan`: entered before the first
    request, left after the last; if entering fails, the server does not start."""
    described = _Description(handlers, lanes, version)
    own = [
        Lane("/healthz", lane(healthz, "GET", "HEAD"), PLATFORM),
        Lane("/readyz", lane(readyz(checks), "GET", "HEAD"), PLATFORM),
        Lane("/metrics", lane(metrics_page, "GET"), PLATFORM),
        Lane("/openapi.json", lane(described.serve_json, "GET"), PLATFORM),
        Lane("/docs", lane(described.serve_page, "GET"), PLATFORM),
    ]
    return Assembly(handlers, LaneTable([*own, *lanes]), slices=slices, clock=clock, lifespan=lifespan)


class Assembly:
    def __init__(
        self,
        handlers: Sequence[ControllerRouterHandler],
        lanes: LaneTable,
        *,
        slices: Sequence[str],
        clock: Clock,
        lifespan: Lifespan,
    ) -> None:
        self._management = management_app(handlers)
        self._lanes = lanes
        self._slices = frozenset(slices)
        self._clock = clock
        self._lifespan = lifespan

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = scope["type"]
        if kind == "lifespan":
            await self._live(receive, send)
        elif kind == "http":
            found = self._lanes.find(scope["path"])
            if found is not None:
                await self._measured(found.handler, found.slice, scope, receive, send)
            else:
                await self._measured(self._manage, self._slice_of(scope["path"]), scope, receive, send)
        else:
            await self._management_app(scope, receive, send)

    async def _measured(self, app: App, label: str, scope: Scope, receive: Receive, send: Send) -> None:
        status_class = 5  # what the server answers when we raise
        started_at = self._clock.monotonic()

        async def watched_send(message: Message) -> None:
            nonlocal status_class
            if message["type"] == "http.response.start":
                status_class = message["status"] // 100
            await send(message)

        try:
            await app(scope, receive, watched_send)
        finally:
            elapsed_seconds = self._clock.monotonic() - started_at
            REQUEST_SECONDS.observe(elapsed_seconds, label, _STATUS_CLASSES[status_class])

    async def _manage(self, scope: Scope, receive: Receive, send: Send) -> None:
        """U+0000 can be in nothing that is stored, so no store is asked for it."""
        if "\0" in scope["path"]:
            await send_problem(send, render(NotFound("not_found", "Nothing is at this path.")))
        elif b"%00" in scope["query_string"]:
            error = MalformedRequest("malformed_query", "The query contains U+0000.")
            await send_problem(send, render(error))
        else:
            await self._management_app(scope, receive, send)

    async def _management_app(self, scope: Any, receive: Any, send: Any) -> None:
        await self._management(scope, receive, send)

    def _slice_of(self, path: str) -> str:
        parts = path.split("/", 3)
        return parts[2] if len(parts) > 2 and parts[2] in self._slices else PLATFORM

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        started = False
        try:
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(self._lifespan())
                await stack.enter_async_context(self._management.lifespan())
                started = True
                await send({"type": "lifespan.startup.complete"})
                await receive()
        except Exception as exception:
            phase = "shutdown" if started else "startup"
            await send({"type": f"lifespan.{phase}.failed", "message": str(exception)})
            raise
        await send({"type": "lifespan.shutdown.complete"})


class _Description:
    """The OpenAPI document and its page, made when first asked for: it takes longer than a start should."""

    def __init__(
        self, handlers: Sequence[ControllerRouterHandler], lanes: Sequence[Lane], version: str
    ) -> None:
        self._arguments = (handlers, lanes, version)
        self._json: bytes | None = None
        self._page: bytes | None = None

    async def serve_json(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await send_json(send, 200, await self._document())

    async def serve_page(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        if self._page is None:
            self._page = docs_page.render(msgspec.json.decode(await self._document())).encode()
        headers = (
            (b"content-type", b"text/html; charset=utf-8"),
            (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'"),
            (b"content-length", str(len(self._page)).encode()),
        )
        await send_response(send, 200, headers, self._page)

    async def _document(self) -> bytes:
        if self._json is None:
            self._json = await asyncio.to_thread(openapi.document, *self._arguments)
        return self._json
