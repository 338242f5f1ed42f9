"""Items with a fault planted in them, each one that a backend could really have.

They stand between a test and an honest backend. A suite that passes on one of them checks nothing there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from tests.support.lagging import LaggingIndexes
from tests.support.passing_on import PassingOn

from crossdock.engines.items.conditions import ALWAYS, Condition, holds
from crossdock.engines.items.port import (
    Add,
    Change,
    Check,
    Expired,
    ExpiryHandler,
    Failure,
    Item,
    ItemRejected,
    Items,
    Key,
    Outcome,
    Page,
    Put,
    Query,
    Refused,
    Set,
    SetIfAbsent,
    SortBetween,
    Table,
    Tally,
    Transaction,
    Update,
    Write,
    Written,
)
from crossdock.kit.errors import CrossdockError

# --- conditions ---


class IgnoresConditions(PassingOn):
    async def single(self, write: Write) -> Outcome:
        return await super().single(replace(write, condition=ALWAYS))

    async def transact(self, writes: Transaction) -> Outcome:
        return await super().transact([_unconditional(each) for each in writes])


class IgnoresChecks(PassingOn):
    async def transact(self, writes: Transaction) -> Outcome:
        unchecked = [replace(each, condition=ALWAYS) if isinstance(each, Check) else each for each in writes]
        return await super().transact(unchecked)


class JudgesBeforeItWrites(PassingOn):
    """Reads, decides, writes: what happens in between is overlooked."""

    async def single(self, write: Write) -> Outcome:
        return await self.transact([write])

    async def transact(self, writes: Transaction) -> Outcome:
        failures = []
        for position, write in enumerate(_writes(writes)):
            current = await self.get(write.table, _key(write))
            if not holds(write.condition, current):
                failures.append((position, current))
        if failures:
            return await super().transact(writes)
        await asyncio.sleep(0.01)
        unconditional = [_unconditional(each) for each in writes]
        if len(writes) == 1:
            return await super().single(*_writes(unconditional))
        return await super().transact(unconditional)


class TellsOneFailureOnly(PassingOn):
    async def transact(self, writes: Transaction) -> Outcome:
        outcome = await super().transact(writes)
        return Refused(outcome.failures[:1]) if isinstance(outcome, Refused) else outcome


class TellsWideAttributes(PassingOn):
    async def single(self, write: Write) -> Outcome:
        outcome = await super().single(write)
        if not isinstance(outcome, Refused):
            return outcome
        current = await self.get(write.table, _key(write))
        return Refused((replace(outcome.failures[0], current=current),))


# --- writes ---


class AddsOncePerGroup(PassingOn):
    """Of several ADDs to one attribute that arrive together, one counts."""

    def __init__(self, items: Items) -> None:
        super().__init__(items)
        self._groups: dict[str, asyncio.Task[Outcome]] = {}

    async def update(
        self, table: Table, key: Key, *changes: Change, condition: Condition = ALWAYS
    ) -> Outcome:
        write = Update(table, key, changes, condition)
        if not any(isinstance(change, Add) for change in changes):
            return await self.single(write)
        place = repr((table.name, key, changes))
        if place not in self._groups:
            self._groups[place] = asyncio.ensure_future(self.single(write))
            self._groups[place].add_done_callback(lambda _: self._groups.pop(place))
        return await self._groups[place]

    async def transact_many(self, transactions: Sequence[Transaction]) -> list[Outcome | CrossdockError]:
        seen: set[str] = set()
        kept: list[Transaction] = []
        for writes in transactions:
            again = repr(writes) in seen and all(isinstance(write, Update) for write in writes)
            seen.add(repr(writes))
            kept.append(
                [Check(each.table, _key(each), ALWAYS) for each in _writes(writes)] if again else writes
            )
        return await super().transact_many(kept)


class WritesHalfATransaction(PassingOn):
    """One write after the other, up to the first that is refused."""

    async def transact(self, writes: Transaction) -> Outcome:
        outcome: Outcome = Written()
        for write in _writes(writes):
            outcome = await super().single(write)
            if isinstance(outcome, Refused):
                return await super().transact(writes)
        return outcome


class LetsOneSpoilTheOthers(PassingOn):
    async def transact_many(self, transactions: Sequence[Transaction]) -> list[Outcome | CrossdockError]:
        outcomes = await super().transact_many(transactions)
        rejected = [outcome for outcome in outcomes if isinstance(outcome, ItemRejected)]
        return [rejected[0]] * len(outcomes) if rejected else outcomes


class OverwritesWhatIsThere(PassingOn):
    """SET where it should be set-if-absent."""

    async def single(self, write: Write) -> Outcome:
        if isinstance(write, Update):
            write = replace(write, changes=tuple(_overwriting(change) for change in write.changes))
        return await super().single(write)


class MergesPuts(PassingOn):
    """A put that leaves the attributes it does not name."""

    async def single(self, write: Write) -> Outcome:
        if isinstance(write, Put):
            stored = await self.get(write.table, write.table.key_of(write.item))
            write = replace(write, item={**(stored or {}), **write.item})
        return await super().single(write)


class KeepsTheFirstOfMany(PassingOn):
    async def write_many(self, table: Table, items: Sequence[Item]) -> None:
        await super().write_many(table, list(reversed(items)))


class WritesTwentyFive(PassingOn):
    """Takes one DynamoDB batch for all."""

    async def write_many(self, table: Table, items: Sequence[Item]) -> None:
        await super().write_many(table, items[:25])


class KeepsNoLimits(PassingOn):
    """Takes what breaks a limit, and drops it."""

    async def single(self, write: Write) -> Outcome:
        with suppress(ItemRejected):
            return await super().single(write)
        return Written()

    async def transact(self, writes: Transaction) -> Outcome:
        with suppress(ItemRejected):
            return await super().transact(writes)
        return Written()


# --- reads ---


class ReadsEachKeyOnce(PassingOn):
    async def get_many(self, table: Table, keys: Sequence[Key]) -> list[Item | None]:
        distinct = {tuple(sorted(key.items())): key for key in keys}
        return await super().get_many(table, list(distinct.values()))


class RoundsNumbers(PassingOn):
    """Every number through a float."""

    async def get(self, table: Table, key: Key) -> Item | None:
        item = await super().get(table, key)
        if item is None:
            return None
        return {
            name: float(value) if isinstance(value, int) and not isinstance(value, bool) else value
            for name, value in item.items()
        }


class SkipsOneAfterEachPage(PassingOn):
    async def query(self, query: Query) -> Page:
        page = await super().query(replace(query, limit=query.limit + 1))
        return Page(page.items[: query.limit], page.cursor)


class PromisesMoreThanThereIs(PassingOn):
    """A cursor after a full page, though nothing follows."""

    async def query(self, query: Query) -> Page:
        page = await super().query(query)
        if page.cursor is None and len(page.items) == query.limit:
            return Page(page.items, dict(query.table.key_of(page.items[-1])))
        return page


class OrdersByUtf16(PassingOn):
    async def query(self, query: Query) -> Page:
        page = await super().query(query)
        if query.table.sort is None or query.index is not None:
            return page
        sort = query.table.sort
        ordered = sorted(
            page.items, key=lambda item: str(item[sort]).encode("utf-16-be"), reverse=query.descending
        )
        return Page(ordered, page.cursor)


class LeavesOutTheUpperEnd(PassingOn):
    async def query(self, query: Query) -> Page:
        page = await super().query(query)
        if not isinstance(query.sort, SortBetween) or query.index is not None:
            return page
        high = query.sort.high
        return Page([item for item in page.items if item[query.table.sort or ""] != high], page.cursor)


class ForgetsUpdatesInIndexes(LaggingIndexes):
    """An index that shows each item as it was put, for good."""

    def __init__(self, items: Items) -> None:
        super().__init__(items, float("inf"), lambda: 0.0, _NoClock())

    async def single(self, write: Write) -> Outcome:
        return await (
            self._items.put(write.table, write.item, write.condition)
            if isinstance(write, Put)
            else super().single(write)
        )


class _NoClock:
    def now_ms(self) -> int:
        return 0

    def monotonic(self) -> float:
        return 0.0


# --- expiry ---


class ShowsExpiredItems(PassingOn):
    def __init__(self, items: Items) -> None:
        super().__init__(items)
        self._put: dict[str, Item] = {}

    async def single(self, write: Write) -> Outcome:
        if isinstance(write, Put):
            self._put[repr(sorted(write.table.key_of(write.item).items()))] = write.item
        return await super().single(write)

    async def get(self, table: Table, key: Key) -> Item | None:
        return await super().get(table, key) or self._put.get(repr(sorted(key.items())))


class RefusesOnExpiredItems(ShowsExpiredItems):
    """An expired item still counts as there for a put-if-absent."""

    async def single(self, write: Write) -> Outcome:
        if isinstance(write, Put) and write.condition != ALWAYS:
            current = await self.get(write.table, write.table.key_of(write.item))
            if not holds(write.condition, current):
                return Refused((Failure(0, current),))
        return await super().single(write)


class AddsToExpiredItems(ShowsExpiredItems):
    async def single(self, write: Write) -> Outcome:
        outcome = await super().single(write)
        if not isinstance(write, Update) or not isinstance(outcome, Written) or outcome.item is None:
            return outcome
        left = self._put.get(repr(sorted(write.key.items())), {})
        return Written({**left, **outcome.item, "n": left.get("n", 0)})


class ForgetsFailedHandlers:
    """Takes an expiry as told, though its handler failed."""

    def __init__(self, items: Items, handler: ExpiryHandler) -> None:
        self._handler = handler

    async def __call__(self, events: Sequence[Expired]) -> None:
        with suppress(Exception):
            await self._handler(events)


class NamesEachTellingAnew:
    """Another event id each time."""

    def __init__(self, items: Items, handler: ExpiryHandler) -> None:
        self._handler = handler
        self._tellings = 0

    async def __call__(self, events: Sequence[Expired]) -> None:
        self._tellings += 1
        await self._handler(
            [replace(event, event_id=f"{event.event_id}-{self._tellings}") for event in events]
        )


class ForgetsWhatWasOverwritten:
    """Tells only of items that were swept, not of those that a write got to first."""

    def __init__(self, items: Items, handler: ExpiryHandler) -> None:
        self._items = items
        self._handler = handler

    async def __call__(self, events: Sequence[Expired]) -> None:
        swept = [event for event in events if not await self._is_there(event)]
        await self._handler(swept)

    async def _is_there(self, event: Expired) -> bool:
        return await self._items.get(event.table, event.table.key_of(event.item)) is not None


def _writes(transaction: Transaction) -> list[Write]:
    return [each for each in transaction if not isinstance(each, Tally)]


def _unconditional(each: Write | Tally) -> Write | Tally:
    return each if isinstance(each, Tally) else replace(each, condition=ALWAYS)


def _key(write: Write) -> Key:
    return write.table.key_of(write.item) if isinstance(write, Put) else write.key


def _overwriting(change: Change) -> Change:
    return Set(change.attribute, change.value) if isinstance(change, SetIfAbsent) else change
