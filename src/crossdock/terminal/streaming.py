"""Live streams (Server-Sent Events) as commands read them: one event after the other, as they come.

Like every call of the client it fails with `CommandFailed`: when the server refuses, can't be reached, or
has not even sent a comment for `SILENCE_SECONDS_MAX`. A stream that the server ends just ends. Nothing is
repeated here: whoever wants to go on asks again, naming the last event it got.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass

from crossdock.terminal.client import ApiClient
from crossdock.terminal.failures import CommandFailed

MEDIA_TYPE = "text/event-stream"
SILENCE_SECONDS_MAX = 45.0
"""Three times as long as the server is ever silent."""
_LINE_BYTES_MAX = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ServerEvent:
    name: str
    data: str
    last_event_id: str | None
    """Where to go on from; of this event, or of the last one before it that had one."""


class StreamingClient(ApiClient):
    @classmethod
    def like(cls, client: ApiClient, silence_seconds_max: float = SILENCE_SECONDS_MAX) -> StreamingClient:
        """The same server and key."""
        return cls(client.base_url, client._key, timeout_seconds=silence_seconds_max)

    def events(
        self,
        path: str,
        query: Mapping[str, object],
        *,
        last_event_id: str | None = None,
        on_open: Callable[[], None] = lambda: None,
    ) -> Generator[ServerEvent, None, None]:
        """Until the server ends it. `on_open`: everything that happens from now on will come."""
        headers = {"Accept": MEDIA_TYPE}
        if last_event_id is not None:
            headers["Last-Event-ID"] = last_event_id
        with self._answer("GET", path, None, query, headers) as response, response:
            if response.headers.get_content_type() != MEDIA_TYPE:
                raise CommandFailed(f"{self.base_url} answered with something other than events.")
            on_open()
            lines = iter(lambda: response.readline(_LINE_BYTES_MAX), b"")
            yield from parse_events(lines, last_event_id)


def parse_events(lines: Iterable[bytes], last_event_id: str | None = None) -> Iterator[ServerEvent]:
    """Pure: the events in a stream's lines, comments left out; one that is cut off at the end is none."""
    name, data = "", list[str]()
    for raw in lines:
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                yield ServerEvent(name or "message", "\n".join(data), last_event_id)
            name, data = "", []
        elif field == "event":
            name = value
        elif field == "data":
            data.append(value)
        elif field == "id" and "\0" not in value:
            last_event_id = value or None
