"""Sources and connections found by id, through an index that may lag, and listed without the deleted ones."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import TypeVar

from crossdock.engines.items.port import Item, Items, Query
from crossdock.hooks.model import Connection, Source, Status
from crossdock.hooks.store.tables import MAIN
from crossdock.http.pages import Page, PageRequest
from crossdock.kit.errors import MalformedRequest, NotFound, Unavailable
from crossdock.kit.pagination import encode_cursor

INDEX_POLL_SECONDS = 0.1
INDEX_POLLS = 5
"""After the first look: an index lags half a second at most."""
QUERIES_MAX = 100
"""For one page, however many deleted ones lie between: an answer may have fewer entries, and go on."""
CHANGES_TRIED_MAX = 20

_SOURCE_ID = re.compile(r"src_[0-9A-Za-z_-]{16}")
_CONNECTION_ID = re.compile(r"conn_[0-9A-Za-z_-]{16}")
_POSITION = "after_id"

Listed = TypeVar("Listed", Source, Connection)


def is_source_id(text: str) -> bool:
    """What can't be one is not there; a store need not be asked."""
    return _SOURCE_ID.fullmatch(text) is not None


def is_connection_id(text: str) -> bool:
    return _CONNECTION_ID.fullmatch(text) is not None


async def find_by_index(items: Items, query: Query) -> Item | None:
    """The item as it is now, whatever the index says of it."""
    page = await items.query(query)
    for _ in range(INDEX_POLLS):
        if page.items:
            break
        await asyncio.sleep(INDEX_POLL_SECONDS)
        page = await items.query(query)
    return await items.get(MAIN, MAIN.key_of(page.items[0])) if page.items else None


async def live_page(
    items: Items,
    page: PageRequest,
    query: Callable[[int, str | None], Query],
    convert: Callable[[Item], Listed],
) -> Page[Listed]:
    """`query` is called with a limit and the id that it goes on after."""
    after = _position(page)
    found: list[Listed] = []
    for _ in range(QUERIES_MAX):
        part = await items.query(query(page.limit, after))
        for each in map(convert, part.items):
            if len(found) == page.limit:
                return Page(found, _cursor(after))
            after = id_of(each)
            if each.status is not Status.DELETED:
                found.append(each)
        if part.cursor is None:
            return Page(found, None)
        if len(found) == page.limit:
            break
    return Page(found, _cursor(after))


def id_of(thing: Source | Connection) -> str:
    return thing.source_id if isinstance(thing, Source) else thing.connection_id


def _position(page: PageRequest) -> str | None:
    after = page.after({_POSITION: str})
    if after is None:
        return None
    position = str(after[_POSITION])
    if not is_source_id(position) and not is_connection_id(position):
        raise MalformedRequest(
            "invalid_cursor", "The cursor is not one this list gave out. Start again without a cursor."
        )
    return position


def _cursor(after: str | None) -> str | None:
    return None if after is None else encode_cursor({_POSITION: after})


def source_not_found(source_id: str) -> NotFound:
    return NotFound("source_not_found", f"There is no source {source_id}.")


def connection_not_found(connection_id: str) -> NotFound:
    return NotFound("connection_not_found", f"There is no connection {connection_id}.")


def changed_meanwhile() -> Unavailable:
    return Unavailable(
        "changed_meanwhile", "Others keep changing this at the same time; try again.", retry_after_seconds=1
    )
