"""Server-Sent Events: an answer that does not end, and tells its client what happens as it happens.

- What a client has not taken yet waits in a buffer of its own, which never grows beyond its bound: whoever
  tells never waits, and a client that is too slow loses what does not fit. It is told so in that very place,
  once, by the event `lagged`; with the last `id:` that it got, it can ask for the rest.
- When there is nothing to tell, a comment is sent now and then, so that nobody in between takes the
  connection for dead, and a client that is gone is noticed.
- A client that hangs up ends its answer at once. An answer that is ended from here ends as HTTP ends answers:
  the client comes back by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

from litestar.response.base import ASGIResponse

from crossdock.http.asgi import Receive, Scope, Send

KEEP_ALIVE_SECONDS = 15.0
BUFFER_BYTES_MAX = 512 * 1024
MEDIA_TYPE = "text/event-stream"

KEEP_ALIVE = b":\n\n"
BEGINNING = b"retry: 2000\n\n"
"""Says how long a client should wait before it comes back, and shows proxies that there is an answer."""


def event_frame(name: str, data: bytes, event_id: str | None = None) -> bytes:
    """An event on the wire. `data` is JSON, without line breaks."""
    identity = b"" if event_id is None else b"id: %b\n" % event_id.encode()
    return b"%bevent: %b\ndata: %b\n\n" % (identity, name.encode(), data)


LAGGED = event_frame("lagged", b"{}")


class EventBuffer:
    """What one client has still to be told."""

    def __init__(self, bytes_max: int = BUFFER_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._frames: list[bytes] = []
        self._bytes = 0
        self._is_full = False
        self._is_closed = False
        self._changed = asyncio.Event()

    def offer(self, frame: bytes) -> None:
        """Tell it, or drop it. After the first that was dropped all are, until the client has caught up:
        what it gets is whole up to where it says `lagged`."""
        if self._is_full:
            return
        if self._bytes + len(frame) > self._bytes_max:
            self._is_full = True
            self.lag()
            return
        self._frames.append(frame)
        self._bytes += len(frame)
        self._changed.set()

    def lag(self) -> None:
        """Say that something was lost here."""
        if self._frames[-1:] != [LAGGED]:
            self._frames.append(LAGGED)
        self._changed.set()

    def close(self) -> None:
        """What was offered is still told; then it ends."""
        self._is_closed = True
        self._changed.set()

    async def frames(self, keep_alive_seconds: float = KEEP_ALIVE_SECONDS) -> AsyncGenerator[bytes, None]:
        """What there is, as soon as there is any, until closed."""
        while True:
            try:
                async with asyncio.timeout(keep_alive_seconds):
                    await self._changed.wait()
            except TimeoutError:
                yield KEEP_ALIVE
                continue
            self._changed.clear()
            if self._frames:
                taken = b"".join(self._frames)
                self._frames, self._bytes, self._is_full = [], 0, False
                yield taken
            if self._is_closed:
                return


class EventStream(ASGIResponse):
    """The answer: from a Litestar handler, or called as ASGI by a lane."""

    _should_set_content_length = False

    def __init__(self, frames: AsyncGenerator[bytes, None], on_end: Callable[[], None]) -> None:
        """`on_end` is called once, however the answer ends."""
        super().__init__(
            media_type=MEDIA_TYPE,
            # The second keeps nginx from collecting events until they fill a page.
            headers={"cache-control": "no-store", "x-accel-buffering": "no"},
        )
        self._frames = frames
        self._on_end = on_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # type: ignore[override]
        try:
            # Litestar's own types of the same messages.
            await super().__call__(scope, receive, send)  # type: ignore[arg-type]
        finally:
            self._on_end()

    async def send_body(self, send: Send, receive: Receive) -> None:  # type: ignore[override]
        sending, leaving = asyncio.create_task(self._tell(send)), asyncio.create_task(_gone(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sending.cancel()
            leaving.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)
            await self._frames.aclose()
        if not sending.cancelled():
            sending.result()

    async def _tell(self, send: Send) -> None:
        await send({"type": "http.response.body", "body": BEGINNING, "more_body": True})
        async for frame in self._frames:
            await send({"type": "http.response.body", "body": frame, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
