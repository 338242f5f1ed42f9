"""The HTTP API as commands call it: plain, synchronous, and readable when it goes wrong.

Every failure raises `CommandFailed`: what the server said in its problem JSON, or why it could not be asked.
Nothing is repeated and no redirect followed: the key goes to the server it was given for, and nowhere else.
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from crossdock.kit.errors import FieldProblem
from crossdock.terminal.failures import CommandFailed, ExitCode, describe, exit_code_of_status

_CHUNK_BYTES = 64 * 1024


class _Problem(msgspec.Struct):
    code: str = ""
    detail: str = ""
    errors: tuple[FieldProblem, ...] = ()


def path(*segments: str) -> str:
    """A path of these segments, whatever is in them: `path("v1", "devices", hardware_id)`."""
    return "".join("/" + quote(segment, safe="") for segment in segments)


class ApiClient:
    def __init__(self, base_url: str, key: str | None, *, timeout_seconds: float = 30.0) -> None:
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise CommandFailed(
                f"{base_url!r} is not a URL like http://127.0.0.1:8420.", ExitCode.REFUSED_INPUT
            )
        self.base_url = base_url.rstrip("/")
        self._secure = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port
        self._prefix = parts.path.rstrip("/")
        self._key = key
        self._timeout_seconds = timeout_seconds

    def get(self, path: str, query: Mapping[str, object] | None = None) -> Any:
        return self.call("GET", path, query=query)

    def post(self, path: str, body: object = None, *, idempotency_key: str | None = None) -> Any:
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        return self.call("POST", path, body, headers=headers)

    def patch(self, path: str, body: object) -> Any:
        return self.call("PATCH", path, body)

    def delete(self, path: str) -> Any:
        return self.call("DELETE", path)

    def pages(self, path: str, query: Mapping[str, object] | None = None) -> Iterator[dict[str, Any]]:
        """Every entry of a list, page after page."""
        cursor: str | None = None
        while True:
            page = self.get(path, {**(query or {}), "cursor": cursor})
            yield from page["data"]
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """The answer's JSON; None when there is none."""
        with self._answer(method, path, body, query, headers or {}) as response:
            content = response.read()
        try:
            return msgspec.json.decode(content) if content else None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise CommandFailed(f"{self.base_url} answered with something other than JSON.") from error

    def download(
        self, path: str, into: BinaryIO, *, accept: str, query: Mapping[str, object] | None = None
    ) -> int:
        """Write the answer's body as it comes; how many bytes it had."""
        byte_count = 0
        with self._answer("GET", path, None, query, {"Accept": accept}) as response:
            while chunk := response.read(_CHUNK_BYTES):
                into.write(chunk)
                byte_count += len(chunk)
        return byte_count

    @contextmanager
    def _answer(
        self,
        method: str,
        path: str,
        body: object,
        query: Mapping[str, object] | None,
        headers: Mapping[str, str],
    ) -> Iterator[http.client.HTTPResponse]:
        connection = self._connection()
        try:
            content = None if body is None else msgspec.json.encode(body)
            target = self._prefix + path + _query_text(query)
            connection.request(method, target, content, self._headers(content, headers))
            response = connection.getresponse()
            if response.status >= 300:
                raise _refusal(
                    response.status, response.reason, response.getheader("Location"), response.read()
                )
            yield response
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from error
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        if self._secure:
            return http.client.HTTPSConnection(
                self._host, self._port, timeout=self._timeout_seconds, context=ssl.create_default_context()
            )
        return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout_seconds)

    def _headers(self, content: bytes | None, extra: Mapping[str, str]) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": "crossdock-cli"}
        if content is not None:
            headers["Content-Type"] = "application/json"
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        return {**headers, **extra}

    def _unreachable(self, error: Exception) -> CommandFailed:
        if isinstance(error, ConnectionRefusedError):
            reason = "nothing listens there. Start the server with: crossdock up"
        elif isinstance(error, TimeoutError):
            reason = f"no answer within {self._timeout_seconds:g} s."
        elif isinstance(error, http.client.HTTPException):
            reason = "it broke off its answer."
        else:
            reason = f"{error or type(error).__name__}."
        return CommandFailed(f"{self.base_url} can't be reached: {reason}", ExitCode.UNAVAILABLE)


def _query_text(query: Mapping[str, object] | None) -> str:
    given = {name: value for name, value in (query or {}).items() if value is not None}
    return "?" + urlencode(given) if given else ""


def _refusal(status: int, reason: str, location: str | None, content: bytes) -> CommandFailed:
    if status < 400:
        where = f" to {location}" if location else ""
        return CommandFailed(f"The server redirects{where}. Give the URL it is really at.", status=status)
    try:
        problem = msgspec.json.decode(content, type=_Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        problem = _Problem()
    message = problem.detail or f"The server answered {status} {reason}."
    code = f" ({problem.code})" if problem.code else ""
    return CommandFailed(
        describe(message + code, problem.errors),
        exit_code_of_status(status),
        code=problem.code,
        status=status,
    )
