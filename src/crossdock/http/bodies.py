"""JSON in, typed values out; what is wrong with it said field by field.

Raw lanes make a `Body` once and call `decode`; handlers of the management API get theirs by way of
`management.StrictBody`. Types are strict ("5" is no number), and request structs forbid unknown fields, so
that a misspelt optional field is an error and not silence.
"""

from __future__ import annotations

import functools
import re
from typing import Any, Generic, TypeVar

import msgspec

from crossdock.kit.errors import FieldProblem, InvalidInput, MalformedRequest

T = TypeVar("T")

# Finding the wrong key of a dict converts the document once per key: only for small ones.
_SEARCHED_BYTES_MAX = 64 * 1024
_SEARCHED_KEYS_MAX = 64


class RequestBody(msgspec.Struct, forbid_unknown_fields=True):
    """Base of every request body."""


class Body(Generic[T]):
    """A decoder for one type, made once: `readings = Body(Readings)`, then `readings.decode(raw)`."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(kind)

    def decode(self, raw: bytes) -> T:
        """Raises MalformedRequest (no JSON) or InvalidInput (JSON of another shape)."""
        try:
            value = self._decoder.decode(raw)
        except msgspec.ValidationError as error:
            raise _invalid(error, self._kind, raw) from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _malformed(raw, error) from error
        if b"\\u0000" in raw:
            _refuse_nul(raw)
        return value


@functools.cache
def body_of(kind: Any) -> Body[Any]:
    return Body(kind)


def _malformed(raw: bytes, error: Exception) -> MalformedRequest:
    if not raw.strip():
        return MalformedRequest("body_required", "The request needs a JSON body.")
    if isinstance(error, UnicodeDecodeError):
        return MalformedRequest("malformed_json", "The body is not UTF-8.")
    if isinstance(error, RecursionError):
        return MalformedRequest("malformed_json", "The body is nested too deeply.")
    return MalformedRequest("malformed_json", f"The body is not JSON: {error}.")


def _invalid(error: msgspec.ValidationError, kind: Any, raw: bytes) -> InvalidInput | MalformedRequest:
    # The type may be found wrong before the end of text that is no JSON at all; broken JSON is said first.
    try:
        document = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as broken:
        if not isinstance(broken, msgspec.ValidationError):
            return _malformed(raw, broken)
        document = None
    problem = field_problem(str(error), kind)
    if "[...]" in problem.field and document is not None and len(raw) <= _SEARCHED_BYTES_MAX:
        problem = _name_keys(problem, str(error), kind, document)
    return InvalidInput("The request body is not valid.", problem)


# --- msgspec's messages as stable codes ------------------------------------------------------------

_AT = re.compile(r" - at `(?:key in )?\$\.?(.*)`$")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`$", re.DOTALL)
_PATTERN = re.compile(r"Expected `str` matching regex (.*)$", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`$", re.DOTALL)
_CODES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"Expected `\w+` of length"), "wrong_length"),
    (re.compile(r"Expected `\w+` matching regex"), "wrong_format"),
    (re.compile(r"Invalid (enum )?value"), "not_a_choice"),
    (re.compile(r"Invalid "), "wrong_format"),
    (re.compile(r"Expected `[\w| ]+` (<|>|that's)"), "out_of_range"),
    (re.compile(r".*out of range"), "out_of_range"),
)


def field_problem(message: str, kind: Any = None) -> FieldProblem:
    """One message of msgspec as a field, a code and a sentence.

    A text of a wrong form is told in the words of its `Meta(pattern=…, description=…)`, if `kind` has one.
    """
    at = _AT.search(message)
    path, text = (at.group(1), message[: at.start()]) if at else ("", message)
    if unknown := _UNKNOWN.match(text):
        return FieldProblem(_join(path, unknown.group(1)), "unknown_field", "There is no such field.")
    if missing := _MISSING.match(text):
        return FieldProblem(_join(path, missing.group(1)), "required", "This field is required.")
    code = next((code for pattern, code in _CODES if pattern.match(text)), "wrong_type")
    if kind is not None and (pattern := _PATTERN.match(text)):
        text = f"Expected {_descriptions(kind).get(pattern.group(1), f'text matching {pattern.group(1)}')}"
    return FieldProblem(path, code, text.replace("`", "") + ".")


@functools.cache
def _descriptions(kind: Any) -> dict[str, str]:
    """The descriptions of a type's patterns, by the pattern as msgspec quotes it."""
    _, components = msgspec.json.schema_components([kind])
    left: list[object] = list(components.values())
    found: dict[str, str] = {}
    while left:
        schema = left.pop()
        if isinstance(schema, dict):
            if "pattern" in schema and "description" in schema:
                found[repr(schema["pattern"])] = schema["description"]
            left += schema.values()
        elif isinstance(schema, list):
            left += schema
    return found


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _name_keys(problem: FieldProblem, message: str, kind: Any, document: Any) -> FieldProblem:
    """msgspec says `sensors[...]` for a value of a dict. Find which, by trying them one at a time."""
    before = problem.field.split("[...]", 1)[0]
    holder = _walk(document, before)
    if not isinstance(holder, dict) or len(holder) > _SEARCHED_KEYS_MAX:
        return problem
    everything = dict(holder)
    for key, value in everything.items():
        holder.clear()
        holder[key] = value
        found = _convert_error(document, kind)
        if found == message:
            place = problem.field.replace("[...]", f".{key}", 1).removeprefix(".")
            named = FieldProblem(place, problem.code, problem.detail)
            return _name_keys(named, message, kind, document) if "[...]" in named.field else named
    holder.update(everything)
    return problem


def _convert_error(document: Any, kind: Any) -> str | None:
    try:
        msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        return str(error)
    return None


_STEP = re.compile(r"\[(\d+)\]|\.?([^.\[\]]+)")


def _walk(document: Any, path: str) -> Any:
    for step in _STEP.finditer(path):
        index, name = step.groups()
        try:
            document = document[int(index)] if index is not None else document[name]
        except (LookupError, TypeError):
            return None
    return document


# --- U+0000 ------------------------------------------------------------------------------------------


def _refuse_nul(raw: bytes) -> None:
    """PostgreSQL has no U+0000 in text or jsonb, so it is refused at the door, with its place."""
    try:
        place = _find_nul(msgspec.json.decode(raw), "")
    except RecursionError as error:
        raise _malformed(raw, error) from error
    if place is not None:
        problem = FieldProblem(place, "nul_character", "Text may not contain U+0000.")
        raise InvalidInput("The request body is not valid.", problem)


def _find_nul(value: Any, path: str) -> str | None:
    if isinstance(value, str):
        return path if "\0" in value else None
    if isinstance(value, list):
        places = (_find_nul(each, f"{path}[{position}]") for position, each in enumerate(value))
        return next((place for place in places if place is not None), None)
    if isinstance(value, dict):
        if any("\0" in name for name in value):
            return path
        places = (_find_nul(each, _join(path, name)) for name, each in value.items())
        return next((place for place in places if place is not None), None)
    return None
