from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.http.web.conftest import assemble
from tests.support.asgi_client import AsgiClient
from tests.support.clock import ManualClock

from crossdock.http.asgi import App, Message, Receive, Scope, Send, lane, send_json
from crossdock.kit import metrics
from crossdock.kit.errors import Unavailable
from crossdock.web.assembly import build
from crossdock.web.health import readyz
from crossdock.web.lanes import Lane, LaneTable


async def test_a_lane_is_found_by_its_exact_path_or_its_prefix(client: AsgiClient) -> None:
    exact = await client.post("/v1/toys/echo", body=b"abc")
    assert (exact.status, exact.json()) == (200, {"path": "/v1/toys/echo", "length": 3})
    for path in ("/in/", "/in/a", "/in/a/b%2Fc"):
        assert (await client.post(path)).status == 200


async def nothing(scope: Scope, receive: Receive, send: Send) -> None:
    await send_json(send, 200, b"{}")


@pytest.mark.parametrize("paths", [["/a", "/a"], ["/in/", "/in/"], ["/in/deeper/"]])
def test_lanes_that_can_not_be_told_apart_are_a_mistake(paths: list[str]) -> None:
    with pytest.raises(ValueError, match="lane"):
        LaneTable([Lane(path, nothing, "x") for path in paths])


@pytest.mark.parametrize(
    ("path", "found"),
    [("/in/", "/in/"), ("/in/x", "/in/"), ("/in", None), ("/a", "/a"), ("/a/", None), ("", None)],
)
def test_a_path_is_looked_up_whole_or_by_its_first_part(path: str, found: str | None) -> None:
    lane_found = LaneTable([Lane("/in/", nothing, "x"), Lane("/a", nothing, "x")]).find(path)
    assert (None if lane_found is None else lane_found.path) == found


# --- health ------------------------------------------------------------------------------------------


async def well() -> None:
    return None


async def away() -> None:
    raise Unavailable("postgres_unavailable", "Start PostgreSQL.")


async def broken() -> None:
    raise RuntimeError("hunter2")


async def hanging() -> None:
    await asyncio.sleep(3600)


async def test_the_process_is_healthy_whatever_its_engines_do() -> None:
    answer = await AsgiClient(assemble({"postgresql": away})).get("/healthz")
    assert (answer.status, answer.json()) == (200, {"status": "ok"})


async def test_a_process_whose_checks_pass_is_ready() -> None:
    answer = await AsgiClient(assemble({"postgresql": well})).get("/readyz")
    assert (answer.status, answer.json()) == (200, {"status": "ready"})


async def test_what_is_not_ready_is_listed_with_what_to_do() -> None:
    checks = {"postgresql": away, "redis": well, "items": broken, "migrations": hanging}
    answer = await AsgiClient(lane(readyz(checks, timeout_seconds=0.05))).get("/readyz")
    assert (answer.status, answer.code, answer.header("retry-after")) == (503, "not_ready", "1")
    assert answer.fields == [
        ("postgresql", "postgres_unavailable"),
        ("items", "failed"),
        ("migrations", "timeout"),
    ]
    assert b"Start PostgreSQL." in answer.body
    assert b"hunter2" not in answer.body


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"])
async def test_the_platforms_own_pages_need_no_key_and_are_only_read(path: str) -> None:
    client = AsgiClient(assemble())
    assert (await client.get(path)).status == 200
    assert (await client.post(path)).code == "method_not_allowed"


# --- metrics -----------------------------------------------------------------------------------------


def requests_counted(slice_name: str, status: str) -> int:
    found = re.search(
        rf'crossdock_http_request_seconds_count{{slice="{slice_name}",status="{status}"}} (\S+)',
        metrics.render().decode(),
    )
    return 0 if found is None else int(float(found[1]))


@pytest.mark.parametrize(
    ("method", "path", "slice_name", "status"),
    [
        ("POST", "/v1/toys/echo", "toys", "2xx"),
        ("GET", "/v1/toys/taken", "toys", "4xx"),
        ("GET", "/v1/toys/things", "toys", "2xx"),
        ("GET", "/v1/unknown/x", "platform", "4xx"),
        ("GET", "/healthz", "platform", "2xx"),
        ("GET", "/", "platform", "4xx"),
        ("GET", f"/v1/toys/things/{'0' * 32}?how=break", "toys", "5xx"),
    ],
)
async def test_each_request_is_counted_once_by_slice_and_class_of_status(
    client: AsgiClient, method: str, path: str, slice_name: str, status: str
) -> None:
    before = requests_counted(slice_name, status)
    await client.request(method, path)
    assert requests_counted(slice_name, status) == before + 1


async def test_the_metrics_page_is_what_prometheus_reads(client: AsgiClient) -> None:
    await client.get("/healthz")
    page = await client.get("/metrics")
    assert page.header("content-type") == metrics.CONTENT_TYPE
    assert b"# TYPE crossdock_http_request_seconds histogram" in page.body


async def test_a_request_that_takes_two_seconds_is_measured_as_such() -> None:
    clock = ManualClock()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        clock.advance(seconds=2)
        await send_json(send, 200, b"{}")

    app = build([], [Lane("/slow", lane(slow), "slow")], checks={}, slices=["slow"], version="0", clock=clock)
    await AsgiClient(app).get("/slow")
    assert 'crossdock_http_request_seconds_sum{slice="slow",status="2xx"} 2.0' in metrics.render().decode()


# --- lifespan ----------------------------------------------------------------------------------------


class Life:
    """A server's side of the lifespan protocol."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._incoming: asyncio.Queue[Message] = asyncio.Queue()
        self._sent: asyncio.Queue[Message] = asyncio.Queue()

    async def start(self) -> Message:
        self.task = asyncio.create_task(self._live())
        return await self.tell("lifespan.startup")

    async def _live(self) -> None:
        scope: Scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}
        await self._app(scope, self._incoming.get, self._sent.put)

    async def tell(self, kind: str) -> Message:
        await self._incoming.put({"type": kind})
        return await self._sent.get()


def living(events: list[str], fails_at: str = "") -> App:
    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        events.append("started")
        if fails_at == "startup":
            raise RuntimeError("no database")
        yield
        events.append("stopped")
        if fails_at == "shutdown":
            raise RuntimeError("no flush")

    return build([], [], checks={}, slices=[], version="0", clock=ManualClock(), lifespan=lifespan)


async def test_startup_and_shutdown_are_awaited() -> None:
    events: list[str] = []
    life = Life(living(events))
    assert (await life.start())["type"] == "lifespan.startup.complete"
    assert events == ["started"]
    assert (await life.tell("lifespan.shutdown"))["type"] == "lifespan.shutdown.complete"
    await life.task
    assert events == ["started", "stopped"]


async def test_a_startup_that_fails_is_told_to_the_server() -> None:
    life = Life(living([], "startup"))
    assert await life.start() == {"type": "lifespan.startup.failed", "message": "no database"}
    with pytest.raises(RuntimeError, match="no database"):
        await life.task


async def test_a_shutdown_that_fails_is_told_to_the_server() -> None:
    life = Life(living([], "shutdown"))
    await life.start()
    assert await life.tell("lifespan.shutdown") == {"type": "lifespan.shutdown.failed", "message": "no flush"}
    with pytest.raises(RuntimeError, match="no flush"):
        await life.task
