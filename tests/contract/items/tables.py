"""The tables that the suite declares, once for each opened backend, under names of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import uuid4

from crossdock.engines.items.port import Index, Table

BY_OWNER = "by_owner"
BY_STATE = "by_state"
BY_TAG = "by_tag"


@dataclass(frozen=True, slots=True)
class Tables:
    plain: Table
    """Only a partition key."""
    sorted: Table
    """A sort key, a wide attribute, and an index of each kind."""
    expiring: Table
    """A TTL, and an index."""
    told: Table
    """A TTL, a stream, and a wide attribute. No index: DynamoDB Local never deletes an expired item that is
    missing from one, as DynamoDB does."""

    def __iter__(self) -> Iterator[Table]:
        return iter((self.plain, self.sorted, self.expiring, self.told))


def declare() -> Tables:
    prefix = f"suite-{uuid4().hex[:10]}"
    by_owner = Index(BY_OWNER, partition="owner", sort="rank")
    return Tables(
        plain=Table(f"{prefix}-plain", partition="id"),
        sorted=Table(
            f"{prefix}-sorted",
            partition="pk",
            sort="sk",
            indexes=(
                by_owner,
                Index(BY_STATE, partition="state", sort="rank", projection="keys"),
                Index(BY_TAG, partition="tag"),
            ),
            wide=("body",),
        ),
        expiring=Table(
            f"{prefix}-expiring", partition="pk", sort="sk", indexes=(by_owner,), ttl="expires_at"
        ),
        told=Table(
            f"{prefix}-told", partition="pk", sort="sk", wide=("body",), ttl="expires_at", stream=True
        ),
    )


def fresh(what: str = "key") -> str:
    """A key that no other test has used: tests share tables, never items."""
    return f"{what}-{uuid4().hex}"
