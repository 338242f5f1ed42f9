"""Server-Sent Events: the buffer of a client, and the answer that empties it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from litestar import get
from tests.support.clock import ManualClock
from tests.support.waiting import eventually

from crossdock.http.asgi import App, Message, Scope, lane
from crossdock.http.management import open_router
from crossdock.http.sse import BEGINNING, KEEP_ALIVE, LAGGED, EventBuffer, EventStream, event_frame
from crossdock.web.assembly import build

# --- the wire --------------------------------------------------------------------------------------


def test_an_event_is_its_id_its_name_and_its_data_on_lines_of_their_own() -> None:
    assert event_frame("event", b'{"n":1}', "42") == b'id: 42\nevent: event\ndata: {"n":1}\n\n'


def test_an_event_without_an_id_leaves_the_last_one_as_it_is() -> None:
    assert event_frame("delivery", b"{}") == b"event: delivery\ndata: {}\n\n"


# --- the buffer ------------------------------------------------------------------------------------


async def taken(buffer: EventBuffer, keep_alive_seconds: float = 30) -> bytes:
    """The next that its client gets."""
    async with aclosing(buffer.frames(keep_alive_seconds)) as frames:
        return await anext(frames)


async def everything(buffer: EventBuffer) -> bytes:
    buffer.close()
    return b"".join([frame async for frame in buffer.frames()])


async def test_what_was_offered_comes_in_order_and_at_once() -> None:
    buffer = EventBuffer()
    buffer.offer(b"one")
    buffer.offer(b"two")
    assert await taken(buffer) == b"onetwo"
    buffer.offer(b"three")
    assert await taken(buffer) == b"three"


async def test_who_waits_gets_what_is_offered_later() -> None:
    buffer = EventBuffer()
    waiting = asyncio.create_task(taken(buffer))
    await asyncio.sleep(0)
    buffer.offer(b"one")
    assert await waiting == b"one"


async def test_a_client_that_is_behind_is_told_so_once_after_what_it_still_gets() -> None:
    buffer = EventBuffer(bytes_max=6)
    for n in range(5):
        buffer.offer(b"%03d" % n)
    assert await taken(buffer) == b"000001" + LAGGED
    buffer.offer(b"new")
    assert await taken(buffer) == b"new"


async def test_after_the_first_that_was_dropped_none_slips_in_though_it_would_fit() -> None:
    buffer = EventBuffer(bytes_max=6)
    for frame in (b"1234", b"567", b"8"):
        buffer.offer(frame)
    assert await taken(buffer) == b"1234" + LAGGED


async def test_an_event_larger_than_the_buffer_is_told_as_lost() -> None:
    buffer = EventBuffer(bytes_max=6)
    buffer.offer(b"1234567")
    assert await taken(buffer) == LAGGED


async def test_a_loss_elsewhere_stands_where_it_happened_and_once_in_a_row() -> None:
    buffer = EventBuffer()
    buffer.offer(b"one")
    buffer.lag()
    buffer.lag()
    buffer.offer(b"two")
    assert await everything(buffer) == b"one" + LAGGED + b"two"


@given(sizes=st.lists(st.integers(1, 40), max_size=60), bytes_max=st.integers(0, 200))
def test_whatever_is_offered_what_waits_stays_within_its_bound_and_is_a_beginning(
    sizes: list[int], bytes_max: int
) -> None:
    offered = [b"x" * size for size in sizes]

    async def offer_all() -> bytes:
        buffer = EventBuffer(bytes_max)
        for frame in offered:
            buffer.offer(frame)
        return await everything(buffer)

    told = asyncio.run(offer_all())
    kept = told.removesuffix(LAGGED)
    assert len(kept) <= bytes_max
    assert b"".join(offered).startswith(kept)
    assert told.endswith(LAGGED) == (len(kept) < sum(sizes))


async def test_a_silent_source_is_kept_alive_by_comments() -> None:
    buffer = EventBuffer()
    async with aclosing(buffer.frames(keep_alive_seconds=0.01)) as frames:
        assert [await anext(frames) for _ in range(3)] == [KEEP_ALIVE] * 3
        buffer.offer(b"one")
        assert await anext(frames) == b"one"


async def test_a_closed_buffer_ends_after_what_was_offered() -> None:
    buffer = EventBuffer()
    buffer.offer(b"one")
    assert await everything(buffer) == b"one"


async def test_who_waits_hears_of_the_close() -> None:
    buffer = EventBuffer()
    ended = asyncio.create_task(anext(buffer.frames(), None))
    await asyncio.sleep(0)
    buffer.close()
    assert await ended is None


# --- the answer ------------------------------------------------------------------------------------


@dataclass
class Client:
    """One that has opened a stream, and reads it or doesn't."""

    sent: list[Message] = field(default_factory=list)
    reads: asyncio.Event = field(default_factory=asyncio.Event)
    leaves: asyncio.Event = field(default_factory=asyncio.Event)
    ended: bool = False

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.sent[0]["headers"])

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent[1:])


SCOPE: Scope = {
    "type": "http",
    "http_version": "1.1",
    "method": "GET",
    "scheme": "http",
    "path": "/v1/toys/stream",
    "raw_path": b"/v1/toys/stream",
    "root_path": "",
    "query_string": b"",
    "headers": [(b"host", b"test")],
    "client": ("127.0.0.1", 1),
    "server": ("test", 80),
    "state": {},
}


@asynccontextmanager
async def connected(app: App) -> AsyncIterator[Client]:
    client, requests = Client(), [{"type": "http.request", "body": b"", "more_body": False}]
    client.reads.set()

    async def receive() -> Message:
        if requests:
            return dict(requests.pop())
        await client.leaves.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        await client.reads.wait()
        client.sent.append(message)

    async def serve() -> None:
        await app(dict(SCOPE), receive, send)
        client.ended = True

    task = asyncio.create_task(serve())
    try:
        await eventually(lambda: len(client.sent) > 1)
        yield client
    finally:
        client.leaves.set()
        await asyncio.wait_for(task, 5)


@dataclass
class Told:
    """What the answers are made of, and how often one has ended."""

    buffer: EventBuffer = field(default_factory=EventBuffer)
    ends: int = 0
    frames_closed: bool = False

    def stream(self) -> EventStream:
        return EventStream(self._frames(), self._end)

    async def _frames(self) -> AsyncGenerator[bytes, None]:
        try:
            async with aclosing(self.buffer.frames()) as frames:
                async for frame in frames:
                    yield frame
        finally:
            self.frames_closed = True

    def _end(self) -> None:
        self.ends += 1


def raw(told: Told) -> App:
    async def handler(scope: Scope, receive: object, send: object) -> None:
        await told.stream()(scope, receive, send)  # type: ignore[arg-type]

    return lane(handler, "GET")


def within_litestar(told: Told) -> App:
    @get("/v1/toys/stream")
    async def stream() -> EventStream:
        return told.stream()

    return build(
        [open_router([stream], {})], [], checks={}, slices=["toys"], version="0", clock=ManualClock()
    )


WAYS = pytest.mark.parametrize("way", [raw, within_litestar])


@pytest.fixture
def told() -> Told:
    return Told()


@WAYS
async def test_an_answer_says_what_it_is_and_that_nobody_may_keep_or_collect_it(
    way: Callable[[Told], App], told: Told
) -> None:
    async with connected(way(told)) as client:
        assert client.status == 200
        assert client.headers[b"content-type"] == b"text/event-stream; charset=utf-8"
        assert client.headers[b"cache-control"] == b"no-store"
        assert client.headers[b"x-accel-buffering"] == b"no"
        assert b"content-length" not in client.headers
        assert client.body == BEGINNING


@WAYS
async def test_events_arrive_while_the_answer_goes_on(way: Callable[[Told], App], told: Told) -> None:
    async with connected(way(told)) as client:
        told.buffer.offer(b"one")
        await eventually(lambda: client.body == BEGINNING + b"one")
        told.buffer.offer(b"two")
        await eventually(lambda: client.body == BEGINNING + b"onetwo")
        assert not client.ended


@WAYS
async def test_a_client_that_hangs_up_ends_its_answer(way: Callable[[Told], App], told: Told) -> None:
    async with connected(way(told)) as client:
        client.leaves.set()
        await eventually(lambda: client.ended)
    assert (told.ends, told.frames_closed) == (1, True)


@WAYS
async def test_a_client_that_does_not_read_and_hangs_up_ends_its_answer(
    way: Callable[[Told], App], told: Told
) -> None:
    async with connected(way(told)) as client:
        client.reads.clear()
        told.buffer.offer(b"one")
        await asyncio.sleep(0.01)
        assert not client.ended
        client.leaves.set()
        await eventually(lambda: client.ended)
    assert (told.ends, told.frames_closed, client.body) == (1, True, BEGINNING)


@WAYS
async def test_a_closed_buffer_ends_the_answer_as_http_ends_one(
    way: Callable[[Told], App], told: Told
) -> None:
    async with connected(way(told)) as client:
        told.buffer.offer(b"one")
        told.buffer.close()
        await eventually(lambda: client.ended)
    assert client.body == BEGINNING + b"one"
    assert [message.get("more_body") for message in client.sent[1:]][-1] is False
    assert told.ends == 1


@WAYS
async def test_a_stopped_server_takes_everything_down_with_it(way: Callable[[Told], App], told: Told) -> None:
    async def never() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def serve() -> None:
        await way(told)(dict(SCOPE), never, send)

    task = asyncio.create_task(serve())
    await eventually(lambda: len(sent) > 1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert (told.ends, told.frames_closed) == (1, True)


async def test_frames_that_fail_are_no_silent_end() -> None:
    async def broken() -> AsyncGenerator[bytes, None]:
        yield b"one"
        raise RuntimeError("broken")

    ends: list[None] = []

    async def handler(scope: Scope, receive: object, send: object) -> None:
        await EventStream(broken(), lambda: ends.append(None))(scope, receive, send)  # type: ignore[arg-type]

    with pytest.raises(RuntimeError, match="broken"):
        async with connected(handler):
            pass
    assert len(ends) == 1
