"""Cursors: opaque to the client, and never trusted when they come back.

A cursor holds the position a page ended at. It isn't signed: it names no tenant and grants nothing, so a
forged one at worst starts the caller's own list elsewhere. What it must never do is fail deep inside a store,
so its shape, its types and what a database can't hold are checked here.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping

import msgspec

from crossdock.kit.errors import FieldProblem, InvalidInput, MalformedRequest

LIMIT_DEFAULT = 50
LIMIT_MAX = 200

# Two full keys of the Items port (2048 + 1024 bytes each) in base64, and room for their names.
_CURSOR_CHARACTERS_MAX = 16 * 1024
_VERSION = 1
_INTEGER_MAX = 2**63 - 1

_decoder = msgspec.json.Decoder(tuple[int, dict[str, str | int]])


def encode_cursor(values: Mapping[str, str | int]) -> str:
    encoded = msgspec.json.encode((_VERSION, dict(values)))
    return base64.urlsafe_b64encode(encoded).rstrip(b"=").decode()


def decode_cursor(text: str, shape: Mapping[str, type] | None = None) -> dict[str, str | int]:
    """The values back. `shape` is what this list's cursors hold (`{"sort_key": str, "id": int}`): a cursor of
    another list is refused like any other garbage, with MalformedRequest `invalid_cursor`."""
    values = _decode(text)
    if values is None or not all(map(_storable, (*values, *values.values()))):
        raise _invalid()
    if shape is not None and {name: type(value) for name, value in values.items()} != dict(shape):
        raise _invalid()
    return values


def check_limit(limit: int | None, maximum: int = LIMIT_MAX) -> int:
    """The page size to use; None means the client did not say."""
    if limit is None:
        return min(LIMIT_DEFAULT, maximum)
    if not 1 <= limit <= maximum:
        problem = FieldProblem("limit", "out_of_range", f"Ask for 1 to {maximum} entries a page.")
        raise InvalidInput("The page size is out of range.", problem)
    return limit


def _invalid() -> MalformedRequest:
    return MalformedRequest(
        "invalid_cursor", "The cursor is not one this list gave out. Start again without a cursor."
    )


def _decode(text: str) -> dict[str, str | int] | None:
    if len(text) > _CURSOR_CHARACTERS_MAX:
        return None
    try:
        plain = base64.b64decode(
            text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True
        )
        version, values = _decoder.decode(plain)
    except (ValueError, msgspec.DecodeError):  # ValueError: not base64, or not UTF-8 inside
        return None
    return values if version == _VERSION else None


def _storable(value: str | int) -> bool:
    """PostgreSQL takes no U+0000, and its bigint has 64 bits."""
    if isinstance(value, str):
        return "\0" not in value
    return -_INTEGER_MAX - 1 <= value <= _INTEGER_MAX
