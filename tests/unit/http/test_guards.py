from __future__ import annotations

import pytest

from crossdock.http.asgi import Scope
from crossdock.http.guards import Authenticator, check_same_origin, credential_of
from crossdock.http.principals import Credential, Principal, require, require_sight
from crossdock.kit.errors import Forbidden, NotFound, Unauthenticated, Unavailable


def scope(method: str = "GET", **headers: str) -> Scope:
    raw = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    return {"type": "http", "method": method, "headers": raw}


@pytest.mark.parametrize(
    ("headers", "credential"),
    [
        ({}, None),
        ({"authorization": "Bearer k"}, Credential("k", "authorization")),
        ({"authorization": "bearer  k "}, Credential("k", "authorization")),
        ({"authorization": "Bearer "}, None),
        ({"authorization": "Bearer"}, None),
        ({"authorization": "Basic k"}, None),
        ({"authorization": "Basic k", "x_api_key": "x"}, Credential("x", "x-api-key")),
        ({"authorization": "Bearer k", "x_api_key": "x"}, Credential("k", "authorization")),
        ({"x_api_key": " x "}, Credential("x", "x-api-key")),
        ({"x_api_key": ""}, None),
        ({"x_api_key": "\xff"}, None),
        ({"x_api_key": "x" * 513}, None),
        ({"x_api_key": "x" * 512}, Credential("x" * 512, "x-api-key")),
        ({"cookie": "a=b; crossdock_session=s; c=d"}, Credential("s", "cookie")),
        ({"cookie": "xcrossdock_session=s"}, None),
        ({"cookie": "crossdock_session="}, None),
        ({"cookie": "crossdock_session=s", "x_api_key": "x"}, Credential("x", "x-api-key")),
    ],
)
def test_a_credential_is_found_where_it_may_be(
    headers: dict[str, str], credential: Credential | None
) -> None:
    assert credential_of(scope(**headers)) == credential


@pytest.mark.parametrize(
    ("method", "headers", "public_origin", "allowed"),
    [
        ("GET", {}, None, True),
        ("HEAD", {"sec_fetch_site": "cross-site"}, None, True),
        ("POST", {}, None, False),
        ("POST", {"sec_fetch_site": "same-origin"}, None, True),
        ("POST", {"sec_fetch_site": "same-site"}, None, False),
        ("DELETE", {"sec_fetch_site": "cross-site", "origin": "http://us", "host": "us"}, None, False),
        ("PUT", {"origin": "http://us:1", "host": "us:1"}, None, True),
        ("PUT", {"origin": "http://US:1", "host": "us:1"}, None, True),
        ("PUT", {"origin": "http://us:2", "host": "us:1"}, None, False),
        ("PUT", {"origin": "http://us"}, None, False),
        ("PUT", {"origin": "null", "host": "null"}, None, False),
        ("PUT", {"origin": "http://[", "host": "us"}, None, False),
        ("PATCH", {"origin": "https://us", "host": "inner"}, "https://us", True),
        ("PATCH", {"origin": "http://us", "host": "us"}, "https://us", False),
    ],
)
def test_a_change_by_cookie_needs_to_come_from_our_pages(
    method: str, headers: dict[str, str], public_origin: str | None, allowed: bool
) -> None:
    request = scope(method, **headers)
    if allowed:
        check_same_origin(request, public_origin)
    else:
        with pytest.raises(Forbidden, match="cross_origin"):
            check_same_origin(request, public_origin)


class Known:
    """A resolver that knows one credential."""

    def __init__(self, credential: str, principal: Principal) -> None:
        self._known = {credential: principal}

    async def resolve(self, credential: str) -> Principal | None:
        return self._known.get(credential)


class Away:
    async def resolve(self, credential: str) -> Principal | None:
        raise Unavailable("database_unavailable", "")


WORKSPACE = Principal("workspace", "k1", "w1", frozenset({"sync:read"}))
DEVICE = Principal("device", "d1", None, frozenset({"devices:ingest"}))
OPERATOR = Principal("operator", "o1", None, frozenset({"*"}))


async def test_the_longest_prefix_decides_who_resolves() -> None:
    authenticator = Authenticator(
        {"": Known("abc", DEVICE), "dk_": Known("dk_1", WORKSPACE)}, Known("s", OPERATOR)
    )
    for headers, principal in (
        ({"authorization": "Bearer dk_1"}, WORKSPACE),
        ({"x_api_key": "abc"}, DEVICE),
        ({"cookie": "crossdock_session=s"}, OPERATOR),
    ):
        assert await authenticator.authenticate(scope(**headers)) == principal


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": "Bearer dk_2"},
        {"authorization": "Bearer s"},  # a session is no key
        {"x_api_key": "fh_1"},  # nobody's prefix
        {"cookie": "crossdock_session=dk_1"},  # a key is no session
    ],
)
async def test_a_credential_in_the_wrong_place_is_worth_nothing(headers: dict[str, str]) -> None:
    authenticator = Authenticator({"dk_": Known("dk_1", WORKSPACE)}, Known("s", OPERATOR))
    with pytest.raises(Unauthenticated, match="invalid_credential"):
        await authenticator.authenticate(scope(**headers))


async def test_an_engine_that_is_away_is_never_taken_for_a_wrong_key() -> None:
    with pytest.raises(Unavailable):
        await Authenticator({"dk_": Away()}).authenticate(scope(x_api_key="dk_1"))


@pytest.mark.parametrize(
    ("principal", "permission", "allowed"),
    [
        (OPERATOR, "anything", True),
        (WORKSPACE, "sync:read", True),
        (WORKSPACE, "sync:write", False),
        (DEVICE, "*", False),
    ],
)
def test_a_permission_is_held_or_403(principal: Principal, permission: str, allowed: bool) -> None:
    if allowed:
        require(principal, permission)
    else:
        with pytest.raises(Forbidden, match="permission_denied"):
            require(principal, permission)


@pytest.mark.parametrize(
    ("principal", "tenant", "seen"),
    [
        (OPERATOR, "w1", True),
        (OPERATOR, None, True),
        (WORKSPACE, "w1", True),
        (WORKSPACE, "w2", False),
        (WORKSPACE, None, False),
    ],
)
def test_a_thing_of_another_tenant_is_not_there(principal: Principal, tenant: str | None, seen: bool) -> None:
    missing = NotFound("thing_not_found", "")
    if seen:
        require_sight(principal, tenant, missing)
    else:
        with pytest.raises(NotFound, match="thing_not_found"):
            require_sight(principal, tenant, missing)
