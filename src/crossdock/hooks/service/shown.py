"""Sources and connections as they are answered: without secrets, and with the values of headers masked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from crossdock.delivery import breaker
from crossdock.hooks.model import Connection, Source, Status
from crossdock.hooks.rules.providers.recipes import recipe_of
from crossdock.hooks.service.rotation import ends_of_previous
from crossdock.kit.errors import FieldProblem
from crossdock.kit.logging import MASK


class ShownSource(msgspec.Struct, frozen=True, kw_only=True):
    source_id: str
    user_id: str
    name: str
    provider: str
    status: Status
    ingest_url: str
    has_secret: bool
    """Without one, what comes is accepted unverified."""
    previous_secrets_valid_until: list[str]
    signs_url: bool
    """The provider signs the URL too: it must call exactly `ingest_url`."""
    signing: dict[str, Any] | None
    dedup: dict[str, Any] | None
    response: dict[str, Any] | None
    event_count: int
    last_event_at: str | None
    created_at: str


class ShownConnection(msgspec.Struct, frozen=True, kw_only=True):
    connection_id: str
    source_id: str
    user_id: str
    name: str
    destination_url: str
    status: Status
    paused_reason: str | None
    """Why it was paused, unless a user did it."""
    circuit: breaker.Phase
    filters: list[Any] | None
    transform: list[Any] | None
    retry_config: dict[str, Any] | None
    headers: dict[str, str]
    """Values are masked."""
    rate_limit: dict[str, Any] | None
    max_in_flight: int | None
    ordered: bool
    timeout_seconds: int
    previous_secrets_valid_until: list[str]
    delivery_count: int
    failure_count: int
    created_at: str
    updated_at: str


class ChangedConnection(ShownConnection, frozen=True, kw_only=True):
    warnings: Sequence[FieldProblem]
    """What is accepted and will yet not work as it is now."""


class CreatedConnection(ChangedConnection, frozen=True, kw_only=True):
    """`signing_secret` is shown this once."""

    signing_secret: str


class RotatedConnection(ShownConnection, frozen=True, kw_only=True):
    """`signing_secret` is shown this once."""

    signing_secret: str


Shown = TypeVar("Shown", bound=ShownConnection)


def show_source(source: Source, ingest_url: str, now_ms: int) -> ShownSource:
    return ShownSource(
        source_id=source.source_id,
        user_id=source.user_id,
        name=source.name,
        provider=source.provider,
        status=source.status,
        ingest_url=ingest_url,
        has_secret=bool(source.secrets),
        previous_secrets_valid_until=ends_of_previous(source.secrets, now_ms),
        signs_url=recipe_of(source.provider, source.signing).signs_url,
        signing=source.signing,
        dedup=source.dedup,
        response=source.response,
        event_count=source.event_count,
        last_event_at=source.last_event_at,
        created_at=source.created_at,
    )


def show_connection(connection: Connection, kind: type[Shown], now_ms: int, **more: Any) -> Shown:
    """`more`: what the kind has besides."""
    state = msgspec.convert(connection.breaker or {}, breaker.BreakerState)
    return kind(
        connection_id=connection.connection_id,
        source_id=connection.source_id,
        user_id=connection.user_id,
        name=connection.name,
        destination_url=connection.destination_url,
        status=connection.status,
        paused_reason=connection.paused_reason,
        circuit=breaker.phase(state, now_ms),
        filters=connection.filters,
        transform=connection.transform,
        retry_config=connection.retry_config,
        headers=dict.fromkeys(connection.headers, MASK),
        rate_limit=connection.rate_limit,
        max_in_flight=connection.max_in_flight,
        ordered=connection.ordered,
        timeout_seconds=connection.timeout_seconds,
        previous_secrets_valid_until=ends_of_previous(connection.secrets, now_ms),
        delivery_count=connection.delivery_count,
        failure_count=connection.failure_count,
        created_at=connection.created_at,
        updated_at=connection.updated_at,
        **more,
    )
