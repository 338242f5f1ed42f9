"""A sample sent to a connection by hand: over HTTP and by the command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from uuid import uuid4

import pytest
from standardwebhooks import Webhook
from tests.support.ports import free_port
from tests.support.server import Server

from crossdock.terminal.failures import CommandFailed

GOT: list[tuple[dict[str, str], bytes]] = []


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        GOT.append((dict(self.headers.items()), self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(202)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"noted")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def receiver_url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook"
    server.shutdown()
    server.server_close()


def connect(server: Server, url: str) -> dict[str, Any]:
    operator = server.client()
    user = operator.post("/v1/hooks/users", {"email": f"{uuid4().hex}@example.com", "name": "Ann"})
    wanted = {"user_id": user["user_id"], "name": "a source", "provider": "github"}
    source = operator.post("/v1/hooks/sources", wanted)
    path = f"/v1/hooks/sources/{source['source_id']}/connections"
    made: dict[str, Any] = operator.post(path, {"name": "mine", "destination_url": url})
    return made


def test_a_sample_arrives_signed_and_its_answer_is_shown(embedded_server: Server, receiver_url: str) -> None:
    made = connect(embedded_server, receiver_url)
    sent = embedded_server.client().post(f"/v1/hooks/connections/{made['connection_id']}/test")
    assert (sent["succeeded"], sent["status_code"], sent["response_body"]) == (True, 202, "noted")
    headers, body = GOT[-1]
    assert json.loads(body)["type"] == "crossdock.test"
    Webhook(made["signing_secret"]).verify(body, headers)
    shown = embedded_server.client().get(f"/v1/hooks/connections/{made['connection_id']}")
    assert shown["delivery_count"] == 0


def test_the_command_shows_a_destination_that_does_not_answer(embedded_server: Server) -> None:
    made = connect(embedded_server, f"http://127.0.0.1:{free_port()}/hook")
    result = embedded_server.command("hooks", "connections", "test", made["connection_id"], "--json")
    assert result.exit_code == 0, result.output
    sent = json.loads(result.stdout)
    assert (sent["succeeded"], sent["status_code"]) == (False, 0)
    assert sent["error"].startswith("connect_failed: ")


def test_a_connection_that_is_not_there_is_404(embedded_server: Server) -> None:
    with pytest.raises(CommandFailed) as refusal:
        embedded_server.client().post("/v1/hooks/connections/conn_AAAAAAAAAAAAAAAA/test")
    assert refusal.value.status == 404
