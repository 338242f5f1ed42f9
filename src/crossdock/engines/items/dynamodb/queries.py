"""Queries: pages that are full unless nothing follows, without expired items.

DynamoDB counts its limit before it filters, and may name a place to go on from although nothing follows. So
one item more than asked for is looked for: a page has a cursor exactly when that item was found.
"""

from __future__ import annotations

from typing import Any

import msgspec

from crossdock.engines.items.dynamodb.batch_reader import BatchReader
from crossdock.engines.items.dynamodb.client import DynamoClient
from crossdock.engines.items.dynamodb.errors import ServiceError, domain_error
from crossdock.engines.items.dynamodb.expiry import is_expired
from crossdock.engines.items.dynamodb.expressions import Placeholders, is_live, render_key_condition
from crossdock.engines.items.dynamodb.marshal import Attributes, marshal_key, unmarshal
from crossdock.engines.items.port import Cursor, JsonPage, Page, Query
from crossdock.kit.clock import Clock
from crossdock.kit.errors import MalformedRequest

# Once expired items were met, more may follow: look further ahead than the page needs.
FURTHER_ROUND_ITEMS = 100

_encode = msgspec.json.Encoder().encode


class Queries:
    def __init__(self, client: DynamoClient, reader: BatchReader, clock: Clock, table_prefix: str) -> None:
        self._client = client
        self._reader = reader
        self._clock = clock
        self._table_prefix = table_prefix

    async def page(self, query: Query) -> Page:
        found, cursor = await self._found(query)
        return Page([unmarshal(attributes) for attributes in found], cursor)

    async def json_page(self, query: Query) -> JsonPage:
        found, cursor = await self._found(query)
        return JsonPage([_encode(unmarshal(attributes)) for attributes in found], cursor)

    async def _found(self, query: Query) -> tuple[list[Attributes], Cursor | None]:
        if query.after is not None:
            check_cursor(query, query.after)
        now_seconds = self._clock.now_ms() // 1000
        request = query_request(query, self._table_prefix, now_seconds)
        if request is None:
            return [], None
        found: list[Attributes] = []
        while True:
            try:
                reply = await self._client.call("Query", request, repeatable=True)
            except ServiceError as error:
                raise domain_error(error) from error
            found += await self._living(query, reply["Items"], now_seconds)
            if len(found) > query.limit:
                return found[: query.limit], cursor_of(query, found[query.limit - 1])
            if "LastEvaluatedKey" not in reply:
                return found, None
            request["ExclusiveStartKey"] = reply["LastEvaluatedKey"]
            request["Limit"] = max(query.limit + 1 - len(found), FURTHER_ROUND_ITEMS)

    async def _living(self, query: Query, items: list[Attributes], now_seconds: int) -> list[Attributes]:
        """An index of keys does not hold the TTL attribute to filter by: the table is asked for it."""
        table = query.table
        if table.ttl is None or not is_keys_only(query) or not items:
            return items
        keys = [tuple(item[name]["S"] for name in table.key_attributes) for item in items]
        stored = await self._reader.get_many(table, keys, (*table.key_attributes, table.ttl))
        return [
            item
            for item, key in zip(items, keys, strict=True)
            if key in stored and not is_expired(table, unmarshal(stored[key]), now_seconds)
        ]


def is_keys_only(query: Query) -> bool:
    return query.index is not None and query.table.index(query.index).projection == "keys"


def query_request(query: Query, table_prefix: str, now_seconds: int) -> dict[str, Any] | None:
    """None if no key can meet the query."""
    placeholders = Placeholders()
    condition = render_key_condition(query, placeholders)
    if condition is None or query.limit < 1:
        return None
    request: dict[str, Any] = {
        "TableName": table_prefix + query.table.name,
        "KeyConditionExpression": condition,
        "ScanIndexForward": not query.descending,
        "Limit": query.limit + 1,
    }
    if query.index is None:
        request["ConsistentRead"] = True
    else:
        request["IndexName"] = query.index
    if query.table.ttl is not None and not is_keys_only(query):
        request["FilterExpression"] = is_live(query.table, now_seconds, placeholders)
    if query.after is not None:
        request["ExclusiveStartKey"] = marshal_key(query.after)
    placeholders.into(request)
    return request


def cursor_attributes(query: Query) -> tuple[str, ...]:
    names = list(query.table.key_attributes)
    if query.index is not None:
        index = query.table.index(query.index)
        names += [name for name in (index.partition, index.sort) if name is not None and name not in names]
    return tuple(names)


def cursor_of(query: Query, item: Attributes) -> Cursor:
    return {name: item[name]["S"] for name in cursor_attributes(query)}


def check_cursor(query: Query, cursor: Cursor) -> None:
    """A cursor of another query is an error here, where DynamoDB's own would be a puzzle."""
    source = query.table if query.index is None else query.table.index(query.index)
    if set(cursor) != set(cursor_attributes(query)) or cursor[source.partition] != query.partition:
        raise MalformedRequest("invalid_cursor", "The cursor does not belong to this list.")
