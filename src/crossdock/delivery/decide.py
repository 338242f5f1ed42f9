"""What follows from a call: done, again later, or the end. Pure.

- Only 2xx succeeds. A redirect is a failure: it is not followed.
- 410 ends it at once and pauses the destination.
- Our own failures use up no attempt; they are tried again soon.
- `Retry-After` along with 429 or 503 lengthens the wait of the policy, to twice that at most.
- No attempt is planned for after `not_after_ms`, when the message itself will be gone.
"""

from __future__ import annotations

import math

from crossdock.delivery.model import CallResult, Decision, GaveUp, GaveUpReason, RetryAt, Succeeded
from crossdock.delivery.schedule import RetryPolicy, with_jitter
from crossdock.kit.backoff import Uniform

OWN_FAULT_DELAY_SECONDS = 5.0
RETRY_AFTER_STATUSES = frozenset({429, 503})
_GONE = 410


def decide(
    result: CallResult,
    attempt: int,
    policy: RetryPolicy,
    now_ms: int,
    uniform: Uniform,
    *,
    not_after_ms: int | None,
) -> Decision:
    """`attempt` is the number of the one just made, counted from 1. `not_after_ms` None: no end."""
    if result.succeeded:
        return Succeeded()
    if result.own_fault:
        # Twice the wait at most: all that failed for want of a socket should not want one together again.
        delay_seconds = OWN_FAULT_DELAY_SECONDS * (1 + uniform())
    elif result.status == _GONE:
        return GaveUp(GaveUpReason.GONE, pauses_destination=True)
    elif attempt >= policy.attempts_max:
        return GaveUp(GaveUpReason.ATTEMPTS_EXHAUSTED)
    else:
        delay_seconds = _delay_seconds(result, policy.base_delay_seconds(attempt + 1), uniform)
    at_ms = now_ms + math.ceil(delay_seconds * 1000)
    if not_after_ms is not None and at_ms > not_after_ms:
        return GaveUp(GaveUpReason.RETENTION)
    return RetryAt(at_ms, charged=not result.own_fault)


def _delay_seconds(result: CallResult, base_seconds: float, uniform: Uniform) -> float:
    delay_seconds = with_jitter(base_seconds, uniform)
    if result.retry_after_seconds is None or result.status not in RETRY_AFTER_STATUSES:
        return delay_seconds
    added_seconds = delay_seconds - base_seconds
    return min(max(base_seconds, result.retry_after_seconds) + added_seconds, 2 * base_seconds)
