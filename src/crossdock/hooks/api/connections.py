"""`/v1/hooks/connections`: where a source's webhooks go."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from litestar import Controller, Response, delete, get, patch, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody
from msgspec import UNSET, Meta, UnsetType

from crossdock.hooks.api.sources import GraceSeconds, Name, given_fields
from crossdock.hooks.model import TIMEOUT_SECONDS_MAX
from crossdock.hooks.service.connections import Connections
from crossdock.hooks.service.principals import READ, WRITE
from crossdock.hooks.service.rotation import GRACE_SECONDS_DEFAULT
from crossdock.hooks.service.shown import (
    ChangedConnection,
    CreatedConnection,
    RotatedConnection,
    ShownConnection,
)
from crossdock.http.bodies import RequestBody
from crossdock.http.guards import requires
from crossdock.http.idempotency import IdempotentRequest, created
from crossdock.http.pages import Page, PageRequest
from crossdock.http.principals import Principal

InFlight: TypeAlias = Annotated[int, Meta(ge=1, le=1000)]
TimeoutSeconds: TypeAlias = Annotated[int, Meta(ge=1, le=TIMEOUT_SECONDS_MAX)]


class ConnectionFields(RequestBody, kw_only=True):
    filters: list[Any] | UnsetType | None = UNSET
    transform: list[Any] | UnsetType | None = UNSET
    retry_config: dict[str, Any] | UnsetType | None = UNSET
    headers: dict[str, Any] | UnsetType | None = UNSET
    rate_limit: dict[str, Any] | UnsetType | None = UNSET
    max_in_flight: InFlight | UnsetType | None = UNSET
    ordered: bool | UnsetType | None = UNSET
    timeout_seconds: TimeoutSeconds | UnsetType | None = UNSET


class NewConnection(ConnectionFields, kw_only=True):
    name: Name
    destination_url: str


class ConnectionChange(ConnectionFields, kw_only=True):
    name: Name | UnsetType = UNSET
    destination_url: str | UnsetType = UNSET


class ConnectionSecret(RequestBody):
    grace_seconds: GraceSeconds = GRACE_SECONDS_DEFAULT


class SourceConnectionsApi(Controller):
    path = "/v1/hooks/sources/{source_id:str}/connections"
    tags = ("hooks",)

    @post(guards=[requires(WRITE)], summary="Connect a source to a destination")
    async def create(
        self,
        source_id: FromPath[str],
        data: JSONBody[NewConnection],
        connections: NamedDependency[Connections],
        principal: NamedDependency[Principal],
        idempotency: NamedDependency[IdempotentRequest | None],
    ) -> Response[CreatedConnection]:
        """`signing_secret` is in this answer only: with it the destination verifies `webhook-signature`.

        A destination whose name is not known is accepted, and said in `warnings`. The values of `headers` are
        kept sealed and shown masked. At most 50 connections a source.
        """
        once = await connections.create(principal, source_id, given_fields(data), idempotency)
        return created(once)

    @get(guards=[requires(READ)], summary="List a source's connections")
    async def list(
        self,
        source_id: FromPath[str],
        connections: NamedDependency[Connections],
        principal: NamedDependency[Principal],
        page: NamedDependency[PageRequest],
    ) -> Page[ShownConnection]:
        return await connections.list(principal, source_id, page)


class ConnectionsApi(Controller):
    path = "/v1/hooks/connections/{connection_id:str}"
    tags = ("hooks",)

    @get(guards=[requires(READ)], summary="Show a connection")
    async def show(
        self,
        connection_id: FromPath[str],
        connections: NamedDependency[Connections],
        principal: NamedDependency[Principal],
    ) -> ShownConnection:
        return await connections.get(principal, connection_id)

    @patch(guards=[requires(WRITE)], summary="Change a connection")
    async def change(
        self,
        connection_id: FromPath[str],
        data: JSONBody[ConnectionChange],
        connections: NamedDependency[Connections],
        principal: NamedDependency[Principal],
    ) -> ChangedConnection:
        """Only the fields given change; null puts one back to its default. `headers` are replaced as a whole,
        but a value that comes back masked, as it was shown, stays."""
        return await connections.change(principal, connection_id, given_fields(data))

    @delete(guards=[requires(WRITE)], summary="Delete a connection")
    async def remove(
        self,
        connection_id: FromPath[str],
        connections: NamedDependency[Connections],
        principal: NamedDependency[Principal],
    ) -> None:
        """For good; what was not delivered yet is cancelled."""
        await connections.delete(principal, connection_id)

    @post(
        "/rotate-secret",
        status_code=200,
        guards=[requires(WRITE)],
        summary="Make a connection's new signing secret",
    )
    async def rotate_secret(
        self,
        connection_id: FromPath[str],
        data: JSONBody[ConnectionSecret],
        connections: NamedDependency[Connections],
        principal: NamedDependency[Principal],
        idempotency: NamedDependency[IdempotentRequest | None],
    ) -> Response[RotatedConnection]:
        """It is in this answer only. Deliveries are signed with the old one, too, for `grace_seconds`."""
        once = await connections.rotate_secret(principal, connection_id, data.grace_seconds, idempotency)
        return created(once, status=200)

    @post("/pause", status_code=200, guards=[requires(WRITE)], summary="Pause a connection")
    async def pause(
        self,
        connection_id: FromPath[str],
        connections: NamedDependency[Connections],
        principal: NamedDependency[Principal],
    ) -> ShownConnection:
        """Its deliveries wait until it is resumed."""
        return await connections.pause(principal, connection_id)

    @post("/resume", status_code=200, guards=[requires(WRITE)], summary="Resume a connection")
    async def resume(
        self,
        connection_id: FromPath[str],
        connections: NamedDependency[Connections],
        principal: NamedDependency[Principal],
    ) -> ShownConnection:
        """Why it was paused is forgotten, and its circuit is closed."""
        return await connections.resume(principal, connection_id)
