"""Where a delivery waits, as its connection is now. Pure."""

from __future__ import annotations

from enum import Enum

from crossdock.delivery import breaker
from crossdock.hooks.model import Connection, Status


class Placement(Enum):
    SEND = "send"
    """Anybody may call, whenever there is room."""
    HOLD = "hold"
    """Parked, for the one who looks after connections that may not be called just so."""
    TURN = "turn"
    """In order: whoever walks the source's events comes to it."""
    NOWHERE = "nowhere"
    """The connection is deleted."""


def placement(connection: Connection, breaker_state: breaker.BreakerState, now_ms: int) -> Placement:
    if connection.status is Status.DELETED:
        return Placement.NOWHERE
    if connection.ordered:
        return Placement.TURN
    if connection.status is Status.PAUSED or breaker.phase(breaker_state, now_ms) is not breaker.Phase.CLOSED:
        return Placement.HOLD
    # Limits hold over all nodes, so that one of them has to keep them.
    if connection.rate_limit is not None or connection.max_in_flight is not None:
        return Placement.HOLD
    return Placement.SEND
