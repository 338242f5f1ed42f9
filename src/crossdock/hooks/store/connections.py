"""Connections: `PK SRC#{sourceId}, SK CONN#{connectionId}`, found by id through GSI3 (`CONNID#…`).

A deleted connection stays as its record, without its secrets and headers. No update brings one back.

A connection's own headers may be credentials: their values are sealed, each for its name, and stay so in
`Connection.headers`; `unsealed_headers` is for whoever sends them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crossdock.engines.items.conditions import Absent, Compare, all_of, any_of, equals
from crossdock.engines.items.port import Item, Put, Query, Remove, Set, SortPrefix, Update, Value
from crossdock.hooks.model import TIMEOUT_SECONDS_DEFAULT, Connection, Status
from crossdock.hooks.store.attributes import (
    differences,
    from_json_text,
    integer_of,
    is_live,
    json_text,
    present,
    secret_attributes,
    secrets_of,
    set_or_remove,
    text_of,
    unchanged,
)
from crossdock.hooks.store.tables import MAIN, connection_key, event_key
from crossdock.kit.sealing import Sealer

ORDERED_MARGIN_MS = 300_000
"""An event whose node died may be fanned out minutes after it came, to connections made meanwhile."""

_PREFIX = "CONN#"

# A change of one of these was decided by what it was before.
_GUARDED = ("signingSecret", "ordered", "headers")


def secret_context(connection_id: str) -> str:
    """What the connection's signing secrets are sealed for."""
    return f"hooks.connection:{connection_id}:secret"


def sealed_headers(connection_id: str, headers: Mapping[str, str], sealer: Sealer) -> dict[str, str]:
    return {
        name: sealer.seal(value.encode(), _header_context(connection_id, name))
        for name, value in headers.items()
    }


def unsealed_headers(connection: Connection, sealer: Sealer) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, sealer.unseal(sealed, _header_context(connection.connection_id, name)).decode())
        for name, sealed in connection.headers.items()
    )


def _header_context(connection_id: str, name: str) -> str:
    return f"hooks.connection:{connection_id}:headers:{name}"


def ordered_from(source_id: str, now_ms: int) -> str:
    """The `ordered_cursor` of a connection whose order begins now: like every such cursor a sort key among
    the events of the source, after which the walk goes on."""
    return event_key(source_id, now_ms - ORDERED_MARGIN_MS, "")["SK"]


# --- the item --------------------------------------------------------------------------------------


def new_connection(connection: Connection) -> Put:
    item: Item = {
        **connection_key(connection.source_id, connection.connection_id),
        "GSI3PK": f"CONNID#{connection.connection_id}",
        "GSI3SK": "CONNECTION",
        "connectionId": connection.connection_id,
        "sourceId": connection.source_id,
        "userId": connection.user_id,
        "deliveryCount": connection.delivery_count,
        "failureCount": connection.failure_count,
        "createdAt": connection.created_at,
        "updatedAt": connection.updated_at,
        **present(_changeable(connection)),
    }
    return Put(MAIN, item, Absent("PK"))


def _changeable(connection: Connection) -> dict[str, Value]:
    """Attributes that a change may touch; None: not stored."""
    return {
        "name": connection.name,
        "destinationUrl": connection.destination_url,
        "status": connection.status.value,
        "filters": json_text(connection.filters),
        "transform": json_text(connection.transform),
        "retryConfig": json_text(connection.retry_config),
        "headers": json_text(connection.headers or None),
        "rateLimit": json_text(connection.rate_limit),
        "maxInFlight": connection.max_in_flight,
        "ordered": connection.ordered or None,
        "orderedCursor": connection.ordered_cursor,
        "timeoutSeconds": connection.timeout_seconds,
        "breaker": json_text(connection.breaker or None),
        "pausedReason": connection.paused_reason,
        **secret_attributes(connection.secrets),
    }


def connection_of(item: Mapping[str, Value]) -> Connection:
    return Connection(
        connection_id=str(item["connectionId"]),
        source_id=str(item["sourceId"]),
        user_id=str(item["userId"]),
        name=str(item["name"]),
        destination_url=str(item["destinationUrl"]),
        status=Status(str(item["status"])),
        created_at=str(item["createdAt"]),
        updated_at=str(item["updatedAt"]),
        secrets=secrets_of(item),
        filters=from_json_text(item.get("filters")),
        transform=from_json_text(item.get("transform")),
        retry_config=from_json_text(item.get("retryConfig")),
        headers=from_json_text(item.get("headers")) or {},
        rate_limit=from_json_text(item.get("rateLimit")),
        max_in_flight=None if item.get("maxInFlight") is None else integer_of(item, "maxInFlight"),
        ordered=item.get("ordered") is True,
        ordered_cursor=text_of(item, "orderedCursor"),
        timeout_seconds=integer_of(item, "timeoutSeconds", TIMEOUT_SECONDS_DEFAULT),
        delivery_count=integer_of(item, "deliveryCount"),
        failure_count=integer_of(item, "failureCount"),
        breaker=from_json_text(item.get("breaker")),
        paused_reason=text_of(item, "pausedReason"),
    )


# --- finding ---------------------------------------------------------------------------------------


def connection_by_id(connection_id: str) -> Query:
    return Query(MAIN, f"CONNID#{connection_id}", index="GSI3", limit=1)


def connections_of_source(source_id: str, limit: int, after: str | None) -> Query:
    """By id, deleted ones among them; `after`: the id that the page before ended at."""
    partition = connection_key(source_id, "")["PK"]
    cursor = None if after is None else connection_key(source_id, after)
    return Query(MAIN, partition, SortPrefix(_PREFIX), limit=limit, after=cursor)


# --- changing --------------------------------------------------------------------------------------


def connection_changed(before: Connection, after: Connection) -> Update:
    """What differs, and the time of it, on condition that the connection is live. No changes: nothing does.

    A new secret, other headers or another order hold only if these are as in `before`.
    """
    old, new = _changeable(before), _changeable(after)
    changes = differences(old, new)
    if changes:
        changes.append(Set("updatedAt", after.updated_at))
    guards = (unchanged(name, old[name]) for name in _GUARDED if old[name] != new[name])
    return Update(MAIN, _key(before), tuple(changes), all_of(is_live(), *guards))


def connection_paused(connection: Connection, reason: str, now: str) -> Update:
    """By ourselves, for a reason; on condition that it is active."""
    changes = (Set("status", Status.PAUSED.value), Set("pausedReason", reason), Set("updatedAt", now))
    return Update(MAIN, _key(connection), changes, equals("status", Status.ACTIVE.value))


def breaker_changed(connection: Connection, breaker: Mapping[str, Any] | None) -> Update:
    """On condition that the breaker is as in `connection`, and the connection live. An empty one is none."""
    condition = all_of(is_live(), unchanged("breaker", json_text(connection.breaker or None)))
    return Update(MAIN, _key(connection), (set_or_remove("breaker", json_text(breaker or None)),), condition)


def walked_to(connection: Connection, cursor: str) -> Update:
    """On condition that it is still ordered, and that this is forward."""
    forward = any_of(Absent("orderedCursor"), Compare("orderedCursor", "<", cursor))
    condition = all_of(is_live(), equals("ordered", True), forward)
    return Update(MAIN, _key(connection), (Set("orderedCursor", cursor),), condition)


def connection_deleted(connection: Connection, now: str) -> Update:
    changes = (
        Set("status", Status.DELETED.value),
        Set("updatedAt", now),
        Remove("signingSecret"),
        Remove("previousSecrets"),
        Remove("headers"),
    )
    return Update(MAIN, _key(connection), changes, is_live())


def _key(connection: Connection) -> dict[str, str]:
    return connection_key(connection.source_id, connection.connection_id)
