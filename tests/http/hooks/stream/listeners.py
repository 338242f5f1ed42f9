"""Processes that tell one another of events, and clients that listen to one of them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from tests.support.clock import ManualClock
from tests.support.hooks_sources import OPERATOR_KEY, KeysByHeart, Operator, Served
from tests.support.waiting import eventually

from crossdock.engines.notifications import Notifications
from crossdock.engines.sql.target import PostgresTarget
from crossdock.hooks.api.stream import router
from crossdock.hooks.model import Delivery, DeliveryState, Event, EventStatus
from crossdock.hooks.service.live import FLUSH_SECONDS, LISTENING, LIVE, LiveFeed
from crossdock.hooks.service.live_streams import LiveStreams
from crossdock.hooks.store.events import new_event
from crossdock.http.asgi import App, Message, Scope
from crossdock.http.guards import Authenticator
from crossdock.http.principals import Principal
from crossdock.kit.ids import nanoid
from crossdock.web.assembly import build

STREAM = "/v1/hooks/stream"


@dataclass(frozen=True)
class ServerEvent:
    name: str
    data: Any
    id: str | None = None


@dataclass
class Listener:
    """A client that has asked for a stream."""

    messages: list[Message] = field(default_factory=list)
    leaves: asyncio.Event = field(default_factory=asyncio.Event)
    reads: asyncio.Event = field(default_factory=asyncio.Event)
    ended: bool = False

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])

    @property
    def text(self) -> str:
        return b"".join(message.get("body", b"") for message in self.messages[1:]).decode()

    @property
    def problem_code(self) -> str:
        return str(msgspec.json.decode(self.text)["code"])

    @property
    def events(self) -> list[ServerEvent]:
        """After the one with which it began."""
        return [each for each in self.everything if each.name != "listening"]

    @property
    def everything(self) -> list[ServerEvent]:
        found = []
        for block in self.text.split("\n\n"):
            fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
            if "event" in fields:
                data = msgspec.json.decode(fields["data"])
                found.append(ServerEvent(fields["event"], data, fields.get("id")))
        return found

    def named(self, name: str) -> list[ServerEvent]:
        return [each for each in self.events if each.name == name]

    @property
    def event_ids(self) -> list[str]:
        return [each.data["event_id"] for each in self.named("event")]


@asynccontextmanager
async def asking(
    app: App, query: str, key: str | None, last_event_id: str | None = None
) -> AsyncIterator[Listener]:
    """From the first answer until the client leaves."""
    listener = Listener()
    listener.reads.set()
    headers = [(b"host", b"test")]
    if key is not None:
        headers.append((b"authorization", f"Bearer {key}".encode()))
    if last_event_id is not None:
        headers.append((b"last-event-id", last_event_id.encode()))
    scope: Scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": STREAM,
        "raw_path": STREAM.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("test", 80),
        "state": {},
    }

    async def receive() -> Message:
        await listener.leaves.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        await listener.reads.wait()
        listener.messages.append(message)

    async def serve() -> None:
        await app(scope, receive, send)
        listener.ended = True

    task = asyncio.create_task(serve())
    try:
        await eventually(lambda: len(listener.messages) > 1 or task.done())
        yield listener
    finally:
        listener.leaves.set()
        await asyncio.wait_for(task, 5)


class RevocableKeys(KeysByHeart):
    """Keys are known by heart, but for those that were revoked."""

    def __init__(self) -> None:
        self.revoked: set[str] = set()
        self.failing: Exception | None = None

    async def resolve(self, credential: str) -> Principal | None:
        if self.failing is not None:
            raise self.failing
        return None if credential in self.revoked else await super().resolve(credential)


@dataclass
class Node:
    """One process: a feed of its own, connected to the others by PostgreSQL alone."""

    feed: LiveFeed
    notifications: Notifications
    keys: RevocableKeys
    app: App
    running: asyncio.Task[None]
    clock: ManualClock

    def listening(
        self, source_id: str, key: str | None = OPERATOR_KEY, last_event_id: str | None = None
    ) -> AbstractAsyncContextManager[Listener]:
        return asking(self.app, f"source_id={source_id}", key, last_event_id)

    async def reaches(self, listener: Listener, make_event: Callable[[], Event]) -> None:
        """Accepts events until the listener hears of one: from then on it hears of all."""
        async with asyncio.timeout(10):
            while not listener.event_ids:
                self.feed.accepted(make_event())
                await asyncio.sleep(0.02)


@dataclass
class Tap:
    listening: list[str] = field(default_factory=list)
    live: list[str] = field(default_factory=list)
    notifications: Notifications | None = None


@dataclass
class World:
    served: Served
    database: PostgresTarget
    stack: AsyncExitStack

    async def node(
        self, *, streams_max: int = 200, keep_alive_seconds: float = 15.0, announce_seconds: float = 5.0
    ) -> Node:
        notifications, clock = Notifications(self.database, uniform=lambda: 0.1), ManualClock()
        feed = LiveFeed(notifications, clock, streams_max=streams_max, announce_seconds=announce_seconds)
        streams = LiveStreams(
            self.served.items,
            feed,
            self.served.services.sources,
            self.served.clock,
            check_seconds=0.02,
            keep_alive_seconds=keep_alive_seconds,
        )
        keys = RevocableKeys()
        authenticator = Authenticator({"dk_": Operator(), "fh_": keys})
        app = build(
            [router(streams, authenticator)],
            [],
            checks={},
            slices=["hooks"],
            version="0",
            clock=self.served.clock,
        )
        connected = asyncio.create_task(notifications.run())
        running = asyncio.create_task(feed.run())
        self.stack.push_async_callback(_stopped, connected, running)
        await eventually(lambda: notifications.listening)
        await asyncio.sleep(2 * FLUSH_SECONDS)  # it asks who listens, whose streams then lag
        return Node(feed, notifications, keys, app, running, clock)

    async def tap(self) -> Tap:
        """Whatever any process tells."""
        notifications, tap = Notifications(self.database, uniform=lambda: 0.1), Tap()
        notifications.listen(LISTENING, tap.listening.append)
        notifications.listen(LIVE, tap.live.append)
        connected = asyncio.create_task(notifications.run())
        self.stack.push_async_callback(_stopped, connected)
        await eventually(lambda: notifications.listening)
        tap.notifications = notifications
        return tap

    async def kept(self, event: Event) -> Event:
        """In the store, as it is when it was accepted."""
        put = new_event(event, event.received_at)
        await self.served.items.put(put.table, put.item)
        return event

    def event(self, source_id: str, received_at: int | None = None, **changed: Any) -> Event:
        now_ms = self.served.now_ms
        values: dict[str, Any] = {
            "event_id": "evt_" + nanoid(os.urandom, 16),
            "source_id": source_id,
            "user_id": "usr_0123456789abcdef",
            "status": EventStatus.RECEIVED,
            "method": "POST",
            "path": "/orders",
            "query": "",
            "headers": (("content-type", "application/json"),),
            "body": b'{"n": 1}',
            "content_type": "application/json",
            "source_ip": "192.0.2.1",
            "verified": True,
            "received_at": now_ms if received_at is None else received_at,
            "expires_at": now_ms // 1000 + 86_400,
            **changed,
        }
        return Event(**values)


def delivery_of(event: Event, state: DeliveryState = DeliveryState.DELIVERED) -> Delivery:
    return Delivery(
        event_id=event.event_id,
        connection_id="conn_0123456789abcdef",
        source_id=event.source_id,
        user_id=event.user_id,
        received_at=event.received_at,
        expires_at=event.expires_at,
        state=state,
        attempts=1,
    )


async def _stopped(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
