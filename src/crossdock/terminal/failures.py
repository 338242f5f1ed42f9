"""How a command ends that could not do its work: one line on stderr, and an exit code for scripts.

1  it failed                             4  no such thing
2  wrong usage, or an input refused      5  the thing's state does not allow it
3  no valid key, or not allowed          6  the server is away or busy: try again
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

import click

from crossdock.kit.configuration import SettingsError
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


class ExitCode(IntEnum):
    FAILED = 1
    REFUSED_INPUT = 2
    NO_ACCESS = 3
    NOT_FOUND = 4
    CONFLICT = 5
    UNAVAILABLE = 6


class CommandFailed(click.ClickException):
    """Click prints the message after `Error: ` and leaves with the exit code."""

    def __init__(
        self,
        message: str,
        exit_code: ExitCode = ExitCode.FAILED,
        *,
        code: str = "",
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc]  # click means it for the class, and reads it here
        self.code = code
        self.status = status


_EXIT_CODES: dict[type[CrossdockError], ExitCode] = {
    SettingsError: ExitCode.REFUSED_INPUT,
    MalformedRequest: ExitCode.REFUSED_INPUT,
    InvalidInput: ExitCode.REFUSED_INPUT,
    TooLarge: ExitCode.REFUSED_INPUT,
    Unauthenticated: ExitCode.NO_ACCESS,
    Forbidden: ExitCode.NO_ACCESS,
    NotFound: ExitCode.NOT_FOUND,
    Conflict: ExitCode.CONFLICT,
    TooManyRequests: ExitCode.UNAVAILABLE,
    Unavailable: ExitCode.UNAVAILABLE,
    CrossdockError: ExitCode.FAILED,
}

_EXIT_CODES_BY_STATUS = {
    **dict.fromkeys((400, 405, 413, 415, 422), ExitCode.REFUSED_INPUT),
    **dict.fromkeys((401, 403), ExitCode.NO_ACCESS),
    **dict.fromkeys((404, 410), ExitCode.NOT_FOUND),
    **dict.fromkeys((409, 412), ExitCode.CONFLICT),
    **dict.fromkeys((429, 502, 503, 504), ExitCode.UNAVAILABLE),
}


@contextmanager
def told_to_the_user() -> Iterator[None]:
    """Around a command's work: a domain error becomes its message and exit code, not a traceback."""
    try:
        yield
    except CrossdockError as error:
        fields = error.fields if isinstance(error, InvalidInput) else ()
        raise CommandFailed(describe(error.message, fields), exit_code_of(error), code=error.code) from error


def exit_code_of(error: CrossdockError) -> ExitCode:
    return next(_EXIT_CODES[each] for each in type(error).__mro__ if each in _EXIT_CODES)


def exit_code_of_status(status: int) -> ExitCode:
    return _EXIT_CODES_BY_STATUS.get(status, ExitCode.FAILED)


def describe(message: str, fields: tuple[FieldProblem, ...] = ()) -> str:
    """The message, and a line for each field that adds to it."""
    lines = [f"  {each.field}: {each.detail}" for each in fields if each.detail != message]
    return "\n".join([message, *lines])
