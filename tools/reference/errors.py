"""Error codes, collected from where they are made."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from enum import StrEnum
from types import ModuleType
from typing import TypeGuard

from crossdock.http.problems import STATUS_AND_TITLE
from crossdock.kit.errors import CrossdockError, FieldProblem
from tools.reference.error_uses import Carrier, Use, carrier, loose_codes_in, members_in, uses_in
from tools.reference.markdown import code, page, table
from tools.reference.modules import PACKAGE_DIRECTORY, all_modules

INTRODUCTION = """\
Every error is `application/problem+json` with `type`, `title`, `status`, `code` and `detail`. Programs go by
`code`, which never changes; `detail` is for people and may be worded anew. Where fields are wrong, `errors`
lists them as `{field, code, detail}`."""

PARTS = """\
Codes of single fields in `errors`, and of single parts of a request that are rejected without failing
the rest."""


def errors_page() -> str:
    modules = all_modules()
    errors = {kind.__name__: kind for kind in _classes(modules) if issubclass(kind, CrossdockError)}
    parts = {kind.__name__: kind for kind in _classes(modules) if _is_part(kind)}
    enums = {kind.__name__: kind for kind in _classes(modules) if _is_enum_of_codes(kind)}
    carriers = {name: carrier(kind) for name, kind in (errors | parts).items()}
    uses = _all_uses(
        carriers, {name: {member.name: member.value for member in kind} for name, kind in enums.items()}
    )
    return page(
        "Error codes",
        INTRODUCTION,
        "## Answers",
        table(
            ("code", "status", "from", "what it says"),
            _answer_rows((use for use in uses if use.made_as in errors), errors),
        ),
        "## Fields and parts",
        PARTS,
        table(("code", "from", "what it says"), _part_rows(use for use in uses if use.made_as not in errors)),
    )


def _classes(modules: Iterable[ModuleType]) -> list[type]:
    found = {value for module in modules for value in vars(module).values() if isinstance(value, type)}
    return sorted(
        (kind for kind in found if kind.__module__.startswith("crossdock.")),
        key=lambda kind: kind.__qualname__,
    )


def _is_part(kind: type) -> bool:
    """A value with a code and a text for people: what is wrong with one field, one reading."""
    annotations = vars(kind).get("__annotations__", {})
    return kind is FieldProblem or ({"code", "detail"} <= annotations.keys() and "status" not in annotations)


def _is_enum_of_codes(kind: type) -> TypeGuard[type[StrEnum]]:
    return issubclass(kind, StrEnum) and kind.__name__.endswith("Code")


def _all_uses(carriers: dict[str, Carrier], enums: dict[str, dict[str, str]]) -> list[Use]:
    uses: set[Use] = set()
    for path in PACKAGE_DIRECTORY.rglob("*.py"):
        area = path.relative_to(PACKAGE_DIRECTORY).parts[0].removesuffix(".py")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found = {*uses_in(tree, area, carriers), *members_in(tree, area, enums)}
        loose = set(loose_codes_in(tree)) - {use.code for use in found}
        uses |= found | {Use(each, FieldProblem.__name__, "", area) for each in loose}
    return sorted(uses)


def _answer_rows(uses: Iterable[Use], errors: dict[str, type]) -> list[tuple[str, ...]]:
    grouped: dict[tuple[int, str], list[Use]] = defaultdict(list)
    for use in uses:
        grouped[_status(errors[use.made_as]), use.code].append(use)
    return [
        (code(name), _status_text(status, name), _areas(group), _messages(group))
        for (status, name), group in sorted(grouped.items())
    ]


def _part_rows(uses: Iterable[Use]) -> list[tuple[str, ...]]:
    grouped: dict[str, list[Use]] = defaultdict(list)
    for use in uses:
        grouped[use.code].append(use)
    return [(code(name), _areas(group), _messages(group)) for name, group in sorted(grouped.items())]


def _status(kind: type) -> int:
    return next(STATUS_AND_TITLE[each][0] for each in kind.__mro__ if each in STATUS_AND_TITLE)


def _status_text(status: int, name: str) -> str:
    """What nobody outside can mend is told to the log and to the command line; HTTP says `internal_error`."""
    return (
        "only in the log and on the command line"
        if status == 500 and name != "internal_error"
        else str(status)
    )


def _areas(uses: Iterable[Use]) -> str:
    return ", ".join(sorted({use.area for use in uses}))


def _messages(uses: Iterable[Use]) -> str:
    return "<br>".join(sorted({use.message for use in uses} - {"", "…"}))
