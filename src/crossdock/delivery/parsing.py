"""Settings of a destination, as a user wrote them in JSON, into typed values."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from crossdock.http.bodies import field_problem
from crossdock.kit.errors import FieldProblem, InvalidInput

T = TypeVar("T")


def convert(raw: object, kind: type[T], field: str) -> T:
    """Raises InvalidInput, with a place that begins with `field`."""
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        found = field_problem(str(error), kind)
        raise invalid(field, FieldProblem(within(field, found.field), found.code, found.detail)) from error


def invalid(field: str, *problems: FieldProblem) -> InvalidInput:
    return InvalidInput(f"{field} is not valid.", *problems)


def within(field: str, place: str) -> str:
    return f"{field}.{place}" if place and not place.startswith("[") else field + place
