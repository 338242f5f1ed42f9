"""`/v1/hooks/users` for the operator, sign-up for whoever may, and `/v1/hooks/me`."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Controller, Request, Response, get, patch, post
from litestar.connection import ASGIConnection
from litestar.di import NamedDependency
from litestar.handlers import BaseRouteHandler
from litestar.params import FromPath, FromQuery, JSONBody
from litestar.types import Guard
from msgspec import UNSET, UnsetType

from crossdock.hooks.accounts_model import AlertUrl, Email, Name, Password, StripeCustomerId
from crossdock.hooks.model import Plan, User
from crossdock.hooks.service.principals import ADMIN, READ, USERS, user_of
from crossdock.hooks.service.users import Users
from crossdock.http.bodies import RequestBody
from crossdock.http.guards import Authenticator, authenticated, credential_of, principal_of, requires
from crossdock.http.idempotency import created, identify_request
from crossdock.http.pages import Page, PageRequest
from crossdock.http.principals import Principal
from crossdock.kit.errors import FieldProblem, Forbidden, InvalidInput


class NewUser(RequestBody):
    email: Email
    name: Name
    password: Password | None = None
    alert_url: AlertUrl | None = None
    plan: Plan | None = None
    stripe_customer_id: StripeCustomerId | None = None


class OwnChange(RequestBody):
    email: Email | UnsetType = UNSET
    name: Name | UnsetType = UNSET
    password: Password | UnsetType = UNSET
    alert_url: AlertUrl | UnsetType | None = UNSET


class UserChange(OwnChange):
    plan: Plan | UnsetType = UNSET
    stripe_customer_id: StripeCustomerId | UnsetType | None = UNSET


class Me(Controller):
    path = "/v1/hooks/me"
    tags = ("hooks",)

    @get(guards=[requires(READ)], summary="Show the user that the key or login is of")
    async def show(
        self,
        users: NamedDependency[Users],
        principal: NamedDependency[Principal],
        user_id: FromQuery[str | None] = None,
    ) -> User:
        """The operator says which, by `user_id`."""
        return await users.get(user_of(principal, user_id))

    @patch(guards=[requires(ADMIN)], summary="Change one's e-mail address, name, password or alert URL")
    async def change(
        self,
        data: JSONBody[OwnChange],
        users: NamedDependency[Users],
        principal: NamedDependency[Principal],
        user_id: FromQuery[str | None] = None,
    ) -> User:
        """Only the fields given change. A new password ends all logins, this one too."""
        return await users.change(user_of(principal, user_id), _given(data))


class UserAdministration(Controller):
    """Below `operator_or_sign_up`, as one router: Litestar can't spread a path over two."""

    path = "/v1/hooks/users"
    tags = ("hooks",)

    @post(summary="Create a user, or sign up")
    async def create(
        self, data: JSONBody[NewUser], request: Request[Any, Any, Any], users: NamedDependency[Users]
    ) -> Response[User]:
        """For the operator. Where sign-up is open, for anybody without a credential, who gives a password and
        leaves `plan` and `stripe_customer_id` to the operator."""
        operator = operator_of(request)
        if operator is None:
            _check_sign_up(data)
        # Until there is a user, repeats are told apart by the address: no stranger's key is in the way.
        principal = operator or Principal("sign_up", data.email.lower(), None, frozenset())
        identified = await identify_request(request, principal)
        fields = msgspec.structs.asdict(data)
        return created(await users.create(fields, identified, email_proven=operator is not None))

    @get(summary="List users, newest first")
    async def list(self, users: NamedDependency[Users], page: NamedDependency[PageRequest]) -> Page[User]:
        return await users.list(page)

    @get("/{user_id:str}", summary="Show a user")
    async def show(self, user_id: FromPath[str], users: NamedDependency[Users]) -> User:
        return await users.get(user_id)

    @patch("/{user_id:str}", summary="Change a user")
    async def change(
        self, user_id: FromPath[str], data: JSONBody[UserChange], users: NamedDependency[Users]
    ) -> User:
        """Only the fields given change; null takes `alert_url` and `stripe_customer_id` away. The operator
        vouches for an e-mail address that it sets."""
        return await users.change(user_id, _given(data), email_proven=True)


def operator_or_sign_up(authenticator: Authenticator, *, is_open: bool) -> Guard:
    """The operator; where sign-up is open, who makes a user without any credential, too."""
    check_authentic, check_operator = authenticated(authenticator), requires(USERS)

    async def guard(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
        scope: Any = connection.scope
        if is_open and scope["method"] == "POST" and credential_of(scope) is None:
            return
        for check in (check_authentic, check_operator):
            waiting = check(connection, handler)
            if waiting is not None:
                await waiting

    return guard


def operator_of(request: Request[Any, Any, Any]) -> Principal | None:
    scope: Any = request.scope
    return None if credential_of(scope) is None else principal_of(request)


def _check_sign_up(data: NewUser) -> None:
    if data.plan is not None or data.stripe_customer_id is not None:
        raise Forbidden("operator_only", "Only the operator sets plan and stripe_customer_id.")
    if data.password is None:
        problem = FieldProblem("password", "required", "This field is required.")
        raise InvalidInput("The request body is not valid.", problem)


def _given(change: OwnChange) -> dict[str, str | None]:
    return {name: value for name, value in msgspec.structs.asdict(change).items() if value is not UNSET}
