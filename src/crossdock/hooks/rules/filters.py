"""Which events a connection wants: rules over the parts of a request, all of which must match.

    [{"on": "body", "match": {"type": "order.paid", "amount": {"$gte": 100}}}]

`match` is in the language of `matching`. Parsing refuses what is wrong in a filter with its exact place;
matching never fails and is bounded, so a filter may be run on whatever comes in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from typing import Any
from urllib.parse import parse_qs

import msgspec

from crossdock.hooks.rules.match_limits import PROBLEMS_MAX, problem_of_size
from crossdock.hooks.rules.match_parsing import MatchParser, Place
from crossdock.hooks.rules.matching import STEPS_MAX, OverBudget, Pattern, Run
from crossdock.hooks.rules.paths import MISSING, decode_document
from crossdock.kit.errors import FieldProblem, InvalidInput

RULES_MAX = 50


class On(StrEnum):
    """The part of a request that a rule looks at."""

    BODY = "body"
    HEADERS = "headers"
    QUERY = "query"
    PATH = "path"
    METHOD = "method"


class LazyBody:
    """A body's JSON, or its text if it is none; decoded when first asked for, for all filters at once."""

    __slots__ = ("_decoded", "_raw")

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._decoded: Any = MISSING

    @property
    def decoded(self) -> Any:
        if self._decoded is MISSING:
            document = decode_document(self._raw)
            self._decoded = self._raw.decode(errors="replace") if document is MISSING else document
        return self._decoded


@dataclass(frozen=True, slots=True)
class Subject:
    """A request as filters see it. A header that came twice is joined with a comma; a query name that came
    twice has a list."""

    lazy_body: LazyBody
    headers: Mapping[str, str]
    query: Mapping[str, str | list[str]]
    path: str
    method: str

    @property
    def body(self) -> Any:
        return self.lazy_body.decoded

    @classmethod
    def of(
        cls, body: bytes, headers: Sequence[tuple[str, str]], query_string: str, path: str, method: str
    ) -> Subject:
        return cls(LazyBody(body), _joined(headers), _query(query_string), path, method.upper())


class RuleVerdict(msgspec.Struct, frozen=True, omit_defaults=True):
    matches: bool
    path: str | None = None
    """Where it first failed: `body.amount.$gt`."""
    detail: str | None = None
    """Why, where the value is not the reason."""


@dataclass(frozen=True, slots=True)
class Rule:
    on: On
    part: Callable[[Subject], Any]
    pattern: Pattern

    def matches(self, subject: Subject, run: Run) -> bool:
        """Raises OverBudget."""
        run.root = self.part(subject)
        return self.pattern.matches(run.root, run)

    def failure(self, subject: Subject) -> RuleVerdict:
        part = self.part(subject)
        try:
            return RuleVerdict(False, self.pattern.failure(part, Run(part)))
        except OverBudget:
            return self.over_budget()

    def over_budget(self) -> RuleVerdict:
        detail = f"Matching took more than {STEPS_MAX:,} steps and was given up."
        return RuleVerdict(False, self.on.value, detail)


@dataclass(frozen=True, slots=True)
class Filters:
    rules: tuple[Rule, ...] = ()

    def matches(self, subject: Subject) -> bool:
        run = Run()
        try:
            return all(rule.matches(subject, run) for rule in self.rules)
        except OverBudget:
            return False

    def explain(self, subject: Subject) -> list[RuleVerdict]:
        """A verdict per rule. All of them match exactly when `matches` says so."""
        run = Run()
        return [self._verdict(rule, subject, run) for rule in self.rules]

    def _verdict(self, rule: Rule, subject: Subject, run: Run) -> RuleVerdict:
        try:
            return RuleVerdict(True) if rule.matches(subject, run) else rule.failure(subject)
        except OverBudget:
            return rule.over_budget()


# --- parsing -----------------------------------------------------------------------------------------


def parse_filters(raw: Any, field: str = "filters") -> Filters:
    """Raises InvalidInput."""
    if not isinstance(raw, list):
        raise _invalid(FieldProblem(field, "wrong_type", 'An array of rules: [{"on": …, "match": …}].'))
    if len(raw) > RULES_MAX:
        raise _invalid(FieldProblem(field, "too_many", f"At most {RULES_MAX} rules."))
    if (problem := problem_of_size(raw, field)) is not None:
        raise _invalid(problem)
    rules: list[Rule] = []
    problems: list[FieldProblem] = []
    for index, each in enumerate(raw):
        rule, found = _parse_rule(each, f"{field}[{index}]")
        problems += found
        rules += [rule] if rule else []
    if problems:
        raise _invalid(*problems[:PROBLEMS_MAX])
    return Filters(tuple(rules))


def _parse_rule(raw: Any, field: str) -> tuple[Rule | None, list[FieldProblem]]:
    if not isinstance(raw, dict):
        return None, [FieldProblem(field, "wrong_type", 'A rule is an object: {"on": …, "match": …}.')]
    problems = [
        FieldProblem(f"{field}.{name}", "unknown_field", "A rule has the fields on and match.")
        for name in raw
        if name not in ("on", "match")
    ]
    problems += [
        FieldProblem(f"{field}.{name}", "required", "This field is required.")
        for name in ("on", "match")
        if name not in raw
    ]
    on = raw.get("on", "")
    if "on" in raw and on not in list(On):
        problems.append(FieldProblem(f"{field}.on", "not_a_choice", f"One of {', '.join(On)}."))
    if problems:
        return None, problems
    return _parse_match(On(on), raw["match"], f"{field}.match")


def _parse_match(on: On, raw: Any, field: str) -> tuple[Rule, list[FieldProblem]]:
    parser = MatchParser(names_in_lower_case=on is On.HEADERS)
    pattern = parser.parse(raw, Place(field, on.value))
    return Rule(on, attrgetter(on.value), pattern), parser.problems


def _invalid(*problems: FieldProblem) -> InvalidInput:
    return InvalidInput("The filters are not valid.", *problems)


# --- parts of a request ------------------------------------------------------------------------------


def _joined(headers: Sequence[tuple[str, str]]) -> dict[str, str]:
    joined: dict[str, str] = {}
    for name, value in headers:
        lowered = name.lower()
        joined[lowered] = f"{joined[lowered]}, {value}" if lowered in joined else value
    return joined


def _query(query_string: str) -> dict[str, str | list[str]]:
    values: dict[str, list[str]] = parse_qs(query_string, keep_blank_values=True)
    return {name: found[0] if len(found) == 1 else found for name, found in values.items()}
