"""From a request to a principal, the same way on raw lanes and in the management API.

A credential is taken from `Authorization: Bearer`, else `X-API-Key`, else the session cookie. The registry's
resolvers are found by the longest prefix of the credential (`dk_`, `fh_`; the empty prefix takes the rest).

- No credential, an unknown one, one that was revoked: 401, always the same, so that nothing can be probed.
- A good credential without the permission: 403 (`require`). A thing of another tenant: 404 (`require_sight`).
- The cookie is SameSite=Strict. A request that changes something by cookie must also show, by
  `Sec-Fetch-Site` or `Origin`, that it comes from our own pages: 403 `cross_origin` otherwise. Other sources
  of credentials are never sent by a browser of its own accord and need no such proof.
- An engine that is away is 503, never 401.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.types import Guard

from crossdock.http.asgi import Scope, header
from crossdock.http.principals import Credential, Principal, Resolver, require
from crossdock.kit.errors import Forbidden, Unauthenticated

SESSION_COOKIE = "crossdock_session"
CREDENTIAL_CHARACTERS_MAX = 512
_PRINCIPAL = "crossdock.principal"
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class Authenticator:
    """`resolvers`: credential prefix -> resolver. `sessions` resolves the cookie's value."""

    def __init__(
        self,
        resolvers: Mapping[str, Resolver],
        sessions: Resolver | None = None,
        public_url: str | None = None,
    ) -> None:
        self._resolvers = sorted(resolvers.items(), key=lambda each: len(each[0]), reverse=True)
        self._sessions = sessions
        self._public_origin = None if public_url is None else _origin(public_url)

    async def authenticate(self, scope: Scope) -> Principal:
        """The request's principal. Raises Unauthenticated, or Forbidden for a forged cookie request."""
        credential = credential_of(scope)
        if credential is None:
            raise Unauthenticated(
                "credential_required", "Send a key: the header Authorization: Bearer <key>."
            )
        if credential.source == "cookie":
            check_same_origin(scope, self._public_origin)
        principal = await self.resolve(credential)
        if principal is None:
            raise Unauthenticated("invalid_credential", "The key or session is not valid, or not any more.")
        return principal

    async def resolve(self, credential: Credential) -> Principal | None:
        resolver = self._sessions if credential.source == "cookie" else self._resolver_of(credential.text)
        return None if resolver is None else await resolver.resolve(credential.text)

    def _resolver_of(self, text: str) -> Resolver | None:
        return next((resolver for prefix, resolver in self._resolvers if text.startswith(prefix)), None)


def authenticated(authenticator: Authenticator) -> Guard:
    """A Litestar guard; it runs before the body is read. Handlers get the principal by `principal_of`."""

    # A function, not a method: Litestar deep-copies what it registers, a bound method's object too.
    async def guard(connection: ASGIConnection[Any, Any, Any, Any], _handler: BaseRouteHandler) -> None:
        scope: Any = connection.scope
        scope[_PRINCIPAL] = await authenticator.authenticate(scope)

    return guard


def principal_of(request: Request[Any, Any, Any]) -> Principal:
    """A dependency for handlers below `authenticated`; `management.guarded_router` provides it."""
    scope: Any = request.scope
    principal: Principal = scope[_PRINCIPAL]
    return principal


def session_of(request: Request[Any, Any, Any]) -> str | None:
    """The session cookie's value, good or not."""
    scope: Any = request.scope
    return session_cookie(scope)


def requires(permission: str) -> Guard:
    """A guard for a router or a handler below `authenticated`: 403 without the permission."""

    def guard(connection: ASGIConnection[Any, Any, Any, Any], _handler: BaseRouteHandler) -> None:
        scope: Any = connection.scope
        require(scope[_PRINCIPAL], permission)

    return guard


# --- pure ------------------------------------------------------------------------------------------


def credential_of(scope: Scope) -> Credential | None:
    """What the request says it is. An `Authorization` of another scheme does not hide what comes after it."""
    authorization = header(scope, b"authorization")
    if authorization is not None:
        scheme, _, value = authorization.decode("latin-1").partition(" ")
        if scheme.lower() == "bearer":
            return _credential(value.strip(), "authorization")
    api_key = header(scope, b"x-api-key")
    if api_key is not None:
        return _credential(api_key.decode("latin-1").strip(), "x-api-key")
    session = session_cookie(scope)
    return None if session is None else _credential(session, "cookie")


def _credential(text: str, source: Any) -> Credential | None:
    """Nothing as long as that was ever given out: not worth a hash, nor a place in a cache."""
    if not text or len(text) > CREDENTIAL_CHARACTERS_MAX or not text.isascii():
        return None
    return Credential(text, source)


def session_cookie(scope: Scope) -> str | None:
    raw = header(scope, b"cookie")
    if raw is None:
        return None
    for pair in raw.decode("latin-1").split(";"):
        name, _, value = pair.strip().partition("=")
        if name == SESSION_COOKIE:
            return value
    return None


def check_same_origin(scope: Scope, public_origin: str | None) -> None:
    """Raises Forbidden for a change by cookie that does not come from a page of ours."""
    if scope["method"] in _SAFE_METHODS:
        return
    site = header(scope, b"sec-fetch-site")
    if site is not None:
        if site == b"same-origin":
            return
    else:
        origin = header(scope, b"origin")
        if origin is not None and _is_ours(origin.decode("latin-1"), scope, public_origin):
            return
    raise Forbidden("cross_origin", "A change by session cookie must come from this server's own pages.")


def _is_ours(origin: str, scope: Scope, public_origin: str | None) -> bool:
    if public_origin is not None:
        return origin.lower() == public_origin
    host = header(scope, b"host")
    try:
        return host is not None and urlsplit(origin).netloc.lower() == host.decode("latin-1").lower()
    except ValueError:
        return False


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()
