"""The parts that steps are made of, read from JSON. What is wrong goes to `problems`; what comes back is then
of the right type and worth nothing."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

from crossdock.hooks.rules.paths import Path, PathProblem, parse_path
from crossdock.kit.errors import FieldProblem

HEADER_CHARACTERS_MAX = 4096

Problems: TypeAlias = list[FieldProblem]

_NOWHERE = Path("", ())

_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}\Z")
_MEDIA_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+( *;[\t\x20-\x7e]*)?\Z")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*\Z")

# What belongs to one connection (RFC 9110, 7.6.1), to the call itself, or to its signature.
_RESERVED = frozenset(
    {
        "connection",
        "content-length",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_RESERVED_PREFIX = "webhook-"


def object_of(raw: Any, field: str, example: str, problems: Problems) -> dict[str, Any]:
    if isinstance(raw, dict) and raw:
        return raw
    problems.append(FieldProblem(field, "wrong_type", f"An object such as {example}."))
    return {}


def items_of(raw: Any, field: str, example: str, problems: Problems) -> list[Any]:
    if isinstance(raw, list) and raw:
        return raw
    problems.append(FieldProblem(field, "wrong_type", f"An array such as {example}."))
    return []


def flag_of(raw: Any, field: str, problems: Problems) -> bool:
    if not isinstance(raw, bool):
        problems.append(FieldProblem(field, "wrong_type", "Either true or false."))
    return raw is True


def text_of(raw: Any, field: str, problems: Problems) -> str:
    if isinstance(raw, str):
        return raw
    problems.append(FieldProblem(field, "wrong_type", "A text."))
    return ""


def path_of(raw: Any, field: str, problems: Problems) -> Path:
    if not isinstance(raw, str):
        problems.append(FieldProblem(field, "wrong_type", "A path such as items.0.id."))
        return _NOWHERE
    try:
        return parse_path(raw)
    except PathProblem as problem:
        problems.append(FieldProblem(field, "wrong_format", str(problem)))
        return _NOWHERE


def paths_of(raw: Any, field: str, problems: Problems) -> list[Path]:
    items = enumerate(items_of(raw, field, '["a.b", "items.0"]', problems))
    return [path_of(each, f"{field}[{index}]", problems) for index, each in items]


def name_of(raw: Any, field: str, problems: Problems) -> str:
    """A path of one part."""
    path = path_of(raw, field, problems)
    if len(path.parts) == 1:
        return path.parts[0].name
    if path.parts:
        detail = "A name: the parent stays as it is. Use move to go elsewhere, or \\. for a dot in the name."
        problems.append(FieldProblem(field, "wrong_format", detail))
    return ""


def header_name_of(raw: Any, field: str, problems: Problems) -> str:
    if not isinstance(raw, str) or _HEADER_NAME.match(raw) is None:
        problems.append(FieldProblem(field, "wrong_format", "This is no name of a header."))
        return ""
    lowered = raw.lower()
    if lowered in _RESERVED or lowered.startswith(_RESERVED_PREFIX):
        problems.append(FieldProblem(field, "reserved_header", f"The delivery itself sets {lowered}."))
    return raw


def header_value_of(raw: Any, field: str, problems: Problems) -> str:
    text = text_of(raw, field, problems)
    if len(text) > HEADER_CHARACTERS_MAX or _HEADER_VALUE.match(text) is None:
        detail = f"At most {HEADER_CHARACTERS_MAX} printable ASCII characters."
        problems.append(FieldProblem(field, "wrong_format", detail))
    return text


def media_type_of(raw: Any, field: str, problems: Problems) -> str:
    if isinstance(raw, str) and len(raw) <= HEADER_CHARACTERS_MAX and _MEDIA_TYPE.match(raw):
        return raw
    problems.append(FieldProblem(field, "wrong_format", "A media type such as text/plain."))
    return ""
