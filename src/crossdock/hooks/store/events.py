"""Events: as they are accepted, found, and moved on.

The one write that accepts an event also puts it into the index of due work (`DUE#{shard}`), sorted by the
time from which anybody may take it: the end of its holder's lease, or at once. So an accepted event can't be
forgotten, whoever dies. Once it is fanned out its delivery records are in that index instead.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from zlib import crc32

import msgspec

from crossdock.engines.items.conditions import Absent, Condition, all_of, equals
from crossdock.engines.items.port import (
    Change,
    Item,
    Put,
    Query,
    Remove,
    Set,
    SortBetween,
    SortPrefix,
    Update,
    Value,
)
from crossdock.hooks.model import SHARDS, Event, EventStatus
from crossdock.hooks.rules.progress import status_of
from crossdock.hooks.store.attributes import integer_or_none, required_integer, text_of
from crossdock.hooks.store.tables import EVENTS, event_key

_MS_MAX = 9_999_999_999_999

_headers = msgspec.json.Encoder()
_header_pairs = msgspec.json.Decoder(tuple[tuple[str, str], ...])


def shard_of(event_id: str) -> int:
    return crc32(event_id.encode()) % SHARDS


def due_partition(shard: int) -> str:
    return f"DUE#{shard:02d}"


def parked_partition(connection_id: str, shard: int) -> str:
    return f"PARK#{connection_id}#{shard:02d}"


def due_keys(event_id: str, at_ms: int, connection_id: str = "") -> dict[str, str]:
    """Index keys of work that anybody may take from `at_ms` on."""
    return {
        "GSI2PK": due_partition(shard_of(event_id)),
        "GSI2SK": f"{at_ms:013d}#{event_id}#{connection_id}",
    }


# --- the item --------------------------------------------------------------------------------------


def new_event(event: Event, due_at_ms: int | None) -> Put:
    """`due_at_ms` None: nobody is to be told of it, so it is done with as it is."""
    body, encoding = _stored_text(event.body)
    item: Item = {
        **event_key(event.source_id, event.received_at, event.event_id),
        "GSI1PK": f"EVTID#{event.event_id}",
        "GSI1SK": "EVENT",
        "eventId": event.event_id,
        "sourceId": event.source_id,
        "userId": event.user_id,
        "status": event.status.value,
        "headers": _headers.encode(event.headers).decode(),
        "body": body,
        "sourceIp": event.source_ip,
        "contentType": event.content_type,
        "method": event.method,
        "path": event.path,
        "query": event.query,
        "verified": event.verified,
        "receivedAt": event.received_at,
        "expiresAt": event.expires_at,
        "version": 0,
        "fence": 0,
    }
    if due_at_ms is None:
        item["processedAt"] = event.received_at
    else:
        item.update(due_keys(event.event_id, due_at_ms))
    if encoding is not None:
        item["bodyEncoding"] = encoding
    if event.direct_to is not None:
        item["directTo"] = event.direct_to
    return Put(EVENTS, item, _NO_EVENT)


_NO_EVENT = Absent("PK")


def _stored_text(body: bytes) -> tuple[str, str | None]:
    """Text where it is text that both stores can hold; else base64."""
    if b"\0" not in body:
        try:
            return body.decode(), None
        except UnicodeDecodeError:
            pass
    return base64.b64encode(body).decode(), "base64"


def event_of(item: Mapping[str, Value]) -> Event:
    body = str(item.get("body", ""))
    counts = item.get("deliveryCounts")
    return Event(
        event_id=str(item["eventId"]),
        source_id=str(item["sourceId"]),
        user_id=str(item["userId"]),
        status=EventStatus(str(item["status"])),
        method=str(item["method"]),
        path=str(item["path"]),
        query=str(item["query"]),
        headers=_header_pairs.decode(str(item.get("headers", "[]"))),
        body=base64.b64decode(body) if item.get("bodyEncoding") == "base64" else body.encode(),
        content_type=str(item["contentType"]),
        source_ip=str(item["sourceIp"]),
        verified=item["verified"] is True,
        received_at=required_integer(item, "receivedAt"),
        expires_at=required_integer(item, "expiresAt"),
        processed_at=integer_or_none(item, "processedAt"),
        delivered_at=integer_or_none(item, "deliveredAt"),
        counts={name: required_integer(counts, name) for name in counts} if isinstance(counts, dict) else {},
        version=required_integer(item, "version"),
        fence=required_integer(item, "fence"),
        direct_to=text_of(item, "directTo"),
    )


# --- finding ---------------------------------------------------------------------------------------


def event_by_id(event_id: str) -> Query:
    """Keys only, and may lag."""
    return Query(EVENTS, f"EVTID#{event_id}", index="GSI1", limit=1)


def events_of_source(
    source_id: str, from_ms: int, to_ms: int, limit: int, after: str | None, *, descending: bool = True
) -> Query:
    """`after`: the sort key that the page before ended at. Inclusive at both ends."""
    return Query(
        EVENTS,
        f"SRC#{source_id}",
        SortBetween(f"EVT#{max(from_ms, 0):013d}#", f"EVT#{min(to_ms, _MS_MAX):013d}#\uffff"),
        descending=descending,
        limit=limit,
        after=None if after is None else {"PK": f"SRC#{source_id}", "SK": after},
    )


def sort_key_of(event: Event) -> str:
    return event_key(event.source_id, event.received_at, event.event_id)["SK"]


def due_work(shard: int, since_ms: int, until_ms: int, limit: int) -> Query:
    """Keys of what anybody may take now, the longest due first."""
    between = SortBetween(f"{max(since_ms, 0):013d}#", f"{until_ms:013d}#\uffff")
    return Query(EVENTS, due_partition(shard), between, index="GSI2", limit=limit)


def records_of_event(event_id: str, prefix: str, limit: int, after: str | None = None) -> Query:
    partition = f"EVT#{event_id}"
    return Query(
        EVENTS,
        partition,
        SortPrefix(prefix),
        limit=limit,
        after=None if after is None else {"PK": partition, "SK": after},
    )


# --- moving on -------------------------------------------------------------------------------------


def event_claimed(event: Event, until_ms: int, direct_to: str | None) -> Update:
    """For whoever read it as `event`, due and not fanned out."""
    changes: list[Change] = [Set("fence", event.fence + 1)]
    changes += [Set(name, value) for name, value in due_keys(event.event_id, until_ms).items()]
    changes.append(Remove("directTo") if direct_to is None else Set("directTo", direct_to))
    return Update(EVENTS, _key(event), tuple(changes), _as_read(event))


def event_fanned_out(event: Event, counts: Mapping[str, int], now_ms: int) -> Update:
    """From here on its deliveries are the work; the event is not due any more."""
    changes = (*_progress(event, counts, now_ms), Remove("GSI2PK"), Remove("GSI2SK"), Remove("directTo"))
    return Update(EVENTS, _key(event), changes, _as_read(event))


def event_moved(event: Event, counts: Mapping[str, int], now_ms: int) -> Update:
    """A delivery of it moved on; on condition that none other did since it was read."""
    return Update(EVENTS, _key(event), _progress(event, counts, now_ms), equals("version", event.version))


def _progress(event: Event, counts: Mapping[str, int], now_ms: int) -> tuple[Change, ...]:
    status = status_of(counts)
    changes: list[Change] = [
        Set("deliveryCounts", dict(counts)),
        Set("status", status.value),
        Set("version", event.version + 1),
    ]
    if event.processed_at is None:
        changes.append(Set("processedAt", now_ms))
    if status is EventStatus.DELIVERED and event.delivered_at is None:
        changes.append(Set("deliveredAt", now_ms))
    return tuple(changes)


def _as_read(event: Event) -> Condition:
    return all_of(equals("fence", event.fence), equals("version", event.version))


def _key(event: Event) -> dict[str, str]:
    return event_key(event.source_id, event.received_at, event.event_id)


def event_keys(items: Sequence[Mapping[str, Value]]) -> list[dict[str, str]]:
    return [EVENTS.key_of(item) for item in items]
