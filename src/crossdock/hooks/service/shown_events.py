"""Events, their deliveries and attempts, and requests that were refused, as they are shown."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import msgspec

from crossdock.hooks.model import Attempt, Delivery, DeliveryState, Event, EventStatus
from crossdock.hooks.rules.searching import moment
from crossdock.hooks.store.duplicates import RefusedRequest

SHOWN_BODY_BYTES_MAX = 64 * 1024


class EventSummary(msgspec.Struct, frozen=True, kw_only=True):
    event_id: str
    source_id: str
    user_id: str
    status: EventStatus
    method: str
    path: str
    content_type: str
    size: int
    """Of the body, in bytes."""
    verified: bool
    received_at: str
    processed_at: str | None
    delivered_at: str | None
    expires_at: str
    counts: dict[str, int]
    """Deliveries by how they stand: open, retrying, failed, delivered, filtered."""


class ShownDelivery(msgspec.Struct, frozen=True, kw_only=True):
    connection_id: str
    state: DeliveryState
    attempts: int
    """Charged to the destination, in this generation."""
    next_attempt_at: str | None
    generation: str
    """Of the replay that asked for it; empty for the first delivery."""
    reason: str | None


class ShownEvent(EventSummary, frozen=True, kw_only=True):
    """`body` is text, or base64 as `body_encoding` says; a large one is left out, and is at `body_url`."""

    query: str
    headers: list[tuple[str, str]]
    source_ip: str
    body: str | None
    body_encoding: str
    body_truncated: bool
    body_url: str
    deliveries: list[ShownDelivery]


class ShownAttempt(msgspec.Struct, frozen=True, kw_only=True):
    connection_id: str
    attempt_number: int
    generation: str
    destination_url: str
    status_code: int
    """0 without a complete answer; `error` then says why."""
    response_body: str
    latency_ms: int
    error: str | None
    attempted_at: str


class ShownRefusal(msgspec.Struct, frozen=True, kw_only=True):
    refused_at: str
    reason: str
    detail: str
    method: str
    path: str
    source_ip: str
    content_type: str
    content_length: int | None


def summary_of(event: Event) -> EventSummary:
    return EventSummary(
        event_id=event.event_id,
        source_id=event.source_id,
        user_id=event.user_id,
        status=event.status,
        method=event.method,
        path=event.path,
        content_type=event.content_type,
        size=len(event.body),
        verified=event.verified,
        received_at=moment(event.received_at),
        processed_at=_moment_or_none(event.processed_at),
        delivered_at=_moment_or_none(event.delivered_at),
        expires_at=moment(event.expires_at * 1000),
        counts=event.counts,
    )


def shown_event(event: Event, deliveries: Sequence[Delivery], body_url: str) -> ShownEvent:
    body, encoding = _shown_body(event.body)
    return ShownEvent(
        **msgspec.structs.asdict(summary_of(event)),
        query=event.query,
        headers=list(event.headers),
        source_ip=event.source_ip,
        body=body,
        body_encoding=encoding,
        body_truncated=body is None,
        body_url=body_url,
        deliveries=[shown_delivery(each) for each in deliveries],
    )


def _shown_body(body: bytes) -> tuple[str | None, str]:
    try:
        text, encoding = body.decode(), "utf-8"
    except UnicodeDecodeError:
        text, encoding = base64.b64encode(body).decode(), "base64"
    return (None if len(body) > SHOWN_BODY_BYTES_MAX else text), encoding


def shown_delivery(delivery: Delivery) -> ShownDelivery:
    return ShownDelivery(
        connection_id=delivery.connection_id,
        state=delivery.state,
        attempts=delivery.attempts,
        next_attempt_at=_moment_or_none(delivery.next_attempt_at),
        generation=delivery.generation,
        reason=delivery.reason,
    )


def shown_attempt(attempt: Attempt) -> ShownAttempt:
    return ShownAttempt(
        connection_id=attempt.connection_id,
        attempt_number=attempt.attempt_number,
        generation=attempt.generation,
        destination_url=attempt.destination_url,
        status_code=attempt.status_code,
        response_body=attempt.response_body,
        latency_ms=attempt.latency_ms,
        error=attempt.error,
        attempted_at=moment(attempt.attempted_at),
    )


def shown_refusal(request: RefusedRequest) -> ShownRefusal:
    return ShownRefusal(
        refused_at=moment(request.refused_at),
        reason=request.reason,
        detail=request.detail,
        method=request.method,
        path=request.path,
        source_ip=request.source_ip,
        content_type=request.content_type,
        content_length=request.content_length,
    )


def _moment_or_none(ms: int | None) -> str | None:
    return None if ms is None else moment(ms)
