"""The match language, compiled: patterns that look at a value and say yes or no.

Matching never raises but for `OverBudget`: an operator on a type that it is not for does not match. Work is
counted in steps, about one per value looked at, so that no filter on no body takes long; `STEPS_MAX` bounds
a whole match. The stack that matching needs is that of the pattern, however deep the value is nested.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from crossdock.hooks.rules.match_values import TEXT_PER_STEP, deeply_equal, equal_to, loosely_equal
from crossdock.hooks.rules.paths import MISSING, Path, look_up

STEPS_MAX = 100_000


class OverBudget(Exception):
    """The match needs more steps than it may take."""


class Run:
    """One match: what it may still spend, and the part of the subject that references lead into."""

    __slots__ = ("left", "root")

    def __init__(self, root: Any = MISSING, steps_max: int = STEPS_MAX) -> None:
        self.root = root
        self.left = steps_max

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise OverBudget


Operator: TypeAlias = Callable[[Any, Any, Run], bool]
"""Does it hold between a value and an operand?"""


@dataclass(frozen=True, slots=True)
class Pattern(ABC):
    place: str
    """Where in the filter it stands, for people: `body.amount.$gt`."""

    @abstractmethod
    def matches(self, value: Any, run: Run) -> bool: ...

    def failure(self, value: Any, run: Run) -> str:
        """The place that failed first, of a value that does not match."""
        return self.place


@dataclass(frozen=True, slots=True)
class Primitive(Pattern):
    """Equal to the value, or to an element of an array, however deep in arrays."""

    equals: Callable[[Any], bool]

    def matches(self, value: Any, run: Run) -> bool:
        run.spend(1)
        if isinstance(value, list):
            return any(self.equals(leaf) for leaf in _leaves(value, run))
        return self.equals(value)


@dataclass(frozen=True, slots=True)
class Fields(Pattern):
    """An object that has these fields among others, or an array with such an object in it."""

    fields: tuple[tuple[str, Pattern], ...]

    def matches(self, value: Any, run: Run) -> bool:
        run.spend(1)
        if isinstance(value, dict):
            return self._failing(value, run) is None
        if isinstance(value, list):
            objects = (leaf for leaf in _leaves(value, run) if isinstance(leaf, dict))
            return any(self._failing(leaf, run) is None for leaf in objects)
        return False

    def failure(self, value: Any, run: Run) -> str:
        failing = self._failing(value, run) if isinstance(value, dict) else None
        return failing[1].failure(failing[0], run) if failing else self.place

    def _failing(self, value: dict[str, Any], run: Run) -> tuple[Any, Pattern] | None:
        for name, pattern in self.fields:
            found = value.get(name, MISSING)
            if not pattern.matches(found, run):
                return found, pattern
        return None


@dataclass(frozen=True, slots=True)
class ContainsEach(Pattern):
    """An array that has, for each of the members, an element that matches it."""

    members: tuple[Pattern, ...]

    def matches(self, value: Any, run: Run) -> bool:
        run.spend(1)
        return isinstance(value, list) and self._failing(value, run) is None

    def failure(self, value: Any, run: Run) -> str:
        failing = self._failing(value, run) if isinstance(value, list) else None
        return failing.place if failing else self.place

    def _failing(self, value: list[Any], run: Run) -> Pattern | None:
        return next(
            (each for each in self.members if not any(each.matches(element, run) for element in value)), None
        )


@dataclass(frozen=True, slots=True)
class AllOf(Pattern):
    patterns: tuple[Pattern, ...]

    def matches(self, value: Any, run: Run) -> bool:
        return all(pattern.matches(value, run) for pattern in self.patterns)

    def failure(self, value: Any, run: Run) -> str:
        failing = (pattern for pattern in self.patterns if not pattern.matches(value, run))
        return next((pattern.failure(value, run) for pattern in failing), self.place)


@dataclass(frozen=True, slots=True)
class AnyOf(Pattern):
    patterns: tuple[Pattern, ...]

    def matches(self, value: Any, run: Run) -> bool:
        return any(pattern.matches(value, run) for pattern in self.patterns)


@dataclass(frozen=True, slots=True)
class Not(Pattern):
    pattern: Pattern

    def matches(self, value: Any, run: Run) -> bool:
        return not self.pattern.matches(value, run)


@dataclass(frozen=True, slots=True)
class Exists(Pattern):
    wanted: bool

    def matches(self, value: Any, run: Run) -> bool:
        run.spend(1)
        return (value is not MISSING) is self.wanted


@dataclass(frozen=True, slots=True)
class EqualToReferred(Pattern):
    """A reference in the place of a value: a primitive matches as if it stood there, the rest is compared."""

    path: Path

    def matches(self, value: Any, run: Run) -> bool:
        run.spend(1)
        referred = look_up(run.root, self.path)
        if referred is MISSING or value is MISSING:
            return False
        if not isinstance(referred, dict | list):
            return Primitive(self.place, equal_to(referred)).matches(value, run)
        return deeply_equal(value, referred, loosely_equal, run.spend)


@dataclass(frozen=True, slots=True)
class Compared(Pattern):
    """A value beside an operand: one written in the filter, or one that a reference leads to."""

    operator: Operator
    operand: Any

    def matches(self, value: Any, run: Run) -> bool:
        run.spend(1 + (len(value) // TEXT_PER_STEP if isinstance(value, str) else 0))
        operand = look_up(run.root, self.operand) if isinstance(self.operand, Path) else self.operand
        if value is MISSING or operand is MISSING:
            return False
        return self.operator(value, operand, run)


def _leaves(array: list[Any], run: Run) -> Iterator[Any]:
    """The elements of an array and of the arrays in it."""
    below = [iter(array)]
    while below:
        for element in below[-1]:
            run.spend(1)
            if isinstance(element, list):
                below.append(iter(element))
                break
            yield element
        else:
            below.pop()
