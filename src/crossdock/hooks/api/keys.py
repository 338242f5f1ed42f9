"""`/v1/hooks/keys`: API keys of a user."""

from __future__ import annotations

from litestar import Controller, Response, delete, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery, JSONBody

from crossdock.hooks.accounts_model import Name
from crossdock.hooks.model import ApiKey, CreatedApiKey, KeyPermission
from crossdock.hooks.service.keys import ApiKeys
from crossdock.hooks.service.principals import ADMIN, user_of
from crossdock.http.bodies import RequestBody
from crossdock.http.guards import requires
from crossdock.http.idempotency import IdempotentRequest, created
from crossdock.http.pages import Page, PageRequest
from crossdock.http.principals import Principal


class NewApiKey(RequestBody):
    name: Name
    permissions: KeyPermission
    user_id: str | None = None


class Keys(Controller):
    path = "/v1/hooks/keys"
    tags = ("hooks",)
    guards = (requires(ADMIN),)

    @post(summary="Create an API key")
    async def create(
        self,
        data: JSONBody[NewApiKey],
        api_keys: NamedDependency[ApiKeys],
        principal: NamedDependency[Principal],
        idempotency: NamedDependency[IdempotentRequest | None],
    ) -> Response[CreatedApiKey]:
        """`api_key` is in this answer only. `read` may look, `write` also change, `admin` also manage keys
        and the profile. The operator says whose it is, by `user_id`."""
        user_id = user_of(principal, data.user_id)
        return created(await api_keys.create(principal, user_id, data.name, data.permissions, idempotency))

    @get(summary="List API keys, newest first")
    async def list(
        self,
        api_keys: NamedDependency[ApiKeys],
        principal: NamedDependency[Principal],
        page: NamedDependency[PageRequest],
        user_id: FromQuery[str | None] = None,
    ) -> Page[ApiKey]:
        """The operator says whose, by `user_id`."""
        return await api_keys.list(user_of(principal, user_id), page)

    @delete("/{key_id:str}", summary="Delete an API key")
    async def remove(
        self,
        key_id: FromPath[str],
        api_keys: NamedDependency[ApiKeys],
        principal: NamedDependency[Principal],
        user_id: FromQuery[str | None] = None,
    ) -> None:
        """It stops working on every node within 5 s. The operator says whose it is, by `user_id`."""
        await api_keys.delete(user_of(principal, user_id), key_id)
