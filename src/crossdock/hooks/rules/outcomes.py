"""What a call makes of its delivery, and what is kept of it. Pure.

Attempts are counted from 1 in each generation. One that the destination is not charged with (our own fault,
a call cut short) is kept beside them under a mark of its own, and the next one has the same number.
"""

from __future__ import annotations

from msgspec.structs import replace

from crossdock.delivery.model import INTERRUPTED, CallResult, Decision, GaveUp, RetryAt, Succeeded
from crossdock.hooks.model import Attempt, Delivery, DeliveryState

RETENTION_MARGIN_MS = 60_000
LEASE_MARGIN_MS = 30_000


def not_after_ms(expires_at: int) -> int:
    """The last moment at which an attempt may be due: a little before everything of the event is gone."""
    return expires_at * 1000 - RETENTION_MARGIN_MS


def lease_end_ms(now_ms: int, timeout_seconds: int) -> int:
    return now_ms + timeout_seconds * 1000 + LEASE_MARGIN_MS


def after_call(delivery: Delivery, decision: Decision, *, in_order: bool = False) -> Delivery:
    """`in_order`: a retry waits for its turn instead of for anybody."""
    match decision:
        case Succeeded():
            return _ended(delivery, DeliveryState.DELIVERED, None, charged=True)
        case RetryAt(at_ms=at_ms, charged=charged):
            attempts = delivery.attempts + charged
            state = DeliveryState.RETRYING if attempts else DeliveryState.PENDING
            if in_order:
                state = DeliveryState.HELD
            return replace(
                delivery, state=state, attempts=attempts, next_attempt_at=at_ms, lease_until=None, reason=None
            )
        case GaveUp(reason=reason):
            return _ended(delivery, DeliveryState.EXHAUSTED, reason.value, charged=True)


def without_call(delivery: Delivery, state: DeliveryState, reason: str) -> Delivery:
    """It ends, and nobody was called."""
    return _ended(delivery, state, reason, charged=False)


def _ended(delivery: Delivery, state: DeliveryState, reason: str | None, *, charged: bool) -> Delivery:
    return replace(
        delivery,
        state=state,
        attempts=delivery.attempts + charged,
        next_attempt_at=None,
        lease_until=None,
        reason=reason,
    )


def held(delivery: Delivery, now_ms: int) -> Delivery:
    """Parked at the place in which it was due."""
    due_ms = now_ms if delivery.next_attempt_at is None else delivery.next_attempt_at
    return replace(delivery, state=DeliveryState.HELD, next_attempt_at=due_ms, lease_until=None)


def released(delivery: Delivery, now_ms: int) -> Delivery:
    state = DeliveryState.RETRYING if delivery.attempts else DeliveryState.PENDING
    return replace(delivery, state=state, next_attempt_at=now_ms, lease_until=None)


def claimed(delivery: Delivery, until_ms: int) -> Delivery:
    return replace(delivery, fence=delivery.fence + 1, lease_until=until_ms)


def attempt_of_call(
    delivery: Delivery, destination_url: str, result: CallResult, attempted_at: int
) -> tuple[Attempt, str]:
    """The attempt, and its mark."""
    attempt = Attempt(
        event_id=delivery.event_id,
        connection_id=delivery.connection_id,
        attempt_number=delivery.attempts + 1,
        destination_url=destination_url,
        status_code=result.status,
        response_body=result.body_text,
        latency_ms=result.latency_ms,
        error=result.error,
        attempted_at=attempted_at,
        generation=delivery.generation,
    )
    return attempt, f"u{delivery.fence}" if result.own_fault else ""


def interrupted_attempt(delivery: Delivery, destination_url: str, now_ms: int) -> tuple[Attempt, str]:
    """Of a call whose holder was killed: it may have arrived. `delivery` is as its holder had it."""
    attempt, _ = attempt_of_call(delivery, destination_url, INTERRUPTED, now_ms)
    return attempt, f"i{delivery.fence}"
