"""A destination of webhooks on loopback: remembers what came, and answers as it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType

from aiohttp import web
from tests.support.ports import free_port


@dataclass(frozen=True)
class Got:
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def message_id(self) -> str:
        return self.headers["webhook-id"]


class Receiver:
    """`async with Receiver() as receiver:`; `receiver.status = 500` breaks it."""

    def __init__(self) -> None:
        self.port = free_port()
        self.got: list[Got] = []
        self.status = 200
        self.answer_headers: dict[str, str] = {}
        self.delay_seconds = 0.0
        self.answer: Callable[[Got], int] | None = None
        self.in_flight = 0
        self.in_flight_max = 0
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    def ids(self) -> list[str]:
        return [each.message_id for each in self.got]

    async def start(self) -> None:
        app = web.Application(client_max_size=2**20)
        app.router.add_route("*", "/{path:.*}", self._take)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()

    async def stop(self) -> None:
        """Connections are refused from now on."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _take(self, request: web.Request) -> web.Response:
        self.in_flight += 1
        self.in_flight_max = max(self.in_flight_max, self.in_flight)
        try:
            got = Got(request.path, request.headers.copy(), await request.read())
            if self.delay_seconds:
                await asyncio.sleep(self.delay_seconds)
            self.got.append(got)
            status = self.status if self.answer is None else self.answer(got)
            return web.Response(status=status, text="noted", headers=self.answer_headers)
        finally:
            self.in_flight -= 1

    async def __aenter__(self) -> Receiver:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
