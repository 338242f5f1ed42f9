"""Strongly consistent reads by key: GetItem, and BatchGetItem for those that wait together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from crossdock.engines.items.dynamodb.client import ATTEMPTS_MAX, DynamoClient
from crossdock.engines.items.dynamodb.errors import ServiceError, domain_error, unavailable
from crossdock.engines.items.dynamodb.loop_turn import LoopTurn, chunks, settle_all
from crossdock.engines.items.dynamodb.marshal import Attributes
from crossdock.engines.items.port import Table

READS_A_BATCH = 100
BATCHES_AT_ONCE = 8

KeyValues: TypeAlias = tuple[str, ...]
_Place: TypeAlias = tuple[Table, KeyValues]


class BatchReader:
    def __init__(self, client: DynamoClient, table_prefix: str) -> None:
        self._client = client
        self._table_prefix = table_prefix
        self._turn: LoopTurn[tuple[_Place, _Answer]] = LoopTurn(READS_A_BATCH, self._send_turn)

    async def get(self, table: Table, key: KeyValues) -> Attributes | None:
        answer = _Answer()
        self._turn.add(((table, key), answer))
        await answer.done
        return answer.item

    async def get_many(
        self, table: Table, keys: Iterable[KeyValues], attributes: Sequence[str] = ()
    ) -> dict[KeyValues, Attributes]:
        """Those that are there. `attributes`: only these of each."""
        places = [(table, key) for key in dict.fromkeys(keys)]
        seats = asyncio.Semaphore(BATCHES_AT_ONCE)

        async def read(batch: list[_Place]) -> dict[_Place, Attributes]:
            async with seats:
                return await self._read_batch(batch, attributes)

        batches = await asyncio.gather(*(read(batch) for batch in chunks(places, READS_A_BATCH)))
        return {key: item for batch in batches for (_, key), item in batch.items()}

    async def drain(self) -> None:
        await self._turn.drain()

    async def _send_turn(self, entries: list[tuple[_Place, _Answer]]) -> None:
        places = list(dict.fromkeys(place for place, _ in entries))
        error: Exception | None = None
        try:
            if len(places) == 1:
                item = await self._read_one(*places[0])
                items = {} if item is None else {places[0]: item}
            else:
                items = await self._read_batch(places)
        except Exception as reason:
            error = reason
        else:
            for place, answer in entries:
                answer.item = items.get(place)
        settle_all((answer.done for _, answer in entries), error)

    async def _read_one(self, table: Table, key: KeyValues) -> Attributes | None:
        request = {
            "TableName": self._table_prefix + table.name,
            "Key": _marshalled_key(table, key),
            "ConsistentRead": True,
        }
        try:
            reply = await self._client.call("GetItem", request, repeatable=True)
        except ServiceError as error:
            raise domain_error(error) from error
        item: Attributes | None = reply.get("Item")
        return item

    async def _read_batch(
        self, places: Sequence[_Place], attributes: Sequence[str] = ()
    ) -> dict[_Place, Attributes]:
        tables = {self._table_prefix + table.name: table for table, _ in places}
        requests: dict[str, Any] = {}
        for table, key in places:
            name = self._table_prefix + table.name
            request = requests.setdefault(
                name, {"ConsistentRead": True, "Keys": [], **_projection(attributes)}
            )
            request["Keys"].append(_marshalled_key(table, key))
        found: dict[_Place, Attributes] = {}
        attempt = 0
        while requests:
            try:
                reply = await self._client.call("BatchGetItem", {"RequestItems": requests}, repeatable=True)
            except ServiceError as error:
                raise domain_error(error) from error
            before = len(found)
            for name, items in reply["Responses"].items():
                table = tables[name]
                found.update(((table, _key_values(table, item)), item) for item in items)
            requests = reply.get("UnprocessedKeys", {})
            attempt = 1 if len(found) > before else attempt + 1
            if requests:
                if attempt == ATTEMPTS_MAX:
                    raise unavailable("BatchGetItem: unprocessed keys", busy=True)
                await self._client.pause(attempt)
        return found


class _Answer:
    """Where a get's item is put before its waiter is told."""

    __slots__ = ("done", "item")

    def __init__(self) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.item: Attributes | None = None


def _marshalled_key(table: Table, key: KeyValues) -> Attributes:
    return {name: {"S": value} for name, value in zip(table.key_attributes, key, strict=True)}


def _key_values(table: Table, item: Attributes) -> KeyValues:
    return tuple(item[name]["S"] for name in table.key_attributes)


def _projection(attributes: Sequence[str]) -> dict[str, Any]:
    if not attributes:
        return {}
    names = {f"#p{number}": name for number, name in enumerate(attributes)}
    return {"ProjectionExpression": ", ".join(names), "ExpressionAttributeNames": names}
