"""Why DynamoDB cancelled a transaction, read one reason at a time. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crossdock.engines.items.apply import narrow
from crossdock.engines.items.conditions import holds
from crossdock.engines.items.dynamodb.expiry import is_expired
from crossdock.engines.items.dynamodb.marshal import unmarshal
from crossdock.engines.items.port import Failure, Item, Update, Write

_PASSING = frozenset(
    {"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded", "RequestLimitExceeded"}
)
_HARMLESS = frozenset({"None", "ConditionalCheckFailed"}) | _PASSING


@dataclass(frozen=True, slots=True)
class Cancellation:
    failures: tuple[Failure, ...]
    """Conditions that did not hold: an answer."""
    replaceable: frozenset[int]
    """Updates that met an expired item and would hold for an absent one: put in its place."""
    outdated: frozenset[int]
    """Puts in place of an expired item which is not there any more: update again."""
    is_passing: bool
    """Some item was busy (a conflict, a throttle)."""
    defect: tuple[str, str] | None
    """Code and message of a reason that is none of these."""


def read_cancellation(
    writes: Sequence[Write], reasons: Sequence[Mapping[str, Any]], replaced: frozenset[int], now_seconds: int
) -> Cancellation:
    """`replaced`: positions of updates that were sent as puts in place of expired items."""
    failures: list[Failure] = []
    replaceable: set[int] = set()
    outdated: set[int] = set()
    for position, (write, reason) in enumerate(zip(writes, reasons, strict=True)):
        if reason.get("Code") != "ConditionalCheckFailed":
            continue
        stored = stored_item(reason)
        expired = stored is not None and is_expired(write.table, stored, now_seconds)
        if position in replaced:
            outdated.add(position)
        elif expired and isinstance(write, Update) and holds(write.condition, None):
            replaceable.add(position)
        else:
            failures.append(Failure(position, None if expired else narrow(write.table, stored)))
    defects = [
        (str(reason["Code"]), str(reason.get("Message", "")))
        for reason in reasons
        if reason.get("Code", "None") not in _HARMLESS
    ]
    return Cancellation(
        tuple(failures),
        frozenset(replaceable),
        frozenset(outdated),
        any(reason.get("Code") in _PASSING for reason in reasons),
        defects[0] if defects else None,
    )


def stored_item(error: Mapping[str, Any]) -> Item | None:
    """The item that a failed condition met, from a reason or from a single write's error."""
    attributes = error.get("Item")
    return unmarshal(attributes) if attributes else None
