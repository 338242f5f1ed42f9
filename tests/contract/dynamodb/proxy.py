"""A way to a real DynamoDB Local that is as unreliable as a test asks for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import aiohttp
import msgspec
from aiohttp import web


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes
    headers: dict[str, str]


@dataclass(frozen=True, slots=True)
class Call:
    operation: str
    body: dict[str, Any]
    forward: Callable[[dict[str, Any]], Awaitable[Answer]]
    """Sends a body to DynamoDB Local."""


class AnswerLost(Exception):
    """The connection ends without an answer."""


Fault: TypeAlias = Callable[[Call], Awaitable[Answer]]


class Proxy:
    """Forwards every call; the next ones of an operation meet the faults that were announced for it."""

    def __init__(self, upstream: str, session: aiohttp.ClientSession) -> None:
        self.endpoint = ""
        self.seen: list[tuple[str, dict[str, Any]]] = []
        self._upstream = upstream
        self._session = session
        self._faults: dict[str, list[Fault]] = {}

    def next(self, operation: str, *faults: Fault) -> None:
        self._faults.setdefault(operation, []).extend(faults)

    def count(self, operation: str) -> int:
        return sum(seen == operation for seen, _ in self.seen)

    async def handle(self, request: web.Request) -> web.Response:
        operation = request.headers["x-amz-target"].rpartition(".")[2]
        body = msgspec.json.decode(await request.read(), type=dict)
        self.seen.append((operation, body))

        async def forward(body: dict[str, Any]) -> Answer:
            headers = {
                name: request.headers[name] for name in ("x-amz-target", "x-amz-date", "authorization")
            } | {"content-type": "application/x-amz-json-1.0"}
            data = msgspec.json.encode(body)
            async with self._session.post(self._upstream, data=data, headers=headers) as response:
                kept = {
                    name: text for name, text in response.headers.items() if name.lower() == "x-amz-crc32"
                }
                return Answer(response.status, await response.read(), kept)

        call = Call(operation, body, forward)
        faults = self._faults.get(operation)
        try:
            answer = await (faults.pop(0)(call) if faults else forward(body))
        except AnswerLost:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        return web.Response(status=answer.status, body=answer.body, headers=answer.headers)


@asynccontextmanager
async def open_proxy(upstream: str) -> AsyncIterator[Proxy]:
    async with aiohttp.ClientSession() as session:
        proxy = Proxy(upstream, session)
        application = web.Application(client_max_size=64 << 20)
        application.router.add_post("/", proxy.handle)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            ((_, port),) = runner.addresses
            proxy.endpoint = f"http://127.0.0.1:{port}"
            yield proxy
        finally:
            await runner.cleanup()


# --- faults ----------------------------------------------------------------------------------------


def error(code: str, status: int = 400, **more: object) -> Fault:
    """Answered without a word to DynamoDB."""

    async def fault(call: Call) -> Answer:
        body = {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "as announced", **more}
        return Answer(status, msgspec.json.encode(body), {})

    return fault


async def lost_answer(call: Call) -> Answer:
    """DynamoDB did it; nobody hears of it."""
    await call.forward(call.body)
    raise AnswerLost


async def error_after_the_fact(call: Call) -> Answer:
    """DynamoDB did it, and answers 500."""
    await call.forward(call.body)
    return Answer(500, b'{"__type":"x#InternalServerError"}', {})


async def gateway_page(call: Call) -> Answer:
    """Something in between answers, in HTML."""
    return Answer(503, b"<html>try later</html>", {"content-type": "text/html"})


async def damaged_answer(call: Call) -> Answer:
    answer = await call.forward(call.body)
    return Answer(answer.status, answer.body.replace(b'"', b"'"), answer.headers)


async def half_of_a_batch_write(call: Call) -> Answer:
    requests = call.body["RequestItems"]
    done = {name: puts[::2] for name, puts in requests.items()}
    left = {name: puts[1::2] for name, puts in requests.items() if puts[1::2]}
    await call.forward({**call.body, "RequestItems": done})
    return Answer(200, msgspec.json.encode({"UnprocessedItems": left}), {})


async def half_of_a_batch_read(call: Call) -> Answer:
    requests = call.body["RequestItems"]
    done = {name: {**request, "Keys": request["Keys"][::2]} for name, request in requests.items()}
    left = {name: {**request, "Keys": request["Keys"][1::2]} for name, request in requests.items()}
    answer = await call.forward({**call.body, "RequestItems": done})
    body = {**msgspec.json.decode(answer.body, type=dict), "UnprocessedKeys": left}
    return Answer(200, msgspec.json.encode(body), {})


async def none_of_a_batch_write(call: Call) -> Answer:
    return Answer(200, msgspec.json.encode({"UnprocessedItems": call.body["RequestItems"]}), {})
