"""Dotted paths, and the JSON documents they lead into.

`items.0.id` is the `id` of the first of `items`. A part that is a number is an index in an array, and a name
in an object. `\\.` is a dot that belongs to a name, `\\\\` a backslash before a dot.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import msgspec

PARTS_MAX = 32
CHARACTERS_MAX = 1024


class Absence(Enum):
    MISSING = "missing"


MISSING: Final = Absence.MISSING
"""What is at a path that leads nowhere: null is a value."""


class PathProblem(ValueError):
    """Why a text is no path, in a sentence."""


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    index: int | None = None
    """What the name means in an array; None: nothing."""


@dataclass(frozen=True, slots=True)
class Path:
    text: str
    parts: tuple[Part, ...]

    def upto(self, count: int) -> str:
        """The first parts, for messages; the whole document where there is none."""
        return ".".join(_escaped(part.name) for part in self.parts[:count]) or "the body"


_INDEX = re.compile(r"(0|[1-9][0-9]{0,8})\Z")
_PIECE = re.compile(r"(\\[.\\]|[^.])|(\.)", re.DOTALL)


def parse_path(text: str) -> Path:
    """Raises PathProblem."""
    if len(text) > CHARACTERS_MAX:
        raise PathProblem(f"A path has at most {CHARACTERS_MAX} characters.")
    names = [""]
    for piece, dot in _PIECE.findall(text):
        if dot:
            names.append("")
        else:
            names[-1] += piece[-1]
    if not all(names):
        raise PathProblem("A path is names separated by single dots, such as items.0.id.")
    if len(names) > PARTS_MAX:
        raise PathProblem(f"A path has at most {PARTS_MAX} parts.")
    return Path(text, tuple(part(name) for name in names))


def part(name: str) -> Part:
    return Part(name, int(name) if _INDEX.match(name) else None)


def look_up(document: Any, path: Path) -> Any:
    """The value at the path, or MISSING."""
    for step in path.parts:
        if isinstance(document, dict):
            document = document.get(step.name, MISSING)
        elif isinstance(document, list) and step.index is not None and step.index < len(document):
            document = document[step.index]
        else:
            return MISSING
    return document


def decode_document(body: bytes) -> Any:
    """The body's JSON, or MISSING: it is none, is nested beyond sense, or has numbers beyond any range."""
    try:
        return msgspec.json.decode(body.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return MISSING


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace(".", "\\.")
