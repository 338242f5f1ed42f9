"""The values of the hooks slice. Frozen, and without I/O.

Stored attributes have the contract's names (camelCase) and are known to `store/` alone; these are the values
that everything else speaks of.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

BODY_BYTES_MAX = 256 * 1024
HEAD_BYTES_MAX = 32 * 1024
"""Headers, path and query of an event together: with the largest body the item stays under 400 KB."""
CONNECTIONS_MAX = 50
"""Live connections of a source, so that a fan-out is one transaction."""
ATTEMPTS_MAX = 8
SHARDS = 16
TIMEOUT_SECONDS_DEFAULT = 30
TIMEOUT_SECONDS_MAX = 60


class Plan(StrEnum):
    FREE = "free"
    STARTER = "starter"
    PRO = "pro"
    TEAM = "team"


RETENTION_SECONDS: dict[Plan, int] = {
    Plan.FREE: 86_400,
    Plan.STARTER: 604_800,
    Plan.PRO: 2_592_000,
    Plan.TEAM: 7_776_000,
}


class Status(StrEnum):
    """Of a source or a connection."""

    ACTIVE = "active"
    PAUSED = "paused"
    DELETED = "deleted"


class KeyPermission(StrEnum):
    """look | change | also keys and profile."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


class EventStatus(StrEnum):
    RECEIVED = "received"
    PROCESSING = "processing"
    FILTERED = "filtered"
    DELIVERED = "delivered"
    RETRYING = "retrying"
    FAILED = "failed"


class DeliveryState(StrEnum):
    """Of one event at one connection."""

    PENDING = "pending"
    """Waiting for its first call, or in it."""
    RETRYING = "retrying"
    """Waiting for its next call, or in it."""
    HELD = "held"
    """Its connection may not be called: paused, failing, at a limit; or it is not its turn."""
    DELIVERED = "delivered"
    EXHAUSTED = "exhausted"
    """No attempt is left, or no time; `reason` says which."""
    FAILED = "failed"
    """It could not even be called: its transform failed."""
    FILTERED = "filtered"
    CANCELLED = "cancelled"
    """Its connection was deleted; not counted."""


OPEN_STATES = frozenset({DeliveryState.PENDING, DeliveryState.RETRYING, DeliveryState.HELD})


# --- accounts --------------------------------------------------------------------------------------


class User(msgspec.Struct, frozen=True, kw_only=True):
    user_id: str
    email: str
    name: str
    plan: Plan
    created_at: str
    updated_at: str
    usage_this_month: int = 0
    usage_period_start: str = ""
    alert_url: str | None = None
    has_password: bool = False
    github_id: str | None = None
    google_id: str | None = None
    stripe_customer_id: str | None = None


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    key_id: str
    user_id: str
    name: str
    key_prefix: str
    permissions: KeyPermission
    created_at: str
    last_used_at: str | None = None


class CreatedApiKey(ApiKey, frozen=True, kw_only=True):
    """`api_key` is shown this once."""

    api_key: str


# --- sources and connections -----------------------------------------------------------------------


class HeldSecret(msgspec.Struct, frozen=True):
    """A secret, sealed, and until when it is good; None: until it is replaced."""

    sealed: str
    valid_until_ms: int | None = None


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """`signing`, `dedup` and `response` as the API took them (decoded JSON); `secrets` newest first."""

    source_id: str
    user_id: str
    name: str
    provider: str
    status: Status
    created_at: str
    secrets: tuple[HeldSecret, ...] = ()
    signing: dict[str, Any] | None = None
    dedup: dict[str, Any] | None = None
    response: dict[str, Any] | None = None
    event_count: int = 0
    last_event_at: str | None = None


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """`filters`, `transform`, `retry_config` as the API took them (decoded JSON); `secrets` newest first."""

    connection_id: str
    source_id: str
    user_id: str
    name: str
    destination_url: str
    status: Status
    created_at: str
    updated_at: str
    secrets: tuple[HeldSecret, ...] = ()
    filters: list[Any] | None = None
    transform: list[Any] | None = None
    retry_config: dict[str, Any] | None = None
    headers: dict[str, str] = {}
    rate_limit: dict[str, Any] | None = None
    """`{"requests": n, "per_seconds": s}`"""
    max_in_flight: int | None = None
    ordered: bool = False
    ordered_cursor: str | None = None
    timeout_seconds: int = TIMEOUT_SECONDS_DEFAULT
    delivery_count: int = 0
    failure_count: int = 0
    breaker: dict[str, Any] | None = None
    """`delivery.breaker.BreakerState` as plain values; None: closed, and nothing to remember."""
    paused_reason: str | None = None


# --- events ----------------------------------------------------------------------------------------


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """An accepted webhook, as stored. `body` and `headers` are as they came."""

    event_id: str
    source_id: str
    user_id: str
    status: EventStatus
    method: str
    path: str
    query: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    content_type: str
    source_ip: str
    verified: bool
    received_at: int
    expires_at: int
    """In seconds."""
    processed_at: int | None = None
    delivered_at: int | None = None
    counts: dict[str, int] = {}
    """Deliveries by `rules.progress.Counted`."""
    version: int = 0
    """Of counts and status; each transition that changes them raises it."""
    fence: int = 0
    """Raised by whoever takes the event over, until it is fanned out."""
    direct_to: str | None = None
    """The connection that whoever holds the event's lease calls, before there is a delivery record."""


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One event at one connection, in its newest generation."""

    event_id: str
    connection_id: str
    source_id: str
    user_id: str
    received_at: int
    expires_at: int
    state: DeliveryState
    attempts: int = 0
    """Those charged in this generation."""
    next_attempt_at: int | None = None
    lease_until: int | None = None
    """Until then whoever raised the fence to this value calls, or has called and was killed."""
    fence: int = 0
    generation: str = ""
    """Empty, or that of the replay which asked for it."""
    reason: str | None = None


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    event_id: str
    connection_id: str
    attempt_number: int
    destination_url: str
    status_code: int
    response_body: str
    latency_ms: int
    error: str | None
    attempted_at: int
    generation: str = ""
