"""`/v1/sync/{workspaces,keys,settings}` and `/v1/sessions`, served whatever slices are on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from litestar import Controller, Request, Response, Router, delete, get, patch, post, put
from litestar.datastructures import Cookie
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery, JSONBody
from msgspec import UNSET, Meta, UnsetType

from crossdock.access.model import ApiKey, CreatedKey, Session, Setting, Workspace
from crossdock.access.rules import READ_KEYS, READ_WORKSPACES, SETTINGS, WRITE_KEYS, WRITE_WORKSPACES
from crossdock.access.service import AccessService
from crossdock.access.sessions import SessionService, without_cookie
from crossdock.http.bodies import RequestBody
from crossdock.http.guards import SESSION_COOKIE, Authenticator, requires, session_of
from crossdock.http.idempotency import IdempotentRequest, Once, created, identify_request
from crossdock.http.management import guarded_router, open_router
from crossdock.http.pages import Page, PageRequest
from crossdock.http.principals import Principal

Name = Annotated[str, Meta(min_length=1, max_length=200)]


class NewWorkspace(RequestBody):
    name: Name


class WorkspaceChange(RequestBody):
    name: Name | UnsetType = UNSET


class NewKey(RequestBody):
    label: Name
    workspace_id: UUID | None = None


class KeyChange(RequestBody):
    label: Name | UnsetType = UNSET


class SettingValue(RequestBody):
    value: Annotated[str, Meta(max_length=4096)]


class Login(RequestBody):
    api_key: Annotated[str, Meta(min_length=1, max_length=512)]


@dataclass(frozen=True, slots=True)
class SessionCookies:
    secure: bool

    def of(self, value: str, session: Session) -> Cookie:
        lifetime = session.expires_at - session.created_at
        return self._cookie(value, int(lifetime.total_seconds()))

    def none(self) -> Cookie:
        return self._cookie("", 0)

    def _cookie(self, value: str, max_age: int) -> Cookie:
        return Cookie(
            SESSION_COOKIE, value=value, max_age=max_age, secure=self.secure, httponly=True, samesite="strict"
        )


class Workspaces(Controller):
    path = "/v1/sync/workspaces"
    tags = ("access",)

    @post(guards=[requires(WRITE_WORKSPACES)], summary="Create a workspace")
    async def create(
        self,
        data: JSONBody[NewWorkspace],
        access: NamedDependency[AccessService],
        idempotency: NamedDependency[IdempotentRequest | None],
    ) -> Response[Workspace]:
        return created(await access.create_workspace(data.name, idempotency))

    @get(guards=[requires(READ_WORKSPACES)], summary="List workspaces, newest first")
    async def index(
        self,
        access: NamedDependency[AccessService],
        principal: NamedDependency[Principal],
        page: NamedDependency[PageRequest],
    ) -> Page[Workspace]:
        return await access.workspaces(principal, page)

    @get("/{workspace_id:uuid}", guards=[requires(READ_WORKSPACES)], summary="Show a workspace")
    async def show(
        self,
        workspace_id: FromPath[UUID],
        access: NamedDependency[AccessService],
        principal: NamedDependency[Principal],
    ) -> Workspace:
        return await access.workspace(principal, workspace_id)

    @patch("/{workspace_id:uuid}", guards=[requires(WRITE_WORKSPACES)], summary="Rename a workspace")
    async def change(
        self,
        workspace_id: FromPath[UUID],
        data: JSONBody[WorkspaceChange],
        access: NamedDependency[AccessService],
        principal: NamedDependency[Principal],
    ) -> Workspace:
        if isinstance(data.name, UnsetType):
            return await access.workspace(principal, workspace_id)
        return await access.rename_workspace(workspace_id, data.name)

    @delete("/{workspace_id:uuid}", guards=[requires(WRITE_WORKSPACES)], summary="Delete a workspace")
    async def remove(self, workspace_id: FromPath[UUID], access: NamedDependency[AccessService]) -> None:
        """Its keys stop working. What it holds stays stored."""
        await access.delete_workspace(workspace_id)


class Keys(Controller):
    path = "/v1/sync/keys"
    tags = ("access",)

    @post(guards=[requires(WRITE_KEYS)], summary="Create a key")
    async def create(
        self,
        data: JSONBody[NewKey],
        access: NamedDependency[AccessService],
        principal: NamedDependency[Principal],
        idempotency: NamedDependency[IdempotentRequest | None],
    ) -> Response[CreatedKey]:
        """`key` is in this answer only. An operator's key without `workspace_id` makes an operator's key."""
        return created(await access.create_key(principal, data.label, data.workspace_id, idempotency))

    @get(guards=[requires(READ_KEYS)], summary="List keys, newest first")
    async def index(
        self,
        access: NamedDependency[AccessService],
        principal: NamedDependency[Principal],
        page: NamedDependency[PageRequest],
        workspace_id: FromQuery[UUID | None] = None,
    ) -> Page[ApiKey]:
        return await access.keys(principal, workspace_id, page)

    @get("/{key_id:uuid}", guards=[requires(READ_KEYS)], summary="Show a key")
    async def show(
        self,
        key_id: FromPath[UUID],
        access: NamedDependency[AccessService],
        principal: NamedDependency[Principal],
    ) -> ApiKey:
        return await access.key(principal, key_id)

    @patch("/{key_id:uuid}", guards=[requires(WRITE_KEYS)], summary="Change a key's label")
    async def change(
        self,
        key_id: FromPath[UUID],
        data: JSONBody[KeyChange],
        access: NamedDependency[AccessService],
        principal: NamedDependency[Principal],
    ) -> ApiKey:
        if isinstance(data.label, UnsetType):
            return await access.key(principal, key_id)
        return await access.relabel_key(principal, key_id, data.label)

    @post("/{key_id:uuid}/revoke", guards=[requires(WRITE_KEYS)], status_code=200, summary="Revoke a key")
    async def revoke(
        self,
        key_id: FromPath[UUID],
        access: NamedDependency[AccessService],
        principal: NamedDependency[Principal],
    ) -> ApiKey:
        """For good, on every node within 5 s. Sessions that were started with it end too."""
        return await access.revoke_key(principal, key_id)


class Settings(Controller):
    path = "/v1/sync/settings"
    tags = ("access",)
    guards = (requires(SETTINGS),)

    @get(summary="List settings, by key")
    async def index(
        self, access: NamedDependency[AccessService], page: NamedDependency[PageRequest]
    ) -> Page[Setting]:
        return await access.settings(page)

    @get("/{key:str}", summary="Show a setting")
    async def show(self, key: FromPath[str], access: NamedDependency[AccessService]) -> Setting:
        return await access.setting(key)

    @put("/{key:str}", summary="Set a setting")
    async def set(
        self, key: FromPath[str], data: JSONBody[SettingValue], access: NamedDependency[AccessService]
    ) -> Setting:
        return await access.put_setting(key, data.value)

    @delete("/{key:str}", summary="Unset a setting")
    async def remove(self, key: FromPath[str], access: NamedDependency[AccessService]) -> None:
        await access.delete_setting(key)


class CurrentSession(Controller):
    path = "/v1/sessions/current"
    tags = ("access",)

    @get(summary="Show the session of this request")
    async def show(
        self, request: Request[Any, Any, Any], sessions: NamedDependency[SessionService]
    ) -> Session:
        return await sessions.current(session_of(request))

    @delete(summary="End the session of this request")
    async def end(
        self,
        request: Request[Any, Any, Any],
        sessions: NamedDependency[SessionService],
        session_cookies: NamedDependency[SessionCookies],
    ) -> Response[None]:
        await sessions.end(session_of(request))
        return Response(None, status_code=204, cookies=[session_cookies.none()])


@post("/v1/sessions", tags=["access"], security=[{}], summary="Start a session with a key")
async def start_session(
    data: JSONBody[Login],
    request: Request[Any, Any, Any],
    sessions: NamedDependency[SessionService],
    session_cookies: NamedDependency[SessionCookies],
) -> Response[Session]:
    """The session is the cookie of the answer: HttpOnly, SameSite=Strict, and Secure under https."""
    principal = await sessions.principal_of(data.api_key)
    once = await sessions.start(principal, await identify_request(request, principal))
    session, cookie = without_cookie(once.value)
    answer = created(Once(session, once.replayed))
    if cookie is not None:
        answer.set_cookie(session_cookies.of(cookie, session))
    return answer


def routers(
    access: AccessService, sessions: SessionService, authenticator: Authenticator, public_url: str | None
) -> list[Router]:
    cookies = SessionCookies(secure=public_url is not None and public_url.startswith("https://"))
    shared: dict[str, object] = {"access": access, "sessions": sessions, "session_cookies": cookies}
    return [
        open_router([start_session], shared),
        guarded_router(authenticator, [Workspaces, Keys, Settings, CurrentSession], shared),
    ]
