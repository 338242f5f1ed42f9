"""From steps as JSON to steps that can be applied, with everything that is wrong at its exact place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from crossdock.hooks.rules.paths import Path
from crossdock.hooks.rules.templates import TemplateProblem, parse_template
from crossdock.hooks.rules.transform_document import tree_of
from crossdock.hooks.rules.transform_fields import (
    Problems,
    flag_of,
    header_name_of,
    header_value_of,
    items_of,
    media_type_of,
    name_of,
    object_of,
    path_of,
    paths_of,
    text_of,
)
from crossdock.hooks.rules.transform_jmespath import compile_expression
from crossdock.hooks.rules.transform_steps import (
    Copy,
    Move,
    Pick,
    Remove,
    RemoveHeaders,
    Rename,
    Reshape,
    SetHeaders,
    SetValues,
    Step,
    WriteText,
)
from crossdock.hooks.rules.transform_syntax import ExpressionProblem
from crossdock.kit.errors import FieldProblem

CONTENT_TYPE_DEFAULT = "text/plain; charset=utf-8"


def parse_step(raw: Any, field: str, problems: Problems) -> Step | None:
    """`raw` is JSON of a bounded size. The step is worth something only if it brought no problem."""
    if not isinstance(raw, dict):
        problems.append(FieldProblem(field, "wrong_type", 'A step is an object such as {"remove": ["a.b"]}.'))
        return None
    kinds = [name for name in raw if name in _PARSERS]
    companions = ("content_type",) if "template" in kinds else ()
    for name in raw:
        if name not in _PARSERS and name not in companions:
            detail = f"Known steps are {', '.join(_PARSERS)}; a template may have a content_type."
            problems.append(FieldProblem(f"{field}.{name}", "unknown_field", detail))
    if len(kinds) != 1:
        detail = f"A step has exactly one of {', '.join(_PARSERS)}."
        problems.append(FieldProblem(field, "too_many" if kinds else "required", detail))
        return None
    if kinds == ["template"]:
        return _template(raw, field, problems)
    return _PARSERS[kinds[0]](raw[kinds[0]], f"{field}.{kinds[0]}", problems)


def _set(raw: Any, field: str, problems: Problems) -> Step:
    values = object_of(raw, field, '{"a.b": 1}', problems).items()
    return SetValues(tuple((path_of(path, f"{field}.{path}", problems), value) for path, value in values))


def _copy(raw: Any, field: str, problems: Problems) -> Step | None:
    given = _from_and_to(raw, field, problems)
    if given is None:
        return None
    source, to, if_present = given
    return Copy(source, path_of(to, f"{field}.to", problems), if_present)


def _move(raw: Any, field: str, problems: Problems) -> Step | None:
    given = _from_and_to(raw, field, problems)
    if given is None:
        return None
    source, to, if_present = given
    return Move(source, path_of(to, f"{field}.to", problems), if_present)


def _rename(raw: Any, field: str, problems: Problems) -> Step | None:
    given = _from_and_to(raw, field, problems)
    if given is None:
        return None
    source, to, if_present = given
    return Rename(source, name_of(to, f"{field}.to", problems), if_present)


def _from_and_to(raw: Any, field: str, problems: Problems) -> tuple[Path, Any, bool] | None:
    given = object_of(raw, field, '{"from": "a.b", "to": "c"}', problems)
    for name in given:
        if name not in ("from", "to", "if_present"):
            detail = "Known here are from, to and if_present."
            problems.append(FieldProblem(f"{field}.{name}", "unknown_field", detail))
    for name in ("from", "to"):
        if given and name not in given:
            problems.append(FieldProblem(f"{field}.{name}", "required", "This field is required."))
    if not {"from", "to"} <= given.keys():
        return None
    if_present = flag_of(given.get("if_present", False), f"{field}.if_present", problems)
    return path_of(given["from"], f"{field}.from", problems), given["to"], if_present


def _remove(raw: Any, field: str, problems: Problems) -> Step:
    return Remove(tuple(paths_of(raw, field, problems)))


def _pick(raw: Any, field: str, problems: Problems) -> Step:
    return Pick(tree_of(path for path in paths_of(raw, field, problems) if path.parts))


def _set_headers(raw: Any, field: str, problems: Problems) -> Step:
    headers = object_of(raw, field, '{"X-A": "v"}', problems).items()
    return SetHeaders(
        tuple(
            (
                header_name_of(name, f"{field}.{name}", problems),
                header_value_of(value, f"{field}.{name}", problems),
            )
            for name, value in headers
        )
    )


def _remove_headers(raw: Any, field: str, problems: Problems) -> Step:
    names = enumerate(items_of(raw, field, '["X-A"]', problems))
    return RemoveHeaders(tuple(header_name_of(name, f"{field}[{index}]", problems) for index, name in names))


def _jmespath(raw: Any, field: str, problems: Problems) -> Step | None:
    if not isinstance(raw, str):
        problems.append(FieldProblem(field, "wrong_type", "A text, in the language of JMESPath."))
        return None
    try:
        return Reshape(compile_expression(raw))
    except ExpressionProblem as problem:
        problems.append(FieldProblem(field, "wrong_format", str(problem)))
        return None


def _template(raw: dict[str, Any], field: str, problems: Problems) -> Step | None:
    text = text_of(raw["template"], f"{field}.template", problems)
    content_type = raw.get("content_type", CONTENT_TYPE_DEFAULT)
    content_type = media_type_of(content_type, f"{field}.content_type", problems)
    try:
        return WriteText(parse_template(text), content_type)
    except TemplateProblem as problem:
        problems.append(FieldProblem(f"{field}.template", "wrong_format", str(problem)))
        return None


_Parser: TypeAlias = Callable[[Any, str, Problems], Step | None]

_PARSERS: dict[str, _Parser] = {
    "set": _set,
    "copy": _copy,
    "move": _move,
    "rename": _rename,
    "remove": _remove,
    "pick": _pick,
    "set_headers": _set_headers,
    "remove_headers": _remove_headers,
    "jmespath": _jmespath,
    "template": _template,
}
