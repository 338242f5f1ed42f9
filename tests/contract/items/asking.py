"""What the tests say over and over, said once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from crossdock.engines.items.conditions import Condition
from crossdock.engines.items.port import (
    Check,
    Item,
    Items,
    Key,
    Outcome,
    Page,
    Query,
    Refused,
    Table,
    Value,
    Written,
)

INDEX_PATIENCE_SECONDS = 2.0


async def eventually(
    read: Callable[[], Awaitable[object]], expected: object, within_seconds: float = INDEX_PATIENCE_SECONDS
) -> None:
    """Indexes and background roles may lag: read until it is as expected, or fail with what it was last."""
    deadline = time.monotonic() + within_seconds
    found = await read()
    while found != expected and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
        found = await read()
    assert found == expected, f"{found!r} instead of {expected!r}"


def assert_written(outcome: Outcome) -> Item | None:
    assert isinstance(outcome, Written), outcome
    return outcome.item


def assert_refused(outcome: object) -> Refused:
    assert isinstance(outcome, Refused), outcome
    return outcome


async def condition_holds(items: Items, table: Table, key: Key, condition: Condition) -> bool:
    return isinstance(await items.transact([Check(table, key, condition)]), Written)


async def pages(items: Items, query: Query) -> list[Page]:
    """Every page, following the cursors."""
    found = [await items.query(query)]
    while (cursor := found[-1].cursor) is not None:
        found.append(await items.query(replace(query, after=cursor)))
        assert len(found) < 1000, "the cursors lead nowhere"
    return found


async def everything(items: Items, query: Query) -> list[Item]:
    return [item for page in await pages(items, query) for item in page.items]


async def sort_keys(items: Items, query: Query, attribute: str = "sk") -> list[object]:
    return [item[attribute] for item in await everything(items, query)]


async def put_all(items: Items, table: Table, *written: Mapping[str, Value]) -> None:
    for item in written:
        assert_written(await items.put(table, dict(item)))


def only(attribute: str, found: Sequence[Item | None]) -> list[object]:
    return [None if item is None else item[attribute] for item in found]
