"""What an event's status is, from the states of its deliveries. Pure.

An event carries how many of its deliveries are in which of five groups. Each transition of a delivery moves
one from a group to another, and the status follows from the counts, first that fits: `retrying` (any waits
for a retry), `processing` (any is open), `failed` (any ended without success), `delivered` (any was),
`filtered` (none, or all filtered out). A cancelled delivery is in no group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from crossdock.hooks.model import DeliveryState, EventStatus


class Counted(StrEnum):
    RETRYING = "retrying"
    OPEN = "open"
    FAILED = "failed"
    DELIVERED = "delivered"
    FILTERED = "filtered"


_GROUPS: dict[DeliveryState, Counted] = {
    DeliveryState.PENDING: Counted.OPEN,
    DeliveryState.HELD: Counted.OPEN,
    DeliveryState.RETRYING: Counted.RETRYING,
    DeliveryState.DELIVERED: Counted.DELIVERED,
    DeliveryState.EXHAUSTED: Counted.FAILED,
    DeliveryState.FAILED: Counted.FAILED,
    DeliveryState.FILTERED: Counted.FILTERED,
}

_PRECEDENCE: tuple[tuple[Counted, EventStatus], ...] = (
    (Counted.RETRYING, EventStatus.RETRYING),
    (Counted.OPEN, EventStatus.PROCESSING),
    (Counted.FAILED, EventStatus.FAILED),
    (Counted.DELIVERED, EventStatus.DELIVERED),
)


def counts_of(states: Iterable[DeliveryState]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for state in states:
        group = _GROUPS.get(state)
        if group is not None:
            counts[group.value] = counts.get(group.value, 0) + 1
    return counts


def moved(counts: Mapping[str, int], old: DeliveryState | None, new: DeliveryState | None) -> dict[str, int]:
    """The counts after one delivery went from `old` (None: it is new) to `new` (None: it is gone)."""
    after = dict(counts)
    for state, change in ((old, -1), (new, 1)):
        group = None if state is None else _GROUPS.get(state)
        if group is not None:
            after[group.value] = after.get(group.value, 0) + change
            if after[group.value] <= 0:
                del after[group.value]
    return after


def status_of(counts: Mapping[str, int]) -> EventStatus:
    return next(
        (status for group, status in _PRECEDENCE if counts.get(group.value, 0) > 0), EventStatus.FILTERED
    )
