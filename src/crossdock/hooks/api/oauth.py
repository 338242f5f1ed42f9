"""`/v1/hooks/oauth/{github|google}/start|callback`: signing in with somebody else's proof."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Controller, Request, Response, get
from litestar.datastructures import Cookie
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery, QueryParameter

from crossdock.hooks.accounts_model import OAuthProvider, StartedSession
from crossdock.hooks.service.oauth import STATE_SECONDS, OAuth, Return
from crossdock.kit.errors import NotFound

COOKIE = "crossdock_oauth"


class SignIn(Controller):
    path = "/v1/hooks/oauth/{provider:str}"
    tags = ("hooks",)
    security = ({},)

    @get("/start", status_code=302, summary="Sign in with GitHub or Google")
    async def start(
        self, provider: FromPath[str], oauth: NamedDependency[OAuth], has_https: NamedDependency[bool]
    ) -> Response[None]:
        """To the provider, for ten minutes in this browser. `provider`: github or google."""
        beginning = oauth.begin(_provider(provider))
        cookie = _cookie(beginning.cookie, beginning.cookie_path, STATE_SECONDS, secure=has_https)
        return Response(None, status_code=302, headers={"location": beginning.url}, cookies=[cookie])

    @get("/callback", summary="Come back from GitHub or Google")
    async def callback(
        self,
        provider: FromPath[str],
        request: Request[Any, Any, Any],
        *,
        oauth: NamedDependency[OAuth],
        has_https: NamedDependency[bool],
        code: FromQuery[str | None] = None,
        sealed_state: Annotated[str | None, QueryParameter(name="state")] = None,
        error: FromQuery[str | None] = None,
    ) -> Response[StartedSession]:
        """A login, as with a password. Who has no user yet gets one where sign-up is open."""
        known = _provider(provider)
        came = Return(state=sealed_state, code=code, error=error, cookie=request.cookies.get(COOKIE))
        session = await oauth.finish(known, came)
        cookie = _cookie("", oauth.cookie_path(known), 0, secure=has_https)
        return Response(session, cookies=[cookie])


def _provider(text: str) -> OAuthProvider:
    try:
        return OAuthProvider(text)
    except ValueError:
        raise NotFound("not_found", "Nothing is at this path.") from None


def _cookie(value: str, path: str, max_age: int, *, secure: bool) -> Cookie:
    return Cookie(
        COOKIE, value=value, path=path, max_age=max_age, secure=secure, httponly=True, samesite="lax"
    )
