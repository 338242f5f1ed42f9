"""Lists: `limit` and an opaque `cursor` in, `{"data": [...], "next_cursor": ...}` out.

On a router: `dependencies={"page": Provide(page_request, sync_to_thread=False)}`. A handler then takes
`page: NamedDependency[PageRequest]` and returns a `Page`; a store reads one row more than `page.limit` and
lets `page_of` cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Generic, TypeVar

import msgspec
from litestar.params import QueryParameter

from crossdock.kit.pagination import LIMIT_DEFAULT, LIMIT_MAX, check_limit, decode_cursor, encode_cursor

T = TypeVar("T")
S = TypeVar("S")


class Page(msgspec.Struct, Generic[T], frozen=True):
    data: list[T]
    next_cursor: str | None

    def map(self, convert: Callable[[T], S]) -> Page[S]:
        return Page([convert(each) for each in self.data], self.next_cursor)


@dataclass(frozen=True, slots=True)
class PageRequest:
    limit: int = LIMIT_DEFAULT
    cursor: str | None = None

    def after(self, shape: Mapping[str, type]) -> dict[str, str | int] | None:
        """Where to go on, None from the start. `shape` is what this list's cursors hold."""
        return None if self.cursor is None else decode_cursor(self.cursor, shape)


def page_request(
    limit: Annotated[
        int, QueryParameter(description=f"Entries a page, 1 to {LIMIT_MAX}.", ge=1, le=LIMIT_MAX)
    ] = LIMIT_DEFAULT,
    cursor: Annotated[str | None, QueryParameter(description="`next_cursor` of the page before.")] = None,
) -> PageRequest:
    return PageRequest(check_limit(limit), cursor)


def page_of(rows: Sequence[T], limit: int, position: Callable[[T], Mapping[str, str | int]]) -> Page[T]:
    """A page of `rows`, of which there is one more than `limit` when something follows."""
    if len(rows) <= limit:
        return Page(list(rows), None)
    return Page(list(rows[:limit]), encode_cursor(position(rows[limit - 1])))


def page_json(items: Sequence[bytes], next_cursor: str | None) -> bytes:
    """A page of entries that are JSON already, as `Items.query_json` gives them."""
    return b'{"data":[' + b",".join(items) + b'],"next_cursor":' + msgspec.json.encode(next_cursor) + b"}"
