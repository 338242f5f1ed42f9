"""What a hot lane needs from ASGI, without a framework: bodies, headers, answers, errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from crossdock.http.problems import Headers, MethodNotAllowed, Problem, problem_for
from crossdock.kit.errors import MalformedRequest, TooLarge

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

JSON = (b"content-type", b"application/json")


class ClientGone(Exception):
    """The client hung up before its request was complete; there is nobody to answer."""


def header(scope: Scope, name: bytes) -> bytes | None:
    """The first header of this lower-case name."""
    for key, value in scope["headers"]:
        if key == name:
            return bytes(value)
    return None


def header_values(scope: Scope, name: bytes) -> list[bytes]:
    return [bytes(value) for key, value in scope["headers"] if key == name]


async def read_body(scope: Scope, receive: Receive, bytes_max: int) -> bytes:
    """The whole body. Raises TooLarge as soon as it is known to be, having kept at most `bytes_max` of it."""
    _check_announced_length(scope, bytes_max)
    message = await receive()
    chunk: bytes = _chunk(message)
    if not message.get("more_body", False):
        if len(chunk) > bytes_max:
            raise too_large(bytes_max)
        return chunk
    chunks, length = [chunk], len(chunk)
    while message.get("more_body", False):
        if length > bytes_max:
            raise too_large(bytes_max)
        message = await receive()
        chunk = _chunk(message)
        chunks.append(chunk)
        length += len(chunk)
    if length > bytes_max:
        raise too_large(bytes_max)
    return b"".join(chunks)


def too_large(bytes_max: int) -> TooLarge:
    return TooLarge("body_too_large", f"The body may have at most {bytes_max} bytes.")


def invalid_content_length() -> MalformedRequest:
    return MalformedRequest("invalid_content_length", "Content-Length must be a number of bytes.")


def _chunk(message: Message) -> bytes:
    if message["type"] == "http.disconnect":
        raise ClientGone
    return bytes(message.get("body", b""))


def _check_announced_length(scope: Scope, bytes_max: int) -> None:
    announced = header(scope, b"content-length")
    if announced is None:
        return
    if not announced.isdigit():
        raise invalid_content_length()
    # Compared by digits first: int() of a thousand digits is work that a client should not be able to order.
    if len(announced.lstrip(b"0")) > 18 or int(announced) > bytes_max:
        raise too_large(bytes_max)


async def send_response(send: Send, status: int, headers: Headers, body: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def send_json(send: Send, status: int, body: bytes, headers: Headers = ()) -> None:
    """`body` is JSON already."""
    length = (b"content-length", b"%d" % len(body))
    await send_response(send, status, (JSON, length, *headers), body)


async def send_problem(send: Send, problem: Problem) -> None:
    await send_response(send, problem.status, problem.headers, problem.body)


def lane(handler: App, *methods: str) -> App:
    """A raw handler with its errors answered as problems. Without `methods` it takes every method."""
    allowed = frozenset(methods)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def watched_send(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            if allowed and scope["method"] not in allowed:
                raise MethodNotAllowed(", ".join(methods))
            await handler(scope, receive, watched_send)
        except ClientGone:
            return
        except Exception as exception:
            problem = problem_for(exception)
            if started:
                # Half an answer can't be taken back: the server cuts the connection instead.
                raise
            await send_problem(send, problem)

    return answer
