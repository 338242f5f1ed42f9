"""When an item expires. An expired item counts as absent, whether or not it was deleted yet."""

from __future__ import annotations

from collections.abc import Mapping

from crossdock.engines.items.port import Table


def expires_at(table: Table, item: Mapping[str, object]) -> int | None:
    """In seconds since 1970. An item without a number there lives for ever, as on DynamoDB."""
    value = item.get(table.ttl) if table.ttl is not None else None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return int(value)
    return None


def is_expired(table: Table, item: Mapping[str, object], now_seconds: int) -> bool:
    seconds = expires_at(table, item)
    return seconds is not None and seconds <= now_seconds
