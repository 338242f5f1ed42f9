"""From a match as JSON to a pattern, with everything that is wrong in it said at its exact place.

An object is either plain (names and what their values must match) or made of operators, never both: whether
`{"$or": …, "type": …}` means one or the other would be a guess. An operand that its operator could do nothing
with, such as `{"$gt": true}`, is refused rather than left to drop events in silence.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from crossdock.hooks.rules.match_operators import (
    ends_with,
    is_equal,
    is_greater,
    is_greater_or_equal,
    is_in,
    is_less,
    is_less_or_equal,
    is_not_equal,
    is_not_in,
    starts_with,
)
from crossdock.hooks.rules.match_values import equal_to
from crossdock.hooks.rules.matching import (
    AllOf,
    AnyOf,
    Compared,
    ContainsEach,
    EqualToReferred,
    Exists,
    Fields,
    Not,
    Operator,
    Pattern,
    Primitive,
)
from crossdock.hooks.rules.paths import Path, PathProblem, parse_path, part
from crossdock.kit.errors import FieldProblem


@dataclass(frozen=True, slots=True)
class Place:
    """Where the parser is: as a field of the request, and as the verdict of a test shows it."""

    field: str
    shown: str

    def name(self, name: str) -> Place:
        return Place(f"{self.field}.{name}", f"{self.shown}.{name}")

    def item(self, index: int) -> Place:
        return Place(f"{self.field}[{index}]", f"{self.shown}[{index}]")


class MatchParser:
    """Collects problems. A pattern of a match that had any is worth nothing."""

    def __init__(self, *, names_in_lower_case: bool = False) -> None:
        """`names_in_lower_case`: the subject is the headers, whose names are."""
        self._lowers_names = names_in_lower_case
        self.problems: list[FieldProblem] = []

    def parse(self, raw: Any, place: Place) -> Pattern:
        """`raw` is JSON of a bounded depth."""
        if isinstance(raw, dict):
            return self._object(raw, place)
        if isinstance(raw, list):
            members = (self.parse(each, place.item(i)) for i, each in enumerate(raw))
            return ContainsEach(place.shown, tuple(members))
        return Primitive(place.shown, equal_to(raw))

    def _object(self, raw: dict[str, Any], place: Place) -> Pattern:
        operators = [name for name in raw if name.startswith("$")]
        if not operators:
            return Fields(place.shown, tuple(self._field(*each, place) for each in raw.items()))
        if len(operators) < len(raw):
            plain = next(name for name in raw if name not in operators)
            detail = f"{operators[0]} and {plain} can't stand side by side: put both into an $and."
            self.problems.append(FieldProblem(place.field, "mixed_keys", detail))
        patterns = [self._operator(name, raw[name], place.name(name)) for name in operators]
        return patterns[0] if len(patterns) == 1 else AllOf(place.shown, tuple(patterns))

    def _field(self, name: str, raw: Any, place: Place) -> tuple[str, Pattern]:
        lowered = name.lower() if self._lowers_names else name
        return lowered, self.parse(raw, place.name(name))

    def _operator(self, name: str, raw: Any, place: Place) -> Pattern:
        if name in ("$or", "$and"):
            return self._any_or_all(name, raw, place)
        if name == "$not":
            return Not(place.shown, self.parse(raw, place))
        if name == "$exist":
            if not isinstance(raw, bool):
                self.problems.append(FieldProblem(place.field, "wrong_type", "$exist takes true or false."))
            return Exists(place.shown, raw is True)
        if name == "$ref":
            return EqualToReferred(place.shown, self._reference(raw, place))
        if name in _COMPARISONS:
            operator, check = _COMPARISONS[name]
            return Compared(place.shown, operator, self._operand(name, raw, place, check))
        detail = f"There is no operator {name}. Known are {', '.join(sorted(_KNOWN))}."
        self.problems.append(FieldProblem(place.field, "unknown_operator", detail))
        return Exists(place.shown, False)

    def _any_or_all(self, name: str, raw: Any, place: Place) -> Pattern:
        if not isinstance(raw, list) or not raw:
            self.problems.append(
                FieldProblem(place.field, "wrong_type", f"{name} takes an array of at least one match.")
            )
            return Exists(place.shown, False)
        patterns = tuple(self.parse(each, place.item(i)) for i, each in enumerate(raw))
        return AnyOf(place.shown, patterns) if name == "$or" else AllOf(place.shown, patterns)

    def _operand(self, name: str, raw: Any, place: Place, check: _Check) -> Any:
        if isinstance(raw, dict) and "$ref" in raw:
            if len(raw) > 1:
                self.problems.append(
                    FieldProblem(place.field, "mixed_keys", "A $ref stands alone in its object.")
                )
            return self._reference(raw["$ref"], place.name("$ref"))
        if (detail := check(raw)) is not None:
            self.problems.append(FieldProblem(place.field, "wrong_type", f"{name} takes {detail}."))
        elif (operator := _operator_within(raw)) is not None:
            self.problems.append(
                FieldProblem(
                    place.field, "wrong_type", f"What {name} takes is meant literally: no {operator} in it."
                )
            )
        return raw

    def _reference(self, raw: Any, place: Place) -> Path:
        if not isinstance(raw, str):
            self.problems.append(
                FieldProblem(place.field, "wrong_type", "$ref takes a path such as customer.id.")
            )
        elif _BRACKETED_INDEX.search(raw):
            self.problems.append(
                FieldProblem(
                    place.field, "wrong_format", "An index of an array is a part of its own: items.0.id."
                )
            )
        else:
            try:
                return self._of_subject(parse_path(raw))
            except PathProblem as problem:
                self.problems.append(FieldProblem(place.field, "wrong_format", str(problem)))
        return Path("", ())

    def _of_subject(self, path: Path) -> Path:
        if not self._lowers_names:
            return path
        return Path(path.text, (part(path.parts[0].name.lower()), *path.parts[1:]))


# --- what an operator may be given -------------------------------------------------------------------

_Check: TypeAlias = Callable[[Any], str | None]
"""What the operator takes, of an operand that it does not take."""


def _anything(raw: Any) -> str | None:
    return None


def _ordered(raw: Any) -> str | None:
    is_ordered = isinstance(raw, str | int | float) and not isinstance(raw, bool)
    return None if is_ordered else "a number or a text"


def _searched(raw: Any) -> str | None:
    primitives = raw if isinstance(raw, list) else [raw]
    is_searched = not any(isinstance(each, dict | list) for each in primitives)
    return None if is_searched else "a text, a number, true, false, null, or an array of these"


def _affix(raw: Any) -> str | None:
    texts = raw if isinstance(raw, list) else [raw]
    return None if texts and all(isinstance(each, str) for each in texts) else "a text or an array of texts"


_COMPARISONS: dict[str, tuple[Operator, _Check]] = {
    "$eq": (is_equal, _anything),
    "$neq": (is_not_equal, _anything),
    "$gt": (is_greater, _ordered),
    "$gte": (is_greater_or_equal, _ordered),
    "$lt": (is_less, _ordered),
    "$lte": (is_less_or_equal, _ordered),
    "$in": (is_in, _searched),
    "$nin": (is_not_in, _searched),
    "$startsWith": (starts_with, _affix),
    "$endsWith": (ends_with, _affix),
}
_KNOWN = {*_COMPARISONS, "$exist", "$or", "$and", "$not", "$ref"}

_BRACKETED_INDEX = re.compile(r"\[([0-9]+|\$index)\]")


def _operator_within(literal: Any) -> str | None:
    if not isinstance(literal, dict | list):
        return None
    names = literal.keys() if isinstance(literal, dict) else ()
    values = literal.values() if isinstance(literal, dict) else literal
    found = next((str(name) for name in names if name in _KNOWN), None)
    return found or next(filter(None, map(_operator_within, values)), None)
