"""Loopback ports for servers that tests start."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable


def free_port() -> int:
    """A port that nothing listens on now. Another process may take it first: start at once, and check."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_listening(port: int, still_running: Callable[[], bool], timeout_seconds: float = 15) -> None:
    """Returns when the port accepts connections. Raises if the server ended or took too long."""
    deadline = time.monotonic() + timeout_seconds
    while time.monotonic() < deadline:
        if not still_running():
            raise RuntimeError(f"The server for port {port} ended while starting.")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise TimeoutError(f"Nothing listens on port {port} after {timeout_seconds} s.")
