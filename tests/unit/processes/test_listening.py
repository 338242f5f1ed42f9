from __future__ import annotations

import socket
import threading
import time

import pytest

from crossdock.kit.clock import SystemClock
from crossdock.kit.errors import Conflict
from crossdock.processes.inheritance import inherit
from crossdock.processes.listening import bind


def test_a_bound_socket_takes_connections() -> None:
    with bind("127.0.0.1", 0, SystemClock()) as listener:
        socket.create_connection(listener.getsockname(), timeout=5).close()


def test_a_taken_port_is_an_error_that_names_it_and_the_option() -> None:
    with bind("127.0.0.1", 0, SystemClock()) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(Conflict, match=f"{port}.*--port"):
            bind("127.0.0.1", port, SystemClock(), retry_seconds=0)


def test_a_port_that_comes_free_within_the_patience_is_taken() -> None:
    listener = bind("127.0.0.1", 0, SystemClock())
    port = listener.getsockname()[1]
    timer = threading.Timer(0.3, listener.close)
    timer.start()
    started = time.monotonic()
    with bind("127.0.0.1", port, SystemClock()) as again:
        assert again.getsockname()[1] == port
        assert time.monotonic() - started >= 0.2
    timer.join()


def test_an_address_that_is_not_ours_is_an_error_at_once() -> None:
    with pytest.raises(Conflict, match=r"192\.0\.2\.1"):
        bind("192.0.2.1", 0, SystemClock())


def test_a_name_that_does_not_resolve_is_an_error_at_once() -> None:
    with pytest.raises(Conflict, match=r"no-such-host\.invalid"):
        bind("no-such-host.invalid", 0, SystemClock())


def test_a_child_command_run_by_hand_says_what_to_run() -> None:
    with pytest.raises(RuntimeError, match="crossdock up"):
        inherit({})
