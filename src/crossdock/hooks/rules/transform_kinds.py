"""What kinds of values JMESPath tells apart, and which of them a function takes."""

from __future__ import annotations

from enum import Flag, auto
from typing import Any

from crossdock.hooks.rules.transform_work import Work


class Kind(Flag):
    NULL = auto()
    BOOLEAN = auto()
    NUMBER = auto()
    STRING = auto()
    ARRAY = auto()
    OBJECT = auto()
    NUMBERS = auto()
    STRINGS = auto()
    EXPRESSION = auto()
    ANY = NULL | BOOLEAN | NUMBER | STRING | ARRAY | OBJECT


def kind_of(value: Any) -> Kind:
    return _KINDS[type(value)]


def is_of(value: Any, wanted: Kind, work: Work) -> bool:
    if kind_of(value) & wanted:
        return True
    if not isinstance(value, list):
        return False
    work.spend(len(value))
    return any(
        kind & wanted and all(kind_of(element) is kind_within for element in value)
        for kind, kind_within in ((Kind.NUMBERS, Kind.NUMBER), (Kind.STRINGS, Kind.STRING))
    )


_KINDS: dict[type, Kind] = {
    type(None): Kind.NULL,
    bool: Kind.BOOLEAN,
    int: Kind.NUMBER,
    float: Kind.NUMBER,
    str: Kind.STRING,
    list: Kind.ARRAY,
    dict: Kind.OBJECT,
}

_DESCRIPTIONS: dict[Kind, str] = {
    Kind.NULL: "null",
    Kind.BOOLEAN: "a boolean",
    Kind.NUMBER: "a number",
    Kind.STRING: "text",
    Kind.ARRAY: "an array",
    Kind.OBJECT: "an object",
    Kind.NUMBERS: "an array of numbers",
    Kind.STRINGS: "an array of texts",
    Kind.EXPRESSION: "an expression such as &name",
}


def described(wanted: Kind) -> str:
    return " or ".join(text for kind, text in _DESCRIPTIONS.items() if kind & wanted)
