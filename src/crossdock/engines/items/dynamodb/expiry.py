"""When an item has expired, and which stream records tell that one did. Pure.

An item leaves a table once: DynamoDB's TTL removes it, or one of our writes replaces or deletes what was left
of it. The stream record of that moment is its expiry, and the record's id is the event's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crossdock.engines.items.dynamodb.marshal import unmarshal
from crossdock.engines.items.port import Expired, Table

TTL_PRINCIPAL = "dynamodb.amazonaws.com"


def is_expired(table: Table, item: Mapping[str, object], now_seconds: int) -> bool:
    expires_at = item.get(table.ttl) if table.ttl is not None else None
    if isinstance(expires_at, bool) or not isinstance(expires_at, (int, float)):
        return False
    return int(expires_at) <= now_seconds


def expiry_of(table: Table, record: Mapping[str, Any]) -> Expired | None:
    """What a stream record says expired, if it does."""
    change = record["dynamodb"]
    if record["eventName"] == "INSERT" or "OldImage" not in change:
        return None
    item = unmarshal(change["OldImage"])
    removed_by_ttl = record.get("userIdentity", {}).get("PrincipalId") == TTL_PRINCIPAL
    # A time in JSON is a number of seconds, with a fraction or without.
    if not removed_by_ttl and not is_expired(table, item, int(change["ApproximateCreationDateTime"])):
        return None
    return Expired(f"{table.name}:{record['eventID']}", table, item)
