"""An assembly of a small slice that misbehaves in every way, with no engine behind it."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import msgspec
import pytest
from litestar import Controller, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery, JSONBody
from msgspec import Meta
from tests.support.asgi_client import AsgiClient
from tests.support.clock import ManualClock

from crossdock.http.asgi import App, Receive, Scope, Send, lane, read_body, send_json
from crossdock.http.bodies import RequestBody
from crossdock.http.guards import Authenticator
from crossdock.http.management import guarded_router
from crossdock.http.pages import Page, PageRequest
from crossdock.http.principals import ALL_PERMISSIONS, Principal
from crossdock.kit.errors import Conflict, Unavailable
from crossdock.web.assembly import build
from crossdock.web.health import ReadinessCheck
from crossdock.web.lanes import Lane

KEY = "dk_good"


class Thing(msgspec.Struct):
    name: str
    size: int | None = None


class NewThing(RequestBody):
    name: Annotated[str, Meta(min_length=1, max_length=20)]
    size: Annotated[int, Meta(ge=0, le=100)] | None = None
    sensors: dict[str, float] | None = None


class Things(Controller):
    path = "/v1/toys/things"
    tags = ("toys",)

    @post(summary="Make a thing")
    async def make(self, data: JSONBody[NewThing]) -> Thing:
        return Thing(data.name, data.size)

    @get(summary="List things")
    async def index(
        self,
        page: NamedDependency[PageRequest],
        size: FromQuery[int | None] = None,
        wide: FromQuery[bool] = False,
    ) -> Page[Thing]:
        page.after({"name": str})
        return Page([Thing("a", size)], None)

    @get("/{thing_id:uuid}", summary='Show <b>one</b> & "only" one')
    async def show(self, thing_id: FromPath[UUID], how: FromQuery[str]) -> Thing:
        if how == "break":
            raise RuntimeError("hunter2")
        if how == "conflict":
            raise Conflict("taken", "It is taken.")
        if how == "away":
            raise Unavailable("database_unavailable", "Away.", retry_after_seconds=3)
        return Thing(str(thing_id))

    @get("/named/{name:str}", summary="Show a thing by its name")
    async def named(self, name: FromPath[str]) -> Thing:
        return Thing(name)


class Anybody:
    async def resolve(self, credential: str) -> Principal | None:
        return Principal("operator", "1", None, ALL_PERMISSIONS) if credential == KEY else None


async def taken(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise Conflict("taken", "It is taken.")


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    body = await read_body(scope, receive, 1000)
    await send_json(send, 200, msgspec.json.encode({"path": scope["path"], "length": len(body)}))


def assemble(checks: dict[str, ReadinessCheck] | None = None, clock: ManualClock | None = None) -> App:
    openapi = {"/v1/toys/echo": {"post": {"tags": ["toys"], "responses": {"200": {"description": "Echoed"}}}}}
    return build(
        [guarded_router(Authenticator({"dk_": Anybody()}), [Things], {})],
        [
            Lane("/v1/toys/echo", lane(echo, "POST"), "toys", openapi, {"Echo": {"type": "object"}}),
            Lane("/v1/toys/taken", lane(taken), "toys"),
            Lane("/in/", lane(echo), "toys"),
        ],
        checks=checks or {},
        slices=["toys"],
        version="1.2.3",
        clock=clock or ManualClock(),
    )


@pytest.fixture(scope="module")
def client() -> AsgiClient:
    return AsgiClient(assemble(), KEY)
