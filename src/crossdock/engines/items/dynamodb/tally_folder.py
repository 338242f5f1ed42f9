"""Counts the tallies that wait, a transaction at a time: it deletes records and adds what they come to.

Since both happen in one transaction, each record counts exactly once, however often this is cut short or
repeated, and on however many nodes at once. What changed between looking at an item and writing it (it is
gone, it holds something else, another node was faster) refuses the transaction, and it is planned anew.

A transaction that DynamoDB rejects (more than 4 MB, most of all) is split, down to a single tally, so that
what can't be counted holds up nothing else. A tally that its item can't take is dropped, with a warning; one
that is rejected for a reason we don't know waits, and is tried again in each pass.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from crossdock.engines.items.apply import Place
from crossdock.engines.items.conditions import Absent, Compare, Condition, Exists, all_of, any_of, equals
from crossdock.engines.items.dynamodb.errors import ServiceError
from crossdock.engines.items.dynamodb.held import while_held
from crossdock.engines.items.dynamodb.tally_records import (
    SHARDS,
    TALLIES,
    Record,
    TableUnknown,
    batches,
    record_of,
    recording,
)
from crossdock.engines.items.port import (
    Item,
    ItemRejected,
    Items,
    Query,
    Refused,
    Set,
    Table,
    Tally,
    Update,
    Write,
)
from crossdock.engines.items.tallies import Counted, counted, summed, warn_of_refused
from crossdock.engines.leases import Leases
from crossdock.kit.clock import Clock
from crossdock.kit.errors import CrossdockError
from crossdock.kit.ids import Random
from crossdock.kit.logging import fields

LEASE = "items-tallies"
LEASE_TTL_SECONDS = 15.0
ACQUIRE_SECONDS = 5.0
# Tallies that come in meanwhile are added up: a pass costs a read of each shard, and a write of each item.
PAUSE_SECONDS = 0.5
TROUBLE_SECONDS = 5.0
RECORDS_A_PAGE = 100
# A rejection may be due to what somebody wrote between our looking and our writing.
REJECTIONS_MAX = 3

log = logging.getLogger("crossdock.items")


class TallyFolder:
    def __init__(self, items: Items, tables: Sequence[Table], clock: Clock, random: Random) -> None:
        self._items = items
        self._tables = {table.name: table for table in tables}
        self._clock = clock
        self._random = random

    async def run(self, leases: Leases) -> None:
        """Until cancelled. One node folds at a time: two would count right, but get in each other's way."""
        while True:
            try:
                lease = await leases.acquire(LEASE, LEASE_TTL_SECONDS)
                if lease is not None:
                    async with lease:
                        await while_held(lease, self._fold_for_ever())
            except CrossdockError as error:
                log.warning("can't count tallies", extra=fields(reason=str(error)))
            await asyncio.sleep(ACQUIRE_SECONDS)

    async def _fold_for_ever(self) -> None:
        while True:
            pause_seconds = PAUSE_SECONDS
            try:
                await self.fold()
            except CrossdockError as error:
                log.warning("can't count tallies", extra=fields(reason=str(error)))
                pause_seconds = TROUBLE_SECONDS
            await asyncio.sleep(pause_seconds)

    async def fold(self) -> int:
        """Counts what waits in every shard; how many transactions that took."""
        folded = 0
        queries = [Query(TALLIES, shard, limit=RECORDS_A_PAGE) for shard in SHARDS]
        while queries:
            pages = await asyncio.gather(*map(self._items.query, queries))
            records = self._records([item for page in pages for item in page.items])
            for batch in batches(records):
                folded += await self._fold(batch)
            queries = [
                Query(TALLIES, query.partition, limit=RECORDS_A_PAGE, after=page.cursor)
                for query, page in zip(queries, pages, strict=True)
                if page.cursor is not None
            ]
        return folded

    def _records(self, items: Sequence[Item]) -> list[Record]:
        records: list[Record] = []
        for item in items:
            try:
                records.append(record_of(item, self._tables))
            except TableUnknown as unknown:
                # A newer version wrote it and will count it: an upgrade is under way.
                log.warning("tallies of an unknown table wait", extra=fields(table=str(unknown)))
        return records

    async def _fold(self, records: Sequence[Record]) -> int:
        rejections = 0
        while records:
            plan = await self._plan(records)
            try:
                outcome = await self._items.transact(plan.writes)
            except (ItemRejected, ServiceError) as rejected:
                rejections += 1
                if rejections == REJECTIONS_MAX:
                    return await self._fold_apart(records, rejected)
                continue
            if not isinstance(outcome, Refused):
                for table, key, attributes in plan.refused:
                    warn_of_refused(table, key, attributes)
                return 1
            gone = {failure.position for failure in outcome.failures}
            records = [record for position, record in enumerate(records) if position not in gone]
        return 0

    async def _plan(self, records: Sequence[Record]) -> _Plan:
        sums = summed(tally for record in records for tally in record.tallies)
        stored = await self._stored(sums)
        plan = _Plan([record.removal() for record in records], [])
        for place, of_item in sums.items():
            table, key = self._tables[place[0]], place[1]
            result = counted(table, stored[place], of_item)
            if result.changes:
                plan.writes.append(_update(table, key, result))
            if result.refused:
                plan.refused.append((table, key, result.refused))
        return plan

    async def _stored(self, places: Iterable[Place]) -> dict[Place, Item | None]:
        keys: dict[str, list[tuple[str, ...]]] = {}
        for name, key in places:
            keys.setdefault(name, []).append(key)
        stored: dict[Place, Item | None] = {}
        for name, wanted in keys.items():
            table = self._tables[name]
            items = await self._items.get_many(table, [_key(table, key) for key in wanted])
            stored.update(((name, key), item) for key, item in zip(wanted, items, strict=True))
        return stored

    async def _fold_apart(self, records: Sequence[Record], rejected: CrossdockError) -> int:
        middle = len(records) // 2
        if middle:
            return await self._fold(records[:middle]) + await self._fold(records[middle:])
        [record] = records
        middle = len(record.tallies) // 2
        if middle:
            return await self._replace(record, record.tallies[:middle], record.tallies[middle:])
        table = record.tallies[0].table.name
        if isinstance(rejected, ItemRejected):
            log.warning("a tally can't be counted", extra=fields(table=table, reason=str(rejected)))
            return await self._replace(record)
        log.error("a tally waits that can't be counted", extra=fields(table=table, reason=str(rejected)))
        return 0

    async def _replace(self, record: Record, *parts: Sequence[Tally]) -> int:
        """Each part becomes a record of its own, for the next pass."""
        now_ms = self._clock.now_ms()
        puts = [recording(part, now_ms, self._random) for part in parts]
        await self._items.transact([record.removal(), *puts])
        return 1


@dataclass(frozen=True, slots=True)
class _Plan:
    writes: list[Write]
    """The removals first, in the order of the records."""
    refused: list[tuple[Table, tuple[str, ...], tuple[str, ...]]]


def _update(table: Table, key: Sequence[str], result: Counted) -> Update:
    """Refused unless the item is as it was when the changes were worked out, as far as they rest on it."""
    conditions: list[Condition] = [Exists(table.partition)]
    conditions += [equals(name, text) for when in result.held for name, text in when]
    conditions += [
        any_of(Absent(change.attribute), Compare(change.attribute, "<", str(change.value)))
        for change in result.changes
        if isinstance(change, Set)
    ]
    return Update(table, _key(table, key), result.changes, all_of(*conditions))


def _key(table: Table, values: Sequence[str]) -> dict[str, str]:
    return dict(zip(table.key_attributes, values, strict=True))
