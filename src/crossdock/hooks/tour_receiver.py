"""The destination that the tour of the hooks slice starts on this machine, and breaks and mends."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from email.message import Message
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True)
class Received:
    headers: Message
    body: bytes

    def header(self, name: str) -> str:
        return str(self.headers.get(name, ""))


@dataclass(slots=True)
class TourReceiver:
    """Listens on a free port of loopback from `start` to `stop`, and answers with `status`."""

    status: int = 200
    received: list[Received] = field(default_factory=list)
    _server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        assert self._server is not None, "it was not started"
        return f"http://127.0.0.1:{self._server.server_port}/hook"

    def start(self) -> None:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            timeout = 10

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                receiver.received.append(Received(self.headers, body))
                self.send_response(receiver.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """The tour says what happens."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        serve = partial(self._server.serve_forever, poll_interval=0.05)
        threading.Thread(target=serve, name="tour receiver", daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
