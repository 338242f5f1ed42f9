"""A lane: an HTTP server on the socket that all lanes share.

A graceful stop closes the listening socket, lets requests in flight finish within the grace, cancels the
rest, and then drains: what was accepted but not yet written is written. Responses that never end (event
streams) must watch `Child.stopping` themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

import uvicorn

from crossdock.processes.child import Child

if TYPE_CHECKING:
    from uvicorn._types import ASGIApplication

# Longer than the idle timeout of common load balancers (60 s), so that it is they who close idle connections.
KEEP_ALIVE_SECONDS = 75


async def serve_lane(app: ASGIApplication, child: Child, drain: Callable[[], Awaitable[None]]) -> None:
    """Serves until the child is told to stop; returns after the drain."""
    config = uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        lifespan="auto",
        access_log=False,
        log_config=None,
        server_header=False,
        # Whose X-Forwarded-* headers are believed is decided behind this, by TRUSTED_PROXIES.
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=math.ceil(child.grace_seconds),
    )
    server = _Server(config, on_started=child.ready)
    serving = asyncio.create_task(server.serve(sockets=[child.inheritance.open_listener()]))
    stop = asyncio.create_task(child.stopping.wait())
    try:
        await asyncio.wait((serving, stop), return_when=asyncio.FIRST_COMPLETED)
        server.should_exit = True
        await serving
    finally:
        stop.cancel()
        await drain()


class _Server(uvicorn.Server):
    """Tells when it listens, and leaves signals to the child, which has more reasons to stop than they."""

    def __init__(self, config: uvicorn.Config, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_started()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
