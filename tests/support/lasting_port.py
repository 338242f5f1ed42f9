"""A port that a server can be started on again and again."""

from __future__ import annotations

import random
import socket

# Below what Linux and macOS take for outgoing connections. From among those, a client that tries to reach a
# server that is away would sooner or later be given the server's own port, be connected to itself, and keep
# the server from coming back.
_FIRST, _LAST = 20_000, 32_000


def lasting_port() -> int:
    draw = random.SystemRandom()
    while True:
        port = draw.randint(_FIRST, _LAST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
