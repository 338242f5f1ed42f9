"""What the client calls and what it refuses, against real servers on loopback addresses.

127.0.0.1 plays a public address (the policy allows just it), 127.0.0.2 an internal one.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_network

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult

from crossdock.http.client import CallFailed, GuardedClient, vetted_socket_factory
from crossdock.kit.egress import EgressPolicy, EgressRefused, Kind
from crossdock.kit.errors import InvalidInput

GOOD, INTERNAL = "127.0.0.1", "127.0.0.2"
ONLY_GOOD = EgressPolicy(allow=(ip_network(GOOD),))


class ScriptedResolver(AbstractResolver):
    """A DNS server in a few lines: the answers it was given, one after the other; the last one stays."""

    def __init__(self, *answers: list[str]) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        self.asked.append(host)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if not answer:
            raise OSError(None, "no such name")
        return [
            {
                "hostname": host,
                "host": address,
                "port": port,
                "family": socket.AF_INET6 if ":" in address else socket.AF_INET,
                "proto": 0,
                "flags": socket.AI_NUMERICHOST,
            }
            for address in answer
        ]

    async def close(self) -> None:
        pass


class Server:
    """Two addresses with the same port, so that a connection's address shows in `reached`."""

    def __init__(self) -> None:
        self.reached: list[tuple[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.port = 0

    async def handle(self, request: web.Request) -> web.Response:
        assert request.transport is not None
        self.reached.append((request.transport.get_extra_info("sockname")[0], request.path))
        self.headers.append(dict(request.headers))
        if request.path == "/redirect":
            raise web.HTTPFound(request.query["to"])
        if request.path == "/cookie":
            return web.Response(headers={"Set-Cookie": "session=1; Path=/"})
        return web.Response(text=f"{request.method} {(await request.read()).decode()}")


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    served = Server()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", served.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    good = web.TCPSite(runner, GOOD, 0)
    await good.start()
    served.port = runner.addresses[0][1]
    await web.TCPSite(runner, INTERNAL, served.port).start()
    yield served
    await runner.cleanup()


@asynccontextmanager
async def client_for(
    *answers: list[str], policy: EgressPolicy = ONLY_GOOD
) -> AsyncIterator[tuple[GuardedClient, ScriptedResolver]]:
    resolver = ScriptedResolver(*answers)
    client = GuardedClient(policy, resolver=resolver)
    try:
        yield client, resolver
    finally:
        await client.close()


async def test_an_allowed_name_is_called(server: Server) -> None:
    async with client_for([GOOD]) as (client, _):
        answer = await client.send("POST", f"http://shop.example:{server.port}/x", body=b"hello")
    assert (answer.status, answer.body, answer.complete) == (200, b"POST hello", True)
    assert server.headers[0]["Host"] == f"shop.example:{server.port}"


async def test_a_name_of_an_internal_address_is_refused_naming_both_and_the_setting(server: Server) -> None:
    async with client_for([INTERNAL]) as (client, _):
        with pytest.raises(EgressRefused) as caught:
            await client.send("GET", f"http://shop.example:{server.port}/")
    for part in ("shop.example", INTERNAL, "127.0.0.2/32", "CROSSDOCK_EGRESS_ALLOW"):
        assert part in caught.value.message
    assert caught.value.code == "egress_refused"
    assert server.reached == []


async def test_of_a_mixed_answer_only_the_good_addresses_are_connected_to(server: Server) -> None:
    mixed = [INTERNAL, "10.0.0.1", "169.254.169.254", "::ffff:127.0.0.2", GOOD]
    async with client_for(mixed) as (client, _):
        for _ in range(3):
            await client.send("GET", f"http://shop.example:{server.port}/")
    assert {address for address, _ in server.reached} == {GOOD}


async def test_an_answer_that_changes_after_the_check_is_harmless(server: Server) -> None:
    async with client_for([GOOD], [INTERNAL]) as (client, resolver):
        await client.send("GET", f"http://shop.example:{server.port}/")
        assert resolver.asked == ["shop.example"]
    assert [address for address, _ in server.reached] == [GOOD]


async def test_an_answer_that_was_good_once_is_judged_again_when_it_changes(server: Server) -> None:
    url = f"http://shop.example:{server.port}/"
    async with client_for([GOOD], [INTERNAL]) as (client, _):
        await client.vet(url)
        with pytest.raises(EgressRefused):
            await client.send("GET", url)
    assert server.reached == []


async def test_many_calls_at_once_to_a_refused_name_are_all_refused(server: Server) -> None:
    async with client_for([INTERNAL]) as (client, _):
        outcomes = await asyncio.gather(
            *(client.send("GET", f"http://shop.example:{server.port}/") for _ in range(10)),
            return_exceptions=True,
        )
    assert {type(outcome) for outcome in outcomes} == {EgressRefused}


@pytest.mark.parametrize(
    "host",
    [
        *(
            INTERNAL,
            "10.0.0.1",
            "169.254.169.254",
            "0.0.0.0",
            "[::1]",
            "[::]",
            "[::ffff:127.0.0.2]",
            "[fe80::1]",
        ),
        *("[fe80::1%25lo]", "[::ffff:7f00:2]", "[64:ff9b::7f00:2]", "[fd00:ec2::254]"),
    ],
)
async def test_a_literal_internal_address_is_refused_without_asking_dns(server: Server, host: str) -> None:
    async with client_for([GOOD]) as (client, resolver):
        with pytest.raises(EgressRefused):
            await client.send("GET", f"http://{host}:{server.port}/")
        with pytest.raises(EgressRefused):
            await client.vet(f"http://{host}/")
        assert resolver.asked == []
    assert server.reached == []


@pytest.mark.parametrize("host", ["2130706434", "127.2", "0177.0.0.2", "0x7f.0.0.2", "0x7f000002"])
async def test_odd_spellings_of_an_internal_address_are_refused(server: Server, host: str) -> None:
    client = GuardedClient(ONLY_GOOD)  # the machine's own resolver, which reads such spellings as addresses
    try:
        with pytest.raises((InvalidInput, CallFailed)):
            await client.send("GET", f"http://{host}:{server.port}/")
    finally:
        await client.close()
    assert server.reached == []


async def test_localhost_is_refused_by_the_machines_own_resolver(server: Server) -> None:
    client = GuardedClient(EgressPolicy())
    try:
        for host in ("localhost", "localhost."):
            with pytest.raises((EgressRefused, CallFailed)):
                await client.send("GET", f"http://{host}:{server.port}/")
    finally:
        await client.close()
    assert server.reached == []


async def test_a_redirect_is_an_answer_unless_asked_for(server: Server) -> None:
    async with client_for([GOOD]) as (client, _):
        answer = await client.send("GET", f"http://shop.example:{server.port}/redirect?to=/end")
    assert (answer.status, answer.headers["Location"]) == (302, "/end")


async def test_a_redirect_is_followed_as_often_as_asked(server: Server) -> None:
    url = f"http://shop.example:{server.port}/redirect?to=/redirect?to=/end"
    async with client_for([GOOD]) as (client, _):
        assert (await client.send("GET", url, redirects_max=2)).status == 200
        with pytest.raises(CallFailed) as caught:
            await client.send("GET", url, redirects_max=1)
    assert caught.value.code == "too_many_redirects"


@pytest.mark.parametrize(
    "target", [f"http://{INTERNAL}:PORT/", "http://[::1]:PORT/", "http://169.254.169.254/"]
)
async def test_a_redirect_to_an_internal_address_is_refused(server: Server, target: str) -> None:
    to = target.replace("PORT", str(server.port))
    async with client_for([GOOD]) as (client, _):
        with pytest.raises(EgressRefused):
            await client.send("GET", f"http://shop.example:{server.port}/redirect?to={to}", redirects_max=5)
    assert server.reached == [(GOOD, "/redirect")]


async def test_a_redirect_to_a_name_of_an_internal_address_is_refused(server: Server) -> None:
    url = f"http://shop.example:{server.port}/redirect?to=http://evil.example:{server.port}/"
    async with client_for([GOOD], [INTERNAL]) as (client, resolver):
        with pytest.raises(EgressRefused):
            await client.send("GET", url, redirects_max=5)
        assert resolver.asked == ["shop.example", "evil.example"]
    assert server.reached == [(GOOD, "/redirect")]


@pytest.mark.parametrize("to", ["file:///etc/passwd", "ftp://shop.example/", "http://u:p@shop.example/"])
async def test_a_redirect_to_what_is_no_plain_http_url_ends_the_call(server: Server, to: str) -> None:
    async with client_for([GOOD]) as (client, _):
        with pytest.raises(CallFailed) as caught:
            await client.send("GET", f"http://shop.example:{server.port}/redirect?to={to}", redirects_max=5)
    assert caught.value.code == "invalid_redirect"


async def test_a_redirect_to_another_origin_does_not_carry_the_callers_key(server: Server) -> None:
    to = f"http://other.example:{server.port}/"
    async with client_for([GOOD]) as (client, _):
        await client.send(
            "GET",
            f"http://shop.example:{server.port}/redirect?to={to}",
            headers={"X-Api-Key": "k"},
            redirects_max=1,
        )
    assert [headers.get("X-Api-Key") for headers in server.headers] == ["k", None]


async def test_a_private_upstream_may_be_called_where_the_policy_says_so_and_metadata_never(
    server: Server,
) -> None:
    policy = EgressPolicy(allow=(ip_network("0.0.0.0/0"),), may_be_private=True)
    async with client_for([INTERNAL], ["169.254.169.254"], policy=policy) as (client, _):
        assert (await client.send("GET", f"http://upstream.example:{server.port}/")).status == 200
        with pytest.raises(EgressRefused) as caught:
            await client.send("GET", "http://metadata.example/")
    assert caught.value.verdict.kind is Kind.METADATA
    assert "No setting allows it" in caught.value.message


async def test_cookies_are_not_kept(server: Server) -> None:
    async with client_for([GOOD]) as (client, _):
        for path in ("cookie", "next"):
            await client.send("GET", f"http://shop.example:{server.port}/{path}")
    assert "Cookie" not in server.headers[1]


async def test_vetting_a_url_tells_what_a_call_would_meet() -> None:
    async with client_for([GOOD], [INTERNAL], []) as (client, _):
        await client.vet("https://shop.example/")
        with pytest.raises(EgressRefused):
            await client.vet("https://shop.example/")
        with pytest.raises(CallFailed) as caught:
            await client.vet("https://shop.example/")
        with pytest.raises(InvalidInput):
            await client.vet("ftp://shop.example/")
    assert caught.value.code == "dns_failed"


@pytest.mark.parametrize("host", [INTERNAL, "10.0.0.1", "::1", "169.254.169.254"])
def test_no_socket_is_opened_for_a_refused_address_whichever_way_it_came(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with pytest.raises(EgressRefused):
        vetted_socket_factory(ONLY_GOOD)((family, socket.SOCK_STREAM, 0, "", (host, 80)))


@pytest.mark.parametrize("host", ["localhost", "127.2", "2130706433"])
def test_no_socket_is_opened_for_what_the_system_would_still_have_to_resolve(host: str) -> None:
    with pytest.raises(OSError, match="not an address"):
        vetted_socket_factory(ONLY_GOOD)((socket.AF_INET, socket.SOCK_STREAM, 0, "", (host, 80)))
