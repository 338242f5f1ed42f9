"""Markers of delivery ids, and the list of requests that were refused."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

from crossdock.engines.items.conditions import Absent
from crossdock.engines.items.port import Item, Put, Query, SortPrefix, Value
from crossdock.hooks.model import Event
from crossdock.hooks.store.tables import EVENTS

_NO_MARKER = Absent("PK")
REFUSED_KEPT = 100


def marker(event: Event, delivery_id: str, window_seconds: int) -> Put:
    """Written with the event; a second one is refused, and tells whose event was first."""
    digest = hashlib.sha256(delivery_id.encode("utf-8", "surrogatepass")).hexdigest()
    item: Item = {
        "PK": f"DUP#{event.source_id}#{digest}",
        "SK": "DUP",
        "eventId": event.event_id,
        "expiresAt": min(event.received_at // 1000 + window_seconds, event.expires_at),
    }
    return Put(EVENTS, item, _NO_MARKER)


class RefusedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request that was not taken for an event."""

    refused_at: int
    reason: str
    detail: str
    method: str
    path: str
    source_ip: str
    content_type: str
    content_length: int | None


def refused_request(source_id: str, slot: int, request: RefusedRequest, expires_at: int) -> Put:
    """Over the one that was in this slot: the last hundred are kept."""
    item: Item = {
        "PK": f"SRC#{source_id}",
        "SK": f"REF#{slot % REFUSED_KEPT:02d}",
        "expiresAt": expires_at,
        "refusedAt": request.refused_at,
        "reason": request.reason,
        "detail": request.detail,
        "method": request.method,
        "path": request.path,
        "sourceIp": request.source_ip,
        "contentType": request.content_type,
        "contentLength": request.content_length,
    }
    return Put(EVENTS, item)


def refused_requests(source_id: str) -> Query:
    return Query(EVENTS, f"SRC#{source_id}", SortPrefix("REF#"), limit=REFUSED_KEPT)


def refused_of(item: Mapping[str, Value]) -> RefusedRequest:
    length = item.get("contentLength")
    refused_at = item["refusedAt"]
    assert isinstance(refused_at, (int, float))
    return RefusedRequest(
        refused_at=int(refused_at),
        reason=str(item["reason"]),
        detail=str(item["detail"]),
        method=str(item["method"]),
        path=str(item["path"]),
        source_ip=str(item["sourceIp"]),
        content_type=str(item["contentType"]),
        content_length=int(length) if isinstance(length, (int, float)) else None,
    )
