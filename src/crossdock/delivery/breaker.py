"""A circuit breaker per destination, as plain values that can be stored, so that nodes share them. Pure.

    closed ── failures in a row ──> open ── its pause ends ──> half open ── one probe fails ──> open, longer
       <─────────────────────────────── any success ──────────────────┘

- Open, nothing is sent. Each pause is longer than the one before.
- Half open, one probe goes at a time: whoever sends it first stores its claim, on condition that the state is
  still the one that was read. A claim whose holder died lapses by itself.
- Results that come late, of calls begun before it opened, neither prolong a pause nor shorten it.
- A success with nothing to forget gives back the state it was given: nothing to write.

Only what the destination is charged with belongs here: a result that is our own fault is no result.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import msgspec

from crossdock.kit.backoff import Backoff, Uniform

_DAY_MS = 86_400_000
_PAUSES = Backoff(base_seconds=30, cap_seconds=600)


class Phase(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class BreakerState(msgspec.Struct, frozen=True, omit_defaults=True):
    consecutive_failures: int = 0
    failing_since_ms: int | None = None
    """The first failure since the last success, or since a long silence."""
    last_failed_ms: int | None = None
    times_opened: int = 0
    opened_at_ms: int | None = None
    open_until_ms: int | None = None
    """None: closed. It never moves back until a success."""
    probing_until_ms: int | None = None
    """A probe is on its way; after this it counts as lost."""


HEALTHY = BreakerState()


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    failures_max: int = 10
    """So many in a row open it."""
    pauses: Backoff = _PAUSES
    jitter_share: float = 0.1
    probe_ms: int = 90_000
    """How long a probe is waited for: longer than the longest timeout of a call."""
    gives_up_after_ms: int = 5 * _DAY_MS
    silence_ms: int = 2 * _DAY_MS
    """Without a failure for that long, nothing was sent: the count of days starts anew."""


DEFAULT_POLICY = BreakerPolicy()


@dataclass(frozen=True, slots=True)
class Allowed:
    claim: BreakerState | None = None
    """To be stored before the call, if the stored state is still the one read. None: just call."""


@dataclass(frozen=True, slots=True)
class NotBefore:
    at_ms: int


Permission: TypeAlias = Allowed | NotBefore

_ALLOWED = Allowed()


def phase(state: BreakerState, now_ms: int) -> Phase:
    if state.open_until_ms is None:
        return Phase.CLOSED
    return Phase.OPEN if now_ms < state.open_until_ms else Phase.HALF_OPEN


def allow(state: BreakerState, now_ms: int, policy: BreakerPolicy = DEFAULT_POLICY) -> Permission:
    """May a call begin now?"""
    if state.open_until_ms is None:
        return _ALLOWED
    waits_until_ms = max(state.open_until_ms, state.probing_until_ms or 0)
    if now_ms < waits_until_ms:
        return NotBefore(waits_until_ms)
    return Allowed(msgspec.structs.replace(state, probing_until_ms=now_ms + policy.probe_ms))


def after(
    state: BreakerState, ok: bool, now_ms: int, uniform: Uniform, policy: BreakerPolicy = DEFAULT_POLICY
) -> BreakerState:
    """The state after a call that the destination is charged with."""
    if ok:
        return state if state == HEALTHY else HEALTHY
    if phase(state, now_ms) is Phase.OPEN:
        return state
    failed = _failed(state, now_ms, policy)
    if state.open_until_ms is None and failed.consecutive_failures < policy.failures_max:
        return failed
    return _opened(failed, now_ms, uniform, policy)


def gives_up(state: BreakerState, now_ms: int, policy: BreakerPolicy = DEFAULT_POLICY) -> bool:
    """Has it failed so long that nothing more should be tried until somebody looks at it?"""
    if state.open_until_ms is None or state.failing_since_ms is None:
        return False
    return now_ms - state.failing_since_ms >= policy.gives_up_after_ms


def _failed(state: BreakerState, now_ms: int, policy: BreakerPolicy) -> BreakerState:
    since_ms = state.failing_since_ms
    if since_ms is None or now_ms - (state.last_failed_ms or since_ms) > policy.silence_ms:
        since_ms = now_ms
    return msgspec.structs.replace(
        state,
        consecutive_failures=state.consecutive_failures + 1,
        failing_since_ms=since_ms,
        last_failed_ms=now_ms,
    )


def _opened(state: BreakerState, now_ms: int, uniform: Uniform, policy: BreakerPolicy) -> BreakerState:
    times_opened = state.times_opened + 1
    pause_seconds = policy.pauses.ceiling_seconds(times_opened) * (1 + policy.jitter_share * uniform())
    return msgspec.structs.replace(
        state,
        times_opened=times_opened,
        opened_at_ms=now_ms,
        open_until_ms=now_ms + round(pause_seconds * 1000),
        probing_until_ms=None,
    )
