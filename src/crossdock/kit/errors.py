"""What can go wrong, said once.

    CrossdockError
    ├── MalformedRequest     the request can't be read at all (broken JSON, bad cursor)
    ├── InvalidInput         it can be read, and something in it is wrong; `fields` says what
    ├── Unauthenticated      no credential, or a wrong one
    ├── Forbidden            a good credential that may not do this
    ├── NotFound             no such thing, or somebody else's
    ├── Conflict             the thing is in a state that does not allow it
    ├── TooLarge             over a size limit
    ├── TooManyRequests      over a rate limit
    └── Unavailable          an engine is away or busy; the same call may succeed later

Each carries a stable `code` for programs, a public `message` for people, and `internal` detail that goes
to the log only. What a class means to a protocol (an HTTP status, a process exit code) is decided where
that protocol is spoken, never here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One wrong field: where (`readings[3].sensors.temp`), a stable code, and what to do."""

    field: str
    code: str
    detail: str


class CrossdockError(Exception):
    can_retry = False

    def __init__(
        self, code: str, message: str, *, internal: str = "", retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(f"{code}: {message}" + (f" [{internal}]" if internal else ""))
        self.code = code
        self.message = message
        self.internal = internal
        self.retry_after_seconds = retry_after_seconds


class MalformedRequest(CrossdockError):
    pass


class InvalidInput(CrossdockError):
    def __init__(self, message: str, *fields: FieldProblem, code: str = "invalid_input") -> None:
        super().__init__(code, message)
        self.fields = fields


class Unauthenticated(CrossdockError):
    pass


class Forbidden(CrossdockError):
    pass


class NotFound(CrossdockError):
    pass


class Conflict(CrossdockError):
    pass


class TooLarge(CrossdockError):
    pass


class TooManyRequests(CrossdockError):
    can_retry = True


class Unavailable(CrossdockError):
    can_retry = True
