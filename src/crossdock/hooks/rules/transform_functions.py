"""The functions of JMESPath, each with what it takes and with its work counted.

They do what the specification says. Where the `jmespath` package raises for a value that JSON has, or gives a
number that JSON has not, these say null, false or that the step failed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from crossdock.hooks.rules.transform_comparing import equal, spend_on_order
from crossdock.hooks.rules.transform_kinds import Kind, described, is_of, kind_of
from crossdock.hooks.rules.transform_work import StepFailed, Work, encode

Evaluate: TypeAlias = Callable[[Any, Work], Any]
"""A compiled expression: the current value in, its value out."""


@dataclass(frozen=True, slots=True)
class Function:
    call: Callable[..., Any]
    """Of the work and the arguments."""
    parameters: tuple[Kind, ...]
    is_variadic: bool = False
    """The last parameter may come any number of times, at least once."""

    def parameter(self, index: int) -> Kind:
        return self.parameters[min(index, len(self.parameters) - 1)]

    def takes(self, count: int) -> bool:
        return count == len(self.parameters) or (self.is_variadic and count > len(self.parameters))


def call(name: str, arguments: Sequence[Any], work: Work) -> Any:
    """Raises StepFailed for arguments of a kind that the function does not take."""
    function = FUNCTIONS[name]
    for index, argument in enumerate(arguments):
        wanted = function.parameter(index)
        if wanted is not Kind.EXPRESSION and not is_of(argument, wanted, work):
            # The value itself stays out of the message: as text it may be of any size.
            is_what = described(kind_of(argument))
            raise StepFailed(f"{name}() takes {described(wanted)} as argument {index + 1}, not {is_what}.")
    try:
        return function.call(work, *arguments)
    except OverflowError as error:
        raise StepFailed(f"{name}() gives a number that is too large.") from error


# --- numbers -----------------------------------------------------------------------------------------


def _abs(work: Work, number: float) -> float:
    return abs(number)


def _ceil(work: Work, number: float) -> int:
    return math.ceil(number)


def _floor(work: Work, number: float) -> int:
    return math.floor(number)


def _sum(work: Work, numbers: list[float]) -> float:
    return _finite(sum(numbers))


def _avg(work: Work, numbers: list[float]) -> float | None:
    return _finite(sum(numbers) / len(numbers)) if numbers else None


def _finite(number: float) -> float:
    if not isinstance(number, int) and not math.isfinite(number):
        raise OverflowError
    return number


def _to_number(work: Work, value: Any) -> int | float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if not isinstance(value, str):
        return None
    work.compare(len(value))
    try:
        return msgspec.json.decode(value, type=int | float)
    except msgspec.MsgspecError:
        return None


# --- text --------------------------------------------------------------------------------------------


def _starts_with(work: Work, text: str, prefix: str) -> bool:
    work.compare(len(prefix))
    return text.startswith(prefix)


def _ends_with(work: Work, text: str, suffix: str) -> bool:
    work.compare(len(suffix))
    return text.endswith(suffix)


def _join(work: Work, glue: str, texts: list[str]) -> str:
    work.make(sum(map(len, texts)) + len(glue) * len(texts))
    return glue.join(texts)


def _to_string(work: Work, value: Any) -> str:
    if isinstance(value, str):
        return value
    text = encode(value).decode()
    work.make(len(text))
    return text


# --- arrays and objects ------------------------------------------------------------------------------


def _contains(work: Work, subject: Any, wanted: Any) -> bool:
    if isinstance(subject, str):
        work.compare(len(subject))
        return isinstance(wanted, str) and wanted in subject
    return any(equal(element, wanted, work) for element in subject)


def _length(work: Work, value: Any) -> int:
    return len(value)


def _reverse(work: Work, value: Any) -> Any:
    if isinstance(value, str):
        work.make(len(value))
    else:
        work.spend(len(value))
    return value[::-1]


def _keys(work: Work, value: dict[str, Any]) -> list[str]:
    work.spend(len(value))
    return list(value)


def _values(work: Work, value: dict[str, Any]) -> list[Any]:
    work.spend(len(value))
    return list(value.values())


def _merge(work: Work, *objects: dict[str, Any]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for each in objects:
        work.spend(len(each))
        merged.update(each)
    return merged


def _map(work: Work, expression: Evaluate, array: list[Any]) -> list[Any]:
    work.spend(len(array))
    return [expression(element, work) for element in array]


def _not_null(work: Work, *values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _to_array(work: Work, value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _type(work: Work, value: Any) -> str:
    return str(kind_of(value).name).lower()


# --- order -------------------------------------------------------------------------------------------


def _max(work: Work, array: list[Any]) -> Any:
    spend_on_order(work, array, len(array))
    return max(array, default=None)


def _min(work: Work, array: list[Any]) -> Any:
    spend_on_order(work, array, len(array))
    return min(array, default=None)


def _sort(work: Work, array: list[Any]) -> list[Any]:
    spend_on_order(work, array, len(array) * len(array).bit_length())
    return sorted(array)


def _max_by(work: Work, array: list[Any], expression: Evaluate) -> Any:
    keys = _sort_keys("max_by", work, array, expression)
    spend_on_order(work, keys, len(keys))
    return array[max(range(len(keys)), key=keys.__getitem__)] if keys else None


def _min_by(work: Work, array: list[Any], expression: Evaluate) -> Any:
    keys = _sort_keys("min_by", work, array, expression)
    spend_on_order(work, keys, len(keys))
    return array[min(range(len(keys)), key=keys.__getitem__)] if keys else None


def _sort_by(work: Work, array: list[Any], expression: Evaluate) -> list[Any]:
    keys = _sort_keys("sort_by", work, array, expression)
    spend_on_order(work, keys, len(keys) * len(keys).bit_length())
    return [array[index] for index in sorted(range(len(keys)), key=keys.__getitem__)]


def _sort_keys(name: str, work: Work, array: list[Any], expression: Evaluate) -> list[Any]:
    keys = [expression(element, work) for element in array]
    if not is_of(keys, Kind.NUMBERS | Kind.STRINGS, work):
        raise StepFailed(f"{name}() needs a number of every element, or a text of every element.")
    return keys


_STRINGS_OR_NUMBERS = Kind.STRINGS | Kind.NUMBERS

FUNCTIONS: dict[str, Function] = {
    "abs": Function(_abs, (Kind.NUMBER,)),
    "avg": Function(_avg, (Kind.NUMBERS,)),
    "ceil": Function(_ceil, (Kind.NUMBER,)),
    "contains": Function(_contains, (Kind.STRING | Kind.ARRAY, Kind.ANY)),
    "ends_with": Function(_ends_with, (Kind.STRING, Kind.STRING)),
    "floor": Function(_floor, (Kind.NUMBER,)),
    "join": Function(_join, (Kind.STRING, Kind.STRINGS)),
    "keys": Function(_keys, (Kind.OBJECT,)),
    "length": Function(_length, (Kind.STRING | Kind.ARRAY | Kind.OBJECT,)),
    "map": Function(_map, (Kind.EXPRESSION, Kind.ARRAY)),
    "max": Function(_max, (_STRINGS_OR_NUMBERS,)),
    "max_by": Function(_max_by, (Kind.ARRAY, Kind.EXPRESSION)),
    "merge": Function(_merge, (Kind.OBJECT,), is_variadic=True),
    "min": Function(_min, (_STRINGS_OR_NUMBERS,)),
    "min_by": Function(_min_by, (Kind.ARRAY, Kind.EXPRESSION)),
    "not_null": Function(_not_null, (Kind.ANY,), is_variadic=True),
    "reverse": Function(_reverse, (Kind.STRING | Kind.ARRAY,)),
    "sort": Function(_sort, (_STRINGS_OR_NUMBERS,)),
    "sort_by": Function(_sort_by, (Kind.ARRAY, Kind.EXPRESSION)),
    "starts_with": Function(_starts_with, (Kind.STRING, Kind.STRING)),
    "sum": Function(_sum, (Kind.NUMBERS,)),
    "to_array": Function(_to_array, (Kind.ANY,)),
    "to_number": Function(_to_number, (Kind.ANY,)),
    "to_string": Function(_to_string, (Kind.ANY,)),
    "type": Function(_type, (Kind.ANY,)),
    "values": Function(_values, (Kind.OBJECT,)),
}
