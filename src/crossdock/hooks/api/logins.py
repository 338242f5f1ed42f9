"""`/v1/hooks/login` and `/v1/hooks/logout`."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, Response, post
from litestar.di import NamedDependency
from litestar.params import JSONBody
from msgspec import Meta

from crossdock.hooks.accounts_model import Password, StartedSession
from crossdock.hooks.service.logins import Logins
from crossdock.http.bodies import RequestBody
from crossdock.http.idempotency import created, identify_request
from crossdock.http.principals import Principal


class Login(RequestBody):
    email: Annotated[str, Meta(max_length=254)]
    password: Password


@post(
    "/v1/hooks/login",
    status_code=200,
    tags=["hooks"],
    security=[{}],
    summary="Log in with an e-mail address and a password",
)
async def log_in(
    data: JSONBody[Login], request: Request[Any, Any, Any], logins: NamedDependency[Logins]
) -> Response[StartedSession]:
    """`token` is a credential for 24 hours, or until the password is changed: `Authorization: Bearer`. After
    ten wrong passwords for an address in 15 minutes it is 429."""
    proven = await logins.prove(data.email, data.password)
    identified = await identify_request(request, proven.principal)
    return created(await logins.start(proven, identified), status=200)


@post("/v1/hooks/logout", status_code=204, tags=["hooks"], summary="End the login of this request")
async def log_out(logins: NamedDependency[Logins], principal: NamedDependency[Principal]) -> None:
    """Within 5 s on every node."""
    await logins.end(principal)
