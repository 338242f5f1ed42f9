"""What a replay makes of a delivery, and what it leaves alone. Pure.

Each replay has a generation, `{ms:013d}-{replay id}`, so that of two the later one is the greater text. A
delivery takes a generation once: it begins anew in it, unless it has that one or a later one already. So a
replay that is carried out twice, in whole or in part, sends nothing twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from crossdock.delivery import breaker
from crossdock.hooks.model import Connection, Delivery, DeliveryState, Event, EventStatus
from crossdock.hooks.rules.outcomes import held, not_after_ms
from crossdock.hooks.rules.placement import Placement, placement
from crossdock.hooks.rules.progress import counts_of, status_of

_MS_DIGITS = 13


class ReplayState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """Many events replayed: which, and how far it has come. `cursor`: the last event looked at."""

    replay_id: str
    source_id: str
    user_id: str
    generation: str
    state: ReplayState
    created_at: int
    from_ms: int
    to_ms: int
    status: EventStatus | None = None
    connection_id: str | None = None
    cursor: str | None = None
    looked_at: int = 0
    replayed: int = 0
    """Events, of those looked at."""
    skipped: int = 0
    deliveries: int = 0
    """Begun anew for the events replayed."""
    finished_at: int | None = None
    reason: str | None = None
    """Why it failed."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What one page of events came to."""

    looked_at: int = 0
    replayed: int = 0
    deliveries: int = 0

    @property
    def skipped(self) -> int:
        return self.looked_at - self.replayed


@dataclass(frozen=True, slots=True)
class Restart:
    """A delivery as it was read, None if there was no record of it, and as it begins anew."""

    before: Delivery | None
    after: Delivery


# --- generations -----------------------------------------------------------------------------------


def generation_of(replay_id: str, ms: int) -> str:
    return f"{ms:0{_MS_DIGITS}d}-{replay_id}"


def next_generation(replay_id: str, now_ms: int, earlier: Iterable[str]) -> str:
    """After all of `earlier`, be the clock of whoever made those ahead of ours. Empty ones are none."""
    newest_ms = max((int(each[:_MS_DIGITS]) for each in earlier if each), default=-1)
    return generation_of(replay_id, max(now_ms, newest_ms + 1))


# --- one delivery ----------------------------------------------------------------------------------


def takes(delivery: Delivery | None, generation: str) -> bool:
    """Does the delivery (None: there is no record of it) begin anew in this generation?"""
    return delivery is None or delivery.generation < generation


def restarted(delivery: Delivery, generation: str, where: Placement, now_ms: int) -> Delivery:
    """From its first attempt, due now. Whoever is calling in an earlier generation is taken over."""
    begun = replace(
        delivery,
        state=DeliveryState.PENDING,
        attempts=0,
        next_attempt_at=now_ms,
        lease_until=None,
        fence=delivery.fence + 1,
        generation=generation,
        reason=None,
    )
    return held(begun, now_ms) if where is Placement.HOLD else begun


def placement_of_replay(
    connection: Connection, breaker_state: breaker.BreakerState, now_ms: int
) -> Placement:
    """A replay is outside the order of an ordered connection: it waits for nothing but leave to call."""
    return placement(replace(connection, ordered=False), breaker_state, now_ms)


def status_of_delivery(delivery: Delivery | None) -> EventStatus:
    """What its event's status would be if it were the only one. One without a record was never wanted."""
    return status_of(counts_of([] if delivery is None else [delivery.state]))


# --- one event -------------------------------------------------------------------------------------


class NotNow(StrEnum):
    """Why an event can't be replayed, whoever it is for."""

    NOT_SENT_YET = "not_sent_yet"
    """It is about to be sent for the first time."""
    EXPIRING = "expiring"
    """It is gone in a moment, before it could be sent."""


def not_now(event: Event, now_ms: int) -> NotNow | None:
    if event.status is EventStatus.RECEIVED:
        return NotNow.NOT_SENT_YET
    return NotNow.EXPIRING if now_ms >= not_after_ms(event.expires_at) else None
