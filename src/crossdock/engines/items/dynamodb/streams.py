"""Reads a table's stream: every shard on one node at a time, parents before children.

Guarantees: every record that is read within AWS's 24 hours is looked at at least once, an item's records in
their order. Each shard has a lease of its own, so the shards of a stream spread over the nodes that read it.
A reader that fails (DynamoDB or PostgreSQL away) lets go of its shard; whoever looks next goes on from the
last position.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from crossdock.engines.items.dynamodb.held import while_held
from crossdock.engines.items.dynamodb.positions import Positions
from crossdock.engines.items.dynamodb.shard_reader import ShardReader, raise_alarm
from crossdock.engines.items.dynamodb.shards import readable_shards, trimmed_shards
from crossdock.engines.items.dynamodb.stream_api import StreamApi
from crossdock.engines.items.port import Table
from crossdock.engines.leases import Leases
from crossdock.kit.errors import CrossdockError
from crossdock.kit.logging import fields

LEASE_TTL_SECONDS = 30.0
LOOK_SECONDS = 10.0

log = logging.getLogger("crossdock.items")


class StreamReader:
    """One table's stream, on this node."""

    def __init__(
        self,
        api: StreamApi,
        positions: Positions,
        reader: ShardReader,
        leases: Leases,
        *,
        table: Table,
        table_name: str,
    ) -> None:
        self._api = api
        self._positions = positions
        self._reader = reader
        self._leases = leases
        self._table = table
        self._table_name = table_name
        self._running: dict[str, asyncio.Task[None]] = {}
        self._shard_finished = asyncio.Event()

    async def run(self) -> None:
        """Until cancelled; then every reader has ended and every lease is released."""
        try:
            while True:
                try:
                    await self._look()
                except CrossdockError as error:
                    log.warning(
                        "can't look at a stream", extra=fields(table=self._table.name, reason=str(error))
                    )
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._shard_finished.wait(), LOOK_SECONDS)
                self._shard_finished.clear()
        finally:
            for task in self._running.values():
                task.cancel()
            await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _look(self) -> None:
        """Sees which shards there are, and starts to read those that nobody reads."""
        for shard_id in [each for each, task in self._running.items() if task.done()]:
            # A defect ends the role, whose keeper says so and starts it anew.
            self._running.pop(shard_id).result()
        stream = await self._api.newest_stream(self._table_name)
        shards = await self._api.shards(stream)
        positions = await self._positions.of_stream(stream)
        for shard_id in trimmed_shards(shards, positions):
            raise_alarm(self._table, shard_id)
            await self._positions.finish(stream, shard_id)
        for shard_id in readable_shards(shards, positions):
            if shard_id not in self._running:
                self._running[shard_id] = asyncio.create_task(self._read(stream, shard_id))

    async def _read(self, stream: str, shard_id: str) -> None:
        try:
            lease = await self._leases.acquire(f"items-stream:{stream}:{shard_id}", LEASE_TTL_SECONDS)
            if lease is None:
                return
            async with lease:
                if await while_held(lease, self._reader.read(stream, shard_id)):
                    self._shard_finished.set()
        except CrossdockError as error:
            log.warning(
                "can't read a stream",
                extra=fields(table=self._table.name, shard=shard_id, reason=str(error)),
            )
