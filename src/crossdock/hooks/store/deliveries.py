"""Delivery records and attempts: one record per event and connection, one item per call ever made.

A record that is open is in the index of due work, sorted by the time from which anybody may take it: the end
of its holder's lease, or its next attempt. One whose connection may not be called is parked instead
(`PARK#{connectionId}#{shard}`), where the order is that in which it was due. Each taking raises the fence,
and every transition is conditional on it: who was taken over changes nothing any more.
"""

from __future__ import annotations

from collections.abc import Mapping

from crossdock.engines.items.conditions import Absent, Condition, all_of, equals
from crossdock.engines.items.port import Change, Item, Put, Query, Set, Tally, Update, Value
from crossdock.hooks.model import OPEN_STATES, Attempt, Delivery, DeliveryState, Event
from crossdock.hooks.store.attributes import integer_or_none, required_integer, set_or_remove, text_of
from crossdock.hooks.store.events import due_keys, parked_partition, shard_of
from crossdock.hooks.store.tables import EVENTS, MAIN, connection_key, delivery_key

_NO_RECORD = Absent("PK")

# --- records ---------------------------------------------------------------------------------------


def new_delivery(delivery: Delivery) -> Put:
    return Put(EVENTS, _item(delivery), _NO_RECORD)


def _item(delivery: Delivery) -> Item:
    item: Item = {
        **delivery_key(delivery.event_id, delivery.connection_id),
        "eventId": delivery.event_id,
        "connectionId": delivery.connection_id,
        "sourceId": delivery.source_id,
        "userId": delivery.user_id,
        "receivedAt": delivery.received_at,
        "expiresAt": delivery.expires_at,
    }
    item.update(
        {change.attribute: change.value for change in _attributes(delivery) if isinstance(change, Set)}
    )
    return item


def delivery_changed(before: Delivery, after: Delivery) -> Update:
    """On condition that the record is as whoever changes it read it."""
    return Update(
        EVENTS,
        delivery_key(before.event_id, before.connection_id),
        _attributes(after),
        _still(before),
    )


def _still(delivery: Delivery) -> Condition:
    return all_of(equals("fence", delivery.fence), equals("state", delivery.state.value))


def _attributes(delivery: Delivery) -> tuple[Change, ...]:
    changes: list[Change] = [
        Set("state", delivery.state.value),
        Set("attempts", delivery.attempts),
        Set("fence", delivery.fence),
        Set("generation", delivery.generation),
        set_or_remove("nextAttemptAt", delivery.next_attempt_at),
        set_or_remove("leaseUntil", delivery.lease_until),
        set_or_remove("reason", delivery.reason),
    ]
    place = index_keys(delivery)
    changes += [set_or_remove(name, place.get(name)) for name in ("GSI2PK", "GSI2SK")]
    return tuple(changes)


def index_keys(delivery: Delivery) -> dict[str, str]:
    """Where an open delivery waits; nothing for one that has ended, or that waits for its turn."""
    if delivery.state not in OPEN_STATES:
        return {}
    at_ms = delivery.next_attempt_at if delivery.lease_until is None else delivery.lease_until
    if at_ms is None:
        return {}
    keys = due_keys(delivery.event_id, at_ms, delivery.connection_id)
    if delivery.state is DeliveryState.HELD and delivery.lease_until is None:
        keys["GSI2PK"] = parked_partition(delivery.connection_id, shard_of(delivery.event_id))
    return keys


def delivery_of(item: Mapping[str, Value]) -> Delivery:
    return Delivery(
        event_id=str(item["eventId"]),
        connection_id=str(item["connectionId"]),
        source_id=str(item["sourceId"]),
        user_id=str(item["userId"]),
        received_at=required_integer(item, "receivedAt"),
        expires_at=required_integer(item, "expiresAt"),
        state=DeliveryState(str(item["state"])),
        attempts=required_integer(item, "attempts"),
        next_attempt_at=integer_or_none(item, "nextAttemptAt"),
        lease_until=integer_or_none(item, "leaseUntil"),
        fence=required_integer(item, "fence"),
        generation=str(item["generation"]),
        reason=text_of(item, "reason"),
    )


def delivery_to(event: Event, connection_id: str, state: DeliveryState) -> Delivery:
    """A new record's beginnings."""
    return Delivery(
        event_id=event.event_id,
        connection_id=connection_id,
        source_id=event.source_id,
        user_id=event.user_id,
        received_at=event.received_at,
        expires_at=event.expires_at,
        state=state,
    )


# --- parking ---------------------------------------------------------------------------------------

PARKED = "PARKED"
MARK_SECONDS = 7 * 86_400


def parked(connection_id: str, shard: int, limit: int) -> Query:
    """Keys, the longest due first."""
    return Query(EVENTS, parked_partition(connection_id, shard), index="GSI2", limit=limit)


def parking_mark(connection_id: str, source_id: str, now_ms: int) -> Put:
    """Says that the connection may have parked deliveries; put again as long as it does."""
    item: Item = {
        "PK": f"PARKING#{connection_id}",
        "SK": "PARKING",
        "GSI2PK": PARKED,
        "GSI2SK": f"{connection_id}#{source_id}",
        "connectionId": connection_id,
        "sourceId": source_id,
        "expiresAt": now_ms // 1000 + MARK_SECONDS,
    }
    return Put(EVENTS, item)


def parking_marks(limit: int, after: Mapping[str, str] | None) -> Query:
    return Query(EVENTS, PARKED, index="GSI2", limit=limit, after=None if after is None else dict(after))


# --- attempts --------------------------------------------------------------------------------------


def new_attempt(attempt: Attempt, expires_at: int, mark: str = "") -> Put:
    """`mark` tells apart attempts of one number: those that are not charged."""
    item: Item = {
        "PK": f"EVT#{attempt.event_id}",
        "SK": attempt_sort_key(attempt, mark),
        "eventId": attempt.event_id,
        "connectionId": attempt.connection_id,
        "attemptNumber": attempt.attempt_number,
        "destinationUrl": attempt.destination_url,
        "statusCode": attempt.status_code,
        "responseBody": attempt.response_body,
        "latencyMs": attempt.latency_ms,
        "attemptedAt": attempt.attempted_at,
        "expiresAt": expires_at,
    }
    if attempt.error is not None:
        item["error"] = attempt.error
    if attempt.generation:
        item["generation"] = attempt.generation
    return Put(EVENTS, item, _NO_RECORD)


def attempt_sort_key(attempt: Attempt, mark: str = "") -> str:
    parts = [f"ATT#{attempt.attempt_number:02d}", attempt.connection_id, attempt.generation, mark]
    return "#".join(part for part in parts if part)


def attempt_of(item: Mapping[str, Value]) -> Attempt:
    return Attempt(
        event_id=str(item["eventId"]),
        connection_id=str(item["connectionId"]),
        attempt_number=required_integer(item, "attemptNumber"),
        destination_url=str(item["destinationUrl"]),
        status_code=required_integer(item, "statusCode"),
        response_body=str(item["responseBody"]),
        latency_ms=required_integer(item, "latencyMs"),
        error=text_of(item, "error"),
        attempted_at=required_integer(item, "attemptedAt"),
        generation=str(item.get("generation", "")),
    )


def ended(delivery: Delivery) -> Tally | None:
    """What a connection counts of a delivery that ended."""
    counted = {
        DeliveryState.DELIVERED: "deliveryCount",
        DeliveryState.EXHAUSTED: "failureCount",
        DeliveryState.FAILED: "failureCount",
    }.get(delivery.state)
    if counted is None:
        return None
    return Tally(MAIN, connection_key(delivery.source_id, delivery.connection_id), {counted: 1})
