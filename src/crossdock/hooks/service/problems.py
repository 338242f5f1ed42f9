"""All that is wrong with a request said at once, not the first of it only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from crossdock.kit.errors import FieldProblem, InvalidInput


class Problems:
    def __init__(self) -> None:
        self._found: list[FieldProblem] = []

    @contextmanager
    def collected(self, field: str | None = None) -> Iterator[None]:
        """What the block refuses is kept for `refuse`; as a problem of `field`, if one is named."""
        try:
            yield
        except InvalidInput as invalid:
            self._found += [
                problem if field is None else FieldProblem(field, problem.code, problem.detail)
                for problem in invalid.fields
            ]

    def add(self, problem: FieldProblem) -> None:
        self._found.append(problem)

    def refuse(self) -> None:
        """Raises InvalidInput if there were any."""
        if self._found:
            raise InvalidInput("The request body is not valid.", *self._found)
