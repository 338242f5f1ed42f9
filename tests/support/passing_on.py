"""Items that pass every call on to others: what wrappers with an idea of their own start from."""

from __future__ import annotations

from collections.abc import Sequence

from crossdock.engines.items.conditions import ALWAYS, Condition
from crossdock.engines.items.port import (
    Change,
    Check,
    Delete,
    ExpiryHandler,
    Item,
    Items,
    JsonPage,
    Key,
    Outcome,
    Page,
    Put,
    Query,
    Table,
    Transaction,
    Update,
    Write,
)
from crossdock.kit.errors import CrossdockError


class PassingOn:
    """`put`, `update` and `delete` come through `single`: one place to override."""

    def __init__(self, items: Items) -> None:
        self._items = items

    async def get(self, table: Table, key: Key) -> Item | None:
        return await self._items.get(table, key)

    async def get_many(self, table: Table, keys: Sequence[Key]) -> list[Item | None]:
        return await self._items.get_many(table, keys)

    async def query(self, query: Query) -> Page:
        return await self._items.query(query)

    async def query_json(self, query: Query) -> JsonPage:
        return await self._items.query_json(query)

    async def put(self, table: Table, item: Item, condition: Condition = ALWAYS) -> Outcome:
        return await self.single(Put(table, item, condition))

    async def update(
        self, table: Table, key: Key, *changes: Change, condition: Condition = ALWAYS
    ) -> Outcome:
        return await self.single(Update(table, key, changes, condition))

    async def delete(self, table: Table, key: Key, condition: Condition = ALWAYS) -> Outcome:
        return await self.single(Delete(table, key, condition))

    async def single(self, write: Write) -> Outcome:
        match write:
            case Put(table, item, condition):
                return await self._items.put(table, item, condition)
            case Update(table, key, changes, condition):
                return await self._items.update(table, key, *changes, condition=condition)
            case Delete(table, key, condition):
                return await self._items.delete(table, key, condition)
            case Check():
                return await self._items.transact([write])

    async def transact(self, writes: Transaction) -> Outcome:
        return await self._items.transact(writes)

    async def transact_many(self, transactions: Sequence[Transaction]) -> list[Outcome | CrossdockError]:
        return await self._items.transact_many(transactions)

    async def write_many(self, table: Table, items: Sequence[Item]) -> None:
        await self._items.write_many(table, items)

    def on_expired(self, table: Table, handler: ExpiryHandler) -> None:
        self._items.on_expired(table, handler)

    async def close(self) -> None:
        await self._items.close()
