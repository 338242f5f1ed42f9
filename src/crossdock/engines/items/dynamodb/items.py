"""The Items port on DynamoDB."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from crossdock.engines.items.conditions import ALWAYS, Condition
from crossdock.engines.items.dynamodb.batch_reader import BatchReader
from crossdock.engines.items.dynamodb.batch_writer import BatchWriter
from crossdock.engines.items.dynamodb.client import DynamoClient
from crossdock.engines.items.dynamodb.expiry import is_expired
from crossdock.engines.items.dynamodb.marshal import Attributes, unmarshal
from crossdock.engines.items.dynamodb.positions import Positions
from crossdock.engines.items.dynamodb.queries import Queries
from crossdock.engines.items.dynamodb.shard_reader import ShardReader
from crossdock.engines.items.dynamodb.stream_api import StreamApi
from crossdock.engines.items.dynamodb.streams import StreamReader
from crossdock.engines.items.dynamodb.tables import check
from crossdock.engines.items.dynamodb.tally_folder import TallyFolder
from crossdock.engines.items.dynamodb.writer import Writer
from crossdock.engines.items.limits import check_key
from crossdock.engines.items.port import (
    Change,
    Delete,
    ExpiryHandler,
    Item,
    JsonPage,
    Key,
    Outcome,
    Page,
    Put,
    Query,
    Table,
    Transaction,
    Update,
)
from crossdock.engines.leases import Leases
from crossdock.kit.clock import Clock
from crossdock.kit.errors import CrossdockError
from crossdock.kit.ids import Random


class DynamoItems:
    """Keeps the promises of `port.Items`. Owns `client`: `close` closes it."""

    def __init__(
        self,
        client: DynamoClient,
        tables: Sequence[Table],
        clock: Clock,
        random: Random,
        *,
        table_prefix: str = "",
    ) -> None:
        self._client = client
        self._tables = tuple(tables)
        self._clock = clock
        self._folder = TallyFolder(self, tables, clock, random)
        self._reader = BatchReader(client, table_prefix)
        self._batches = BatchWriter(client, table_prefix)
        self._writer = Writer(client, self._batches, clock, random, table_prefix)
        self._queries = Queries(client, self._reader, clock, table_prefix)
        self._table_prefix = table_prefix
        self._handlers: dict[str, ExpiryHandler] = {}

    async def get(self, table: Table, key: Key) -> Item | None:
        check_key(table, key)
        values = tuple(key[name] for name in table.key_attributes)
        return self._living(table, await self._reader.get(table, values))

    async def get_many(self, table: Table, keys: Sequence[Key]) -> list[Item | None]:
        for key in keys:
            check_key(table, key)
        values = [tuple(key[name] for name in table.key_attributes) for key in keys]
        found = await self._reader.get_many(table, values)
        return [self._living(table, found.get(each)) for each in values]

    async def query(self, query: Query) -> Page:
        return await self._queries.page(query)

    async def query_json(self, query: Query) -> JsonPage:
        return await self._queries.json_page(query)

    async def put(self, table: Table, item: Item, condition: Condition = ALWAYS) -> Outcome:
        return await self._writer.transact((Put(table, item, condition),))

    async def update(
        self, table: Table, key: Key, *changes: Change, condition: Condition = ALWAYS
    ) -> Outcome:
        return await self._writer.transact((Update(table, key, changes, condition),))

    async def delete(self, table: Table, key: Key, condition: Condition = ALWAYS) -> Outcome:
        return await self._writer.transact((Delete(table, key, condition),))

    async def transact(self, writes: Transaction) -> Outcome:
        return await self._writer.transact(writes)

    async def transact_many(self, transactions: Sequence[Transaction]) -> list[Outcome | CrossdockError]:
        return await self._writer.transact_many(transactions)

    async def write_many(self, table: Table, items: Sequence[Item]) -> None:
        await self._batches.put_many(table, items)

    def on_expired(self, table: Table, handler: ExpiryHandler) -> None:
        if not table.stream or table.ttl is None:
            raise ValueError(f"{table.name} has no stream of expired items.")
        self._handlers[table.name] = handler

    async def run_expiry(self, leases: Leases) -> None:
        """The background role, on any number of nodes at once: until cancelled."""
        positions = Positions(self, self._clock)
        api = StreamApi(self._client)
        readers = [
            StreamReader(
                api,
                positions,
                ShardReader(
                    api,
                    positions,
                    self._clock,
                    self._client.uniform,
                    table=table,
                    handler=self._handlers[table.name],
                ),
                leases,
                table=table,
                table_name=self._table_prefix + table.name,
            )
            for table in self._tables
            if table.name in self._handlers
        ]
        if not readers:
            await asyncio.Event().wait()  # nobody wants to be told of anything
        await asyncio.gather(*(reader.run() for reader in readers))

    async def run_tallies(self, leases: Leases) -> None:
        """The background role, on any number of nodes at once: until cancelled."""
        await self._folder.run(leases)

    async def fold_tallies(self) -> None:
        """Counts the tallies that wait now: a role's work, for those who can't wait for the role."""
        while await self._folder.fold():
            pass

    async def check(self) -> None:
        """Raises unless it can be asked now."""
        await check(self._client)

    async def close(self) -> None:
        await self._batches.drain()
        await self._reader.drain()
        await self._client.close()

    def _living(self, table: Table, attributes: Attributes | None) -> Item | None:
        if attributes is None:
            return None
        item = unmarshal(attributes)
        return None if is_expired(table, item, self._clock.now_ms() // 1000) else item
