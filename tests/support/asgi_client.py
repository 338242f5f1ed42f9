"""An ASGI callable asked in-process, with every byte of the request in the test's hands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import msgspec

from crossdock.http.asgi import App, Message, Scope


@dataclass(frozen=True)
class Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]

    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    @property
    def code(self) -> str:
        """The problem's code; fails for anything that is no well-formed problem."""
        assert self.header("content-type") == "application/problem+json", self
        problem = self.json()
        assert problem["status"] == self.status
        assert {"type", "title", "detail"} <= problem.keys()
        return str(problem["code"])

    @property
    def fields(self) -> list[tuple[str, str]]:
        return [(each["field"], each["code"]) for each in self.json()["errors"]]


class AsgiClient:
    def __init__(self, app: App, key: str | None = None) -> None:
        self._app = app
        self._key = key

    def with_key(self, key: str | None) -> AsgiClient:
        return AsgiClient(self._app, key)

    async def get(self, target: str, **more: Any) -> Answer:
        return await self.request("GET", target, **more)

    async def post(self, target: str, json: object = None, **more: Any) -> Answer:
        return await self.request("POST", target, json=json, **more)

    async def request(
        self,
        method: str,
        target: str,
        *,
        json: object = None,
        body: bytes | Sequence[bytes] = b"",
        headers: dict[str, str] | Sequence[tuple[str, str]] = (),
    ) -> Answer:
        """`target` is as on the wire, percent-encoded; a server unquotes the path and leaves the query."""
        raw_path, _, query = target.partition("?")
        given = list(headers.items() if isinstance(headers, dict) else headers)
        if json is not None:
            body = msgspec.json.encode(json)
            given.append(("content-type", "application/json"))
        if self._key is not None:
            given.append(("authorization", f"Bearer {self._key}"))
        scope: Scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(raw_path),
            "raw_path": raw_path.encode(),
            "root_path": "",
            "query_string": query.encode("latin-1"),
            "headers": [(b"host", b"test"), *((k.lower().encode(), v.encode("latin-1")) for k, v in given)],
            "client": ("127.0.0.1", 1),
            "server": ("test", 80),
            "state": {},
        }
        return await ask(self._app, scope, [body] if isinstance(body, bytes) else body)


async def ask(app: App, scope: Scope, chunks: Sequence[bytes]) -> Answer:
    incoming: list[Message] = [
        {"type": "http.request", "body": chunk, "more_body": position < len(chunks) - 1}
        for position, chunk in enumerate(chunks)
    ]
    sent: list[Message] = []

    async def receive() -> Message:
        return incoming.pop(0) if incoming else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    assert sent[0]["type"] == "http.response.start"
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in sent[0]["headers"]]
    return Answer(sent[0]["status"], headers, b"".join(message.get("body", b"") for message in sent[1:]))
