"""Unconditional puts: BatchWriteItem, 25 at a time, and again for what it left unprocessed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from crossdock.engines.items.dynamodb.client import ATTEMPTS_MAX, DynamoClient
from crossdock.engines.items.dynamodb.errors import ServiceError, domain_error, unavailable
from crossdock.engines.items.dynamodb.loop_turn import LoopTurn, chunks, settle_all
from crossdock.engines.items.dynamodb.marshal import Attributes, marshal
from crossdock.engines.items.dynamodb.requests import check_item
from crossdock.engines.items.port import Item, ItemRejected, Table
from crossdock.kit.errors import CrossdockError

WRITES_A_BATCH = 25
BATCHES_AT_ONCE = 8

_Place: TypeAlias = tuple[str, tuple[str, ...]]
"""DynamoDB's name of a table, and the values of a key in it."""
_Settle: TypeAlias = Callable[[_Place, CrossdockError | None], None]


@dataclass(frozen=True, slots=True)
class _Put:
    table: Table
    place: _Place
    item: Attributes


class BatchWriter:
    def __init__(self, client: DynamoClient, table_prefix: str) -> None:
        self._client = client
        self._table_prefix = table_prefix
        self._turn: LoopTurn[tuple[_Put, asyncio.Future[None]]] = LoopTurn(WRITES_A_BATCH, self._send_turn)

    async def put(self, table: Table, item: Item) -> None:
        """The item has been checked."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._turn.add((self._put(table, item), done))
        await done

    async def put_many(self, table: Table, items: Sequence[Item]) -> None:
        """Checks all before it sends any; of several for one key the last one is sent.

        If a part fails, the rest is written all the same, and the first error is raised.
        """
        puts: dict[_Place, _Put] = {}
        for item in items:
            check_item(table, item)
            put = self._put(table, item)
            puts[put.place] = put
        errors: list[CrossdockError] = []
        seats = asyncio.Semaphore(BATCHES_AT_ONCE)

        def settle(place: _Place, error: CrossdockError | None) -> None:
            if error is not None:
                errors.append(error)

        async def send(batch: list[_Put]) -> None:
            async with seats:
                await self._write({put.place: put for put in batch}, settle)

        await asyncio.gather(*(send(batch) for batch in chunks(list(puts.values()), WRITES_A_BATCH)))
        if errors:
            raise errors[0]

    async def drain(self) -> None:
        await self._turn.drain()

    def _put(self, table: Table, item: Item) -> _Put:
        key = tuple(str(item[name]) for name in table.key_attributes)
        return _Put(table, (self._table_prefix + table.name, key), marshal(item))

    async def _send_turn(self, entries: list[tuple[_Put, asyncio.Future[None]]]) -> None:
        waiting: dict[_Place, list[asyncio.Future[None]]] = {}
        for put, done in entries:
            waiting.setdefault(put.place, []).append(done)

        def settle(place: _Place, error: CrossdockError | None) -> None:
            settle_all(waiting.pop(place), error)

        try:
            # Puts of one key that were made at once: the last one stands for all.
            await self._write({put.place: put for put, _ in entries}, settle)
        except Exception as error:
            for each in waiting.values():
                settle_all(each, error)

    async def _write(self, puts: dict[_Place, _Put], settle: _Settle) -> None:
        """Settles each place: with None when it is surely written."""
        attempt = 0
        while len(puts) > 1:
            try:
                left = await self._write_batch(puts)
            except ItemRejected:
                # DynamoDB refuses the whole batch for one item: alone, only that one fails.
                break
            except CrossdockError as error:
                _settle_each(puts, error, settle)
                return
            _settle_each(puts.keys() - left.keys(), None, settle)
            attempt = 1 if len(left) < len(puts) else attempt + 1
            puts = left
            if attempt == ATTEMPTS_MAX:
                _settle_each(puts, unavailable("BatchWriteItem: unprocessed items", busy=True), settle)
                return
            if puts:
                await self._client.pause(attempt)
        for place, put in puts.items():
            settle(place, await self._write_one(put))

    async def _write_batch(self, puts: Mapping[_Place, _Put]) -> dict[_Place, _Put]:
        """What DynamoDB left unprocessed."""
        requests: dict[str, list[dict[str, Any]]] = {}
        for (table_name, _), put in puts.items():
            requests.setdefault(table_name, []).append({"PutRequest": {"Item": put.item}})
        try:
            reply = await self._client.call("BatchWriteItem", {"RequestItems": requests}, repeatable=False)
        except ServiceError as error:
            raise domain_error(error) from error
        keys = {table_name: put.table.key_attributes for (table_name, _), put in puts.items()}
        left = [
            (table_name, tuple(request["PutRequest"]["Item"][name]["S"] for name in keys[table_name]))
            for table_name, unprocessed in reply.get("UnprocessedItems", {}).items()
            for request in unprocessed
        ]
        return {place: puts[place] for place in left}

    async def _write_one(self, put: _Put) -> CrossdockError | None:
        request = {"TableName": put.place[0], "Item": put.item}
        try:
            await self._client.call("PutItem", request, repeatable=False)
        except ServiceError as error:
            return domain_error(error)
        except CrossdockError as error:
            return error
        return None


def _settle_each(places: Iterable[_Place], error: CrossdockError | None, settle: _Settle) -> None:
    for place in places:
        settle(place, error)
