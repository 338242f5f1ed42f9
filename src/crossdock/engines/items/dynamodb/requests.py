"""Writes as DynamoDB's requests, after every check that needs no stored item. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from crossdock.engines.items.apply import changed, place_of
from crossdock.engines.items.dynamodb.expressions import (
    Placeholders,
    guarded,
    holds_always,
    is_expired,
    render_update,
)
from crossdock.engines.items.dynamodb.marshal import marshal, marshal_key
from crossdock.engines.items.limits import check_key, check_transaction_size, encode_item
from crossdock.engines.items.port import (
    Add,
    Check,
    Delete,
    Item,
    ItemRejected,
    Put,
    Set,
    SetIfAbsent,
    Table,
    Update,
    Write,
)

Request: TypeAlias = dict[str, Any]


def check_item(table: Table, item: Item) -> None:
    """Raises ItemRejected."""
    encode_item(table, item)
    for name in table.wide:
        if item.get(name) is not None and not isinstance(item[name], str):
            raise ItemRejected(f"{name} must be a string.")


def check_write(write: Write) -> None:
    """Raises ItemRejected."""
    if isinstance(write, Put):
        check_item(write.table, write.item)
        return
    check_key(write.table, write.key)
    if isinstance(write, Update):
        _check_changes(write)


def _check_changes(write: Update) -> None:
    table = write.table
    names = [change.attribute for change in write.changes]
    if len(set(names)) < len(names):
        raise ItemRejected("An update changes an attribute twice.")
    if not set(names).isdisjoint(table.key_attributes):
        raise ItemRejected("A key attribute can't be changed.")
    index_attributes = {name for index in table.indexes for name in (index.partition, index.sort)}
    for change in write.changes:
        if isinstance(change, Add) and change.attribute in index_attributes:
            raise ItemRejected(f"{change.attribute} must be a non-empty string.")
    values = {
        change.attribute: change.value for change in write.changes if isinstance(change, (Set, SetIfAbsent))
    }
    check_item(table, {**write.key, **values})


def check_transaction(writes: Sequence[Write]) -> None:
    """Raises ItemRejected."""
    check_transaction_size(len(writes))
    for write in writes:
        check_write(write)
    if len({place_of(write) for write in writes}) < len(writes):
        raise ItemRejected("A transaction names an item twice.")


def write_request(write: Write, table_name: str, now_seconds: int) -> tuple[str, Request]:
    """The kind of the write (Put, Update, Delete, ConditionCheck), and its request for a transaction."""
    placeholders = Placeholders()
    table = write.table
    kind = "Put"
    request: Request = {"TableName": table_name}
    condition = guarded(
        write.condition, table, now_seconds, placeholders, live_only=isinstance(write, Update)
    )
    match write:
        case Put(item=item):
            request["Item"] = marshal(item)
        case Update(key=key, changes=changes):
            kind, request["Key"] = "Update", marshal_key(key)
            if changes:
                request["UpdateExpression"] = render_update(changes, placeholders)
        case Delete(key=key):
            kind, request["Key"] = "Delete", marshal_key(key)
        case Check(key=key):
            kind, request["Key"] = "ConditionCheck", marshal_key(key)
            condition = condition or holds_always(table, placeholders)
    _set_condition(request, condition, placeholders)
    return kind, request


def replacing_request(write: Update, table_name: str, now_seconds: int) -> tuple[str, Request]:
    """A put of what the update makes of an absent item, in place of an expired one that is still there."""
    placeholders = Placeholders()
    request: Request = {"TableName": table_name, "Item": marshal(changed(None, write.key, write.changes))}
    _set_condition(request, is_expired(write.table, now_seconds, placeholders), placeholders)
    return "Put", request


def _set_condition(request: Request, condition: str | None, placeholders: Placeholders) -> None:
    if condition is not None:
        request["ConditionExpression"] = condition
        request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    placeholders.into(request)
