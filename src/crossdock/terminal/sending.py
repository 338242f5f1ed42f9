"""A request whose every part somebody else chose: any method, URL, headers and bytes, sent as they are."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from crossdock.kit.clock import Clock

ANSWER_BYTES_MAX = 64 * 1024


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes
    """Its first `ANSWER_BYTES_MAX`."""
    duration_ms: float

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)


class NotAnswered(Exception):
    """The text says why, in a few words."""


def send_request(
    method: str,
    url: str,
    headers: Sequence[tuple[str, str]],
    body: bytes,
    *,
    clock: Clock,
    timeout_seconds: float = 30.0,
) -> Reply:
    """`host` and `content-length` are added. A redirect is an answer like any. Raises NotAnswered."""
    started_at = clock.monotonic()
    connection = _connection(url, timeout_seconds)
    try:
        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.putrequest(method, target, skip_accept_encoding=True)
        for name, value in headers:
            connection.putheader(name, value.encode())
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        response = connection.getresponse()
        content = response.read(ANSWER_BYTES_MAX)
        duration_ms = (clock.monotonic() - started_at) * 1000
        return Reply(response.status, response.getheaders(), content, duration_ms)
    except ConnectionRefusedError as error:
        raise NotAnswered("nothing listens there") from error
    except TimeoutError as error:
        raise NotAnswered(f"no answer within {timeout_seconds:g} s") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NotAnswered(str(error) or type(error).__name__) from error
    finally:
        connection.close()


def _connection(url: str, timeout_seconds: float) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    if parts.scheme == "https":
        return http.client.HTTPSConnection(
            parts.hostname or "", parts.port, timeout=timeout_seconds, context=ssl.create_default_context()
        )
    return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout_seconds)
