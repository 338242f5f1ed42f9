"""Reads one shard from its position to its end, and tells the handler what expired.

The position moves after the handler has returned: a crash repeats at most a telling, with the same ids. A
handler that fails is told the same events again, after a pause, until it returns; only this shard waits.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from crossdock.engines.items.dynamodb.expiry import expiry_of
from crossdock.engines.items.dynamodb.positions import Positions
from crossdock.engines.items.dynamodb.stream_api import IteratorExpired, Records, StreamApi, Trimmed
from crossdock.engines.items.port import ExpiryHandler, Table
from crossdock.kit.backoff import Backoff, Uniform
from crossdock.kit.clock import Clock
from crossdock.kit.logging import fields
from crossdock.kit.metrics import counter

POLL_SECONDS = 1.0
# Records without expiries move the position too, but not at the price of a write for each reading.
MOVE_SECONDS = 5.0
HANDLER_BACKOFF = Backoff(base_seconds=0.5, cap_seconds=60.0)

TRIMMED = counter(
    "items_stream_trimmed_total",
    "Times that records of a stream were gone before they were read.",
    ("table",),
)

log = logging.getLogger("crossdock.items")


def raise_alarm(table: Table, shard_id: str) -> None:
    TRIMMED.inc(table.name)
    log.error(
        "records of a stream were trimmed before they were read: expiries are lost",
        extra=fields(table=table.name, shard=shard_id),
    )


class ShardReader:
    def __init__(
        self,
        api: StreamApi,
        positions: Positions,
        clock: Clock,
        uniform: Uniform,
        *,
        table: Table,
        handler: ExpiryHandler,
    ) -> None:
        self._api = api
        self._positions = positions
        self._clock = clock
        self._uniform = uniform
        self._table = table
        self._handler = handler

    async def read(self, stream: str, shard_id: str) -> bool:
        """Until the shard ends (True), or another reader is found to be at work on it (False)."""
        position = await self._positions.begin(stream, shard_id)
        if position.is_finished:
            return True
        moved = read = position.sequence_number
        moved_at = self._clock.monotonic()
        iterator: str | None = await self._iterator(stream, shard_id, read)
        while iterator is not None:
            found = await self._records(stream, shard_id, iterator, read)
            told = await self._tell(found.records)
            read = found.last_sequence_number or read
            due = told or self._clock.monotonic() >= moved_at + MOVE_SECONDS
            if due and read is not None and read != moved:
                if not await self._positions.move(stream, shard_id, moved, read):
                    return False
                moved, moved_at = read, self._clock.monotonic()
            iterator = found.next_iterator
            if iterator is not None and not found.records:
                await asyncio.sleep(POLL_SECONDS)
        await self._positions.finish(stream, shard_id)
        return True

    async def _iterator(self, stream: str, shard_id: str, after: str | None) -> str:
        try:
            return await self._api.iterator(stream, shard_id, after)
        except Trimmed:
            raise_alarm(self._table, shard_id)
            return await self._api.iterator(stream, shard_id, None)

    async def _records(self, stream: str, shard_id: str, iterator: str, read: str | None) -> Records:
        try:
            return await self._api.records(iterator)
        except IteratorExpired:
            return Records((), await self._iterator(stream, shard_id, read))
        except Trimmed:
            raise_alarm(self._table, shard_id)
            return Records((), await self._api.iterator(stream, shard_id, None))

    async def _tell(self, records: Sequence[Mapping[str, Any]]) -> bool:
        """Whether there was anything to tell."""
        events = [event for record in records if (event := expiry_of(self._table, record)) is not None]
        attempt = 0
        while events:
            try:
                await self._handler(events)
            except Exception:
                attempt += 1
                log.exception(
                    "an expiry handler failed", extra=fields(table=self._table.name, attempt=attempt)
                )
                await asyncio.sleep(HANDLER_BACKOFF.delay_seconds(attempt, self._uniform))
            else:
                return True
        return False
