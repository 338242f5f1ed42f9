"""The product's one listening socket, bound once and handed to every lane."""

from __future__ import annotations

import errno
import socket
import time

from crossdock.kit.clock import Clock
from crossdock.kit.errors import Conflict

# The lanes of a supervisor that was killed let go of the port a moment after its life pipe closed.
RETRY_SECONDS = 5.0

_BACKLOG = 2048


def bind(host: str, port: int, clock: Clock, *, retry_seconds: float = RETRY_SECONDS) -> socket.socket:
    """A listening socket; port 0 takes any free one. Raises `Conflict` when it can't be had."""
    give_up_at = clock.monotonic() + retry_seconds
    while True:
        try:
            return _listen(host, port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or clock.monotonic() >= give_up_at:
                raise _cannot_listen(host, port, error) from error
        time.sleep(0.05)


def _listen(host: str, port: int) -> socket.socket:
    family, _, _, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    dual_stack = family == socket.AF_INET6 and address[0] == "::"
    return socket.create_server(
        address, family=family, backlog=_BACKLOG, dualstack_ipv6=dual_stack and socket.has_dualstack_ipv6()
    )


def _cannot_listen(host: str, port: int, error: OSError) -> Conflict:
    if error.errno == errno.EADDRINUSE:
        return Conflict(
            "port_taken",
            f"Port {port} on {host} is taken by another program. Stop it, or choose one with --port.",
        )
    if error.errno == errno.EACCES:
        return Conflict(
            "port_not_allowed",
            f"This account may not listen on port {port}. Choose one from 1024 up with --port.",
        )
    return Conflict(
        "address_not_available",
        f"Can't listen on {host}, port {port}: {error.strerror or error}. See --host.",
    )
