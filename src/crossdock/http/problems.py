"""Errors as HTTP says them: RFC 9457 problem JSON, the same bytes from the framework and from the raw lanes.

    {"type": "urn:crossdock:problem:device_not_registered", "title": "Not found", "status": 404,
     "code": "device_not_registered", "detail": "Register the device first.", "errors": [...]}

`code` is for programs and never changes; `detail` is for people and may. `errors` is there when fields are
wrong. An unexpected exception becomes `internal_error` with a `request_id` that the log line has too, and
nothing of its text. `type` names the code without a host, since clients see us under many.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from crossdock.engines.items.port import ItemRejected
from crossdock.engines.sql.failures import database_unavailable
from crossdock.engines.sql.target import CONNECTION_ERRORS
from crossdock.http.negotiation import NotAcceptable
from crossdock.kit.errors import (
    Conflict,
    CrossdockError,
    FieldProblem,
    Forbidden,
    InvalidInput,
    MalformedRequest,
    NotFound,
    TooLarge,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
)

log = logging.getLogger("crossdock.http")

MEDIA_TYPE = "application/problem+json"

Headers = tuple[tuple[bytes, bytes], ...]


class MethodNotAllowed(CrossdockError):
    """The path exists, the method on it doesn't."""

    def __init__(self, allowed: str) -> None:
        super().__init__("method_not_allowed", f"This path takes {allowed}.")
        self.allowed = allowed


class UnsupportedMediaType(CrossdockError):
    """The body is of a kind that is not read here."""


STATUS_AND_TITLE: dict[type[CrossdockError], tuple[int, str]] = {
    MalformedRequest: (400, "Malformed request"),
    Unauthenticated: (401, "Not authenticated"),
    Forbidden: (403, "Not allowed"),
    NotFound: (404, "Not found"),
    MethodNotAllowed: (405, "Method not allowed"),
    NotAcceptable: (406, "Not acceptable"),
    Conflict: (409, "Conflict"),
    TooLarge: (413, "Too large"),
    UnsupportedMediaType: (415, "Unsupported media type"),
    InvalidInput: (422, "Invalid input"),
    ItemRejected: (422, "Invalid input"),
    TooManyRequests: (429, "Too many requests"),
    CrossdockError: (500, "Internal error"),
    Unavailable: (503, "Unavailable"),
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One error answer, ready to send."""

    status: int
    headers: Headers
    body: bytes


class _Document(msgspec.Struct, omit_defaults=True):
    type: str
    title: str
    status: int
    code: str
    detail: str
    errors: list[FieldProblem] = []
    request_id: str = ""


_encode = msgspec.json.Encoder().encode


def problem_for(exception: Exception, random: Callable[[int], bytes] = os.urandom) -> Problem:
    """The answer to any exception. Logs what the answer does not tell."""
    error = domain_error(exception)
    if error is None or status_of(error) == 500:
        return _unexpected(exception, "req_" + random(12).hex())
    if isinstance(error, Unavailable):
        log.warning("answered 503 %s", error, exc_info=exception if error is not exception else None)
    elif error.internal:
        log.info("answered %d %s", status_of(error), error)
    return render(error)


def domain_error(exception: Exception) -> CrossdockError | None:
    """The domain error that an exception is, or stands for; None: nobody expected it."""
    if isinstance(exception, CrossdockError):
        return exception
    # asyncpg refuses a value it can't encode with an InterfaceError that is a ValueError too: a mistake of
    # ours, and no lost connection. (It has no public name; `asyncpg.DataError` is another class.)
    if isinstance(exception, CONNECTION_ERRORS) and not isinstance(exception, ValueError):
        return database_unavailable(exception)
    return None


def status_of(error: CrossdockError) -> int:
    return _status_and_title(error)[0]


def render(
    error: CrossdockError, *, request_id: str = "", fields: Sequence[FieldProblem] | None = None
) -> Problem:
    """Pure: a domain error as status, headers and body. `fields` are the error's own unless given."""
    status, title = _status_and_title(error)
    if fields is None:
        fields = error.fields if isinstance(error, InvalidInput) else ()
    document = _Document(
        type=f"urn:crossdock:problem:{error.code}",
        title=title,
        status=status,
        code=error.code,
        detail=error.message,
        errors=list(fields),
        request_id=request_id,
    )
    body = _encode(document)
    headers = (
        (b"content-type", MEDIA_TYPE.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        *_extra_headers(status, error),
    )
    return Problem(status, headers, body)


def _status_and_title(error: CrossdockError) -> tuple[int, str]:
    return next(STATUS_AND_TITLE[each] for each in type(error).__mro__ if each in STATUS_AND_TITLE)


def _extra_headers(status: int, error: CrossdockError) -> Headers:
    if status == 401:
        return ((b"www-authenticate", b'Bearer realm="crossdock"'),)
    if isinstance(error, MethodNotAllowed):
        return ((b"allow", error.allowed.encode("latin-1")),)
    if status in (429, 503) or error.retry_after_seconds is not None:
        seconds = max(1, math.ceil(error.retry_after_seconds or 1))
        return ((b"retry-after", str(seconds).encode()),)
    return ()


def _unexpected(exception: Exception, request_id: str) -> Problem:
    log.error("unexpected error, answered 500 as %s", request_id, exc_info=exception)
    message = f"Something went wrong on our side. Tell the operator this id: {request_id}."
    return render(CrossdockError("internal_error", message), request_id=request_id)
