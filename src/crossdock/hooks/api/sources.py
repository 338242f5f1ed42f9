"""`/v1/hooks/sources`: where webhooks come in."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec
from litestar import Controller, Response, delete, get, patch, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery, JSONBody
from msgspec import UNSET, Meta, UnsetType

from crossdock.hooks.model import Status
from crossdock.hooks.service.principals import READ, WRITE
from crossdock.hooks.service.rotation import GRACE_SECONDS_DEFAULT, GRACE_SECONDS_MAX
from crossdock.hooks.service.shown import ShownSource
from crossdock.hooks.service.sources import Sources
from crossdock.http.bodies import RequestBody
from crossdock.http.guards import requires
from crossdock.http.idempotency import IdempotentRequest, created
from crossdock.http.pages import Page, PageRequest
from crossdock.http.principals import Principal

Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=256)]
GraceSeconds: TypeAlias = Annotated[int, Meta(ge=0, le=GRACE_SECONDS_MAX)]


class NewSource(RequestBody, kw_only=True):
    """`user_id` is the operator's to say; whose key it is knows it."""

    name: Name
    provider: str
    signing_secret: str | UnsetType | None = UNSET
    signing: dict[str, Any] | UnsetType | None = UNSET
    dedup: dict[str, Any] | UnsetType | None = UNSET
    response: dict[str, Any] | UnsetType | None = UNSET
    user_id: str | None = None


class SourceChange(RequestBody):
    name: Name | UnsetType = UNSET
    provider: str | UnsetType = UNSET
    signing_secret: str | UnsetType | None = UNSET
    signing: dict[str, Any] | UnsetType | None = UNSET
    dedup: dict[str, Any] | UnsetType | None = UNSET
    response: dict[str, Any] | UnsetType | None = UNSET


class SourceSecret(RequestBody):
    signing_secret: str
    grace_seconds: GraceSeconds = GRACE_SECONDS_DEFAULT


class SourcesApi(Controller):
    path = "/v1/hooks/sources"
    tags = ("hooks",)

    @post(guards=[requires(WRITE)], summary="Create a source")
    async def create(
        self,
        data: JSONBody[NewSource],
        sources: NamedDependency[Sources],
        principal: NamedDependency[Principal],
        idempotency: NamedDependency[IdempotentRequest | None],
    ) -> Response[ShownSource]:
        """Give the provider `ingest_url`. Without `signing_secret` what comes is accepted unverified.

        `signing` is for `custom` (how it signs) and `api-key` (where the key stands); `dedup` says by which
        header or path repeats are told; `response` is what the provider is answered, `{"event_id": …}` unless
        given.
        """
        given = given_fields(data)
        user_id = given.pop("user_id")
        return created(await sources.create(principal, user_id, given, idempotency))

    @get(guards=[requires(READ)], summary="List a user's sources")
    async def list(
        self,
        sources: NamedDependency[Sources],
        principal: NamedDependency[Principal],
        page: NamedDependency[PageRequest],
        user_id: FromQuery[str | None] = None,
    ) -> Page[ShownSource]:
        """`user_id` is the operator's to say."""
        return await sources.list(principal, user_id, page)

    @get("/{source_id:str}", guards=[requires(READ)], summary="Show a source")
    async def show(
        self,
        source_id: FromPath[str],
        sources: NamedDependency[Sources],
        principal: NamedDependency[Principal],
    ) -> ShownSource:
        return await sources.get(principal, source_id)

    @patch("/{source_id:str}", guards=[requires(WRITE)], summary="Change a source")
    async def change(
        self,
        source_id: FromPath[str],
        data: JSONBody[SourceChange],
        sources: NamedDependency[Sources],
        principal: NamedDependency[Principal],
    ) -> ShownSource:
        """Only the fields given change; null takes one away. A new `signing_secret` is the only one from then
        on: use rotate-secret to keep the old one for a while."""
        return await sources.change(principal, source_id, given_fields(data))

    @delete("/{source_id:str}", guards=[requires(WRITE)], summary="Delete a source and its connections")
    async def remove(
        self,
        source_id: FromPath[str],
        sources: NamedDependency[Sources],
        principal: NamedDependency[Principal],
    ) -> None:
        """For good. What came stays as long as it would have."""
        await sources.delete(principal, source_id)

    @post(
        "/{source_id:str}/rotate-secret",
        status_code=200,
        guards=[requires(WRITE)],
        summary="Set a source's new signing secret",
    )
    async def rotate_secret(
        self,
        source_id: FromPath[str],
        data: JSONBody[SourceSecret],
        sources: NamedDependency[Sources],
        principal: NamedDependency[Principal],
        idempotency: NamedDependency[IdempotentRequest | None],
    ) -> Response[ShownSource]:
        """The secret until now stays valid for `grace_seconds`; at most five earlier ones are."""
        once = await sources.rotate_secret(
            principal, source_id, data.signing_secret, data.grace_seconds, idempotency
        )
        return created(once, status=200)

    @post("/{source_id:str}/pause", status_code=200, guards=[requires(WRITE)], summary="Pause a source")
    async def pause(
        self,
        source_id: FromPath[str],
        sources: NamedDependency[Sources],
        principal: NamedDependency[Principal],
    ) -> ShownSource:
        """The provider is answered 503, and sends again later."""
        return await sources.set_status(principal, source_id, Status.PAUSED)

    @post("/{source_id:str}/resume", status_code=200, guards=[requires(WRITE)], summary="Resume a source")
    async def resume(
        self,
        source_id: FromPath[str],
        sources: NamedDependency[Sources],
        principal: NamedDependency[Principal],
    ) -> ShownSource:
        return await sources.set_status(principal, source_id, Status.ACTIVE)


def given_fields(body: RequestBody) -> dict[str, Any]:
    """Those that the request has."""
    return {name: value for name, value in msgspec.structs.asdict(body).items() if value is not UNSET}
