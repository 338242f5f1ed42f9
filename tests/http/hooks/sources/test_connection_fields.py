"""What may be said of a connection: wrong fields named, destinations looked at, headers kept sealed."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

import msgspec
import pytest
from aiohttp.abc import AbstractResolver, ResolveResult
from tests.support.hooks_sources import (
    CONNECTIONS,
    GOOD_URL,
    SEALER,
    SOURCES,
    Served,
    shown,
)

from crossdock.hooks.service.connections import Connections
from crossdock.hooks.service.principals import HOOKS_USER
from crossdock.hooks.store.connections import connection_of, unsealed_headers
from crossdock.http.client import GuardedClient
from crossdock.http.idempotency_items import ItemsIdempotency
from crossdock.http.principals import Principal
from crossdock.kit.egress import EgressPolicy


async def headers_of(served: Served, source_id: str, connection_id: str) -> dict[str, str]:
    connection = connection_of(await served.connection_item(source_id, connection_id))
    return dict(unsealed_headers(connection, SEALER))


# --- fields ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"name": ""}, [("name", "wrong_length")]),
        ({"name": None}, [("name", "wrong_type")]),
        ({"destination_url": None}, [("destination_url", "wrong_type")]),
        ({"destination_url": ""}, [("destination_url", "invalid_url")]),
        ({"destination_url": "ftp://api.example.org/"}, [("destination_url", "invalid_url")]),
        ({"destination_url": "https://u:p@api.example.org/"}, [("destination_url", "invalid_url")]),
        ({"destination_url": "https://api.example.org:0/"}, [("destination_url", "invalid_url")]),
        ({"destination_url": "https://a b/"}, [("destination_url", "invalid_url")]),
        ({"filters": {}}, [("filters", "wrong_type")]),
        ({"filters": [{"on": "body"}]}, [("filters[0].match", "required")]),
        (
            {"filters": [{"on": "body", "match": {"a": {"$near": 1}}}]},
            [("filters[0].match.a.$near", "unknown_operator")],
        ),
        ({"transform": [{"remove": []}]}, [("transform[0].remove", "wrong_type")]),
        ({"transform": [{"jmespath": "a["}]}, [("transform[0].jmespath", "wrong_format")]),
        ({"retry_config": {"schedule_seconds": []}}, [("retry_config.schedule_seconds", "wrong_length")]),
        (
            {"retry_config": {"schedule_seconds": [0] * 9}},
            [("retry_config.schedule_seconds", "wrong_length")],
        ),
        ({"headers": {"Host": "x"}}, [("headers.Host", "reserved")]),
        ({"headers": {"webhook-id": "x"}}, [("headers.webhook-id", "reserved")]),
        ({"headers": {"X-A": 1}}, [("headers.X-A", "wrong_type")]),
        ({"headers": {"X-A": "a\nb"}}, [("headers.X-A", "wrong_format")]),
        ({"headers": {"X-A": "***"}}, [("headers.X-A", "masked")]),
        ({"rate_limit": {"requests": 0, "per_seconds": 1}}, [("rate_limit.requests", "out_of_range")]),
        ({"rate_limit": {"requests": 1}}, [("rate_limit.per_seconds", "required")]),
        ({"max_in_flight": 0}, [("max_in_flight", "out_of_range")]),
        ({"max_in_flight": 1001}, [("max_in_flight", "out_of_range")]),
        ({"timeout_seconds": 0}, [("timeout_seconds", "out_of_range")]),
        ({"timeout_seconds": 61}, [("timeout_seconds", "out_of_range")]),
        ({"ordered": 1}, [("ordered", "wrong_type")]),
        ({"signing_secret": "whsec_x"}, [("signing_secret", "unknown_field")]),
        (
            {
                "destination_url": "x",
                "filters": [{"on": "fax", "match": 1}],
                "transform": [{}],
                "retry_config": {"strategy": "random", "base_seconds": 1},
                "headers": {"Host": "x", "X-A": "***"},
                "rate_limit": {},
            },
            [
                ("destination_url", "invalid_url"),
                ("filters[0].on", "not_a_choice"),
                ("transform[0]", "required"),
                ("retry_config.strategy", "not_a_choice"),
                ("headers.Host", "reserved"),
                ("rate_limit.requests", "required"),
                ("headers.X-A", "masked"),
            ],
        ),
    ],
)
async def test_wrong_fields_are_422_and_named(
    shared: Served, changed: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    client, source_id, connection_id = await shared.any_connection()
    body = {"name": "x", "destination_url": GOOD_URL} | changed
    before = await shared.connection_item(source_id, connection_id)
    for answer in (
        await client.post(f"{SOURCES}/{source_id}/connections", body),
        await client.request("PATCH", f"{CONNECTIONS}/{connection_id}", json=changed),
    ):
        assert (answer.status, answer.code, answer.fields) == (422, "invalid_input", expected)
    assert await shared.connection_item(source_id, connection_id) == before
    assert len(shown(await client.get(f"{SOURCES}/{source_id}/connections"))["data"]) == 1


@pytest.mark.parametrize("missing", ["name", "destination_url"])
async def test_a_connection_has_a_name_and_a_destination(shared: Served, missing: str) -> None:
    client, source_id = await shared.any_source()
    body = {"name": "x", "destination_url": GOOD_URL}
    del body[missing]
    answer = await client.post(f"{SOURCES}/{source_id}/connections", body)
    assert (answer.status, answer.fields) == (422, [(missing, "required")])


async def test_the_largest_configuration_there_may_be_is_stored(shared: Served) -> None:
    client, source_id = await shared.any_source()
    long = "x" * 60_000
    fields = {
        "filters": [{"on": "body", "match": {"a": long}}],
        "transform": [{"set": {"a": long}}],
        "headers": {f"X-{number}": "v" * 150 for number in range(50)},
    }
    made = await shared.connection(client, source_id, **fields)
    assert (made["filters"], made["transform"]) == (fields["filters"], fields["transform"])


# --- destinations ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://10.0.0.1:8080/hook",
        "https://169.254.169.254/latest/meta-data",
        "http://[::1]/",
        "http://[::ffff:10.0.0.1]/",
        "https://inside.example.org/",
    ],
)
async def test_an_address_that_is_never_called_is_refused_at_once_and_clearly(
    shared: Served, url: str
) -> None:
    client, source_id, connection_id = await shared.any_connection()
    path = f"{CONNECTIONS}/{connection_id}"
    for answer in (
        await client.post(f"{SOURCES}/{source_id}/connections", {"name": "x", "destination_url": url}),
        await client.request("PATCH", path, json={"destination_url": url}),
    ):
        assert (answer.status, answer.code) == (422, "egress_refused")
        assert answer.fields == [("destination_url", "egress_refused")]
        [problem] = answer.json()["errors"]
        assert "which is not called" in problem["detail"]
        assert answer.json()["detail"] == problem["detail"]
    assert shown(await client.get(path))["destination_url"] == GOOD_URL


async def test_a_name_with_one_good_address_is_accepted(shared: Served) -> None:
    client, source_id = await shared.any_source()
    made = await shared.connection(client, source_id, destination_url="https://both.example.org/")
    assert made["warnings"] == []


async def test_a_name_that_is_not_known_yet_is_accepted_with_a_warning(shared: Served) -> None:
    client, source_id, connection_id = await shared.any_connection()
    url = "https://not-yet.example.org/hook"
    for answer in (
        await shared.connection(client, source_id, destination_url=url),
        shown(await client.request("PATCH", f"{CONNECTIONS}/{connection_id}", json={"destination_url": url})),
    ):
        [warning] = answer["warnings"]
        assert (warning["field"], warning["code"]) == ("destination_url", "dns_failed")
        assert "not-yet.example.org" in warning["detail"]
        assert answer["destination_url"] == url


async def test_a_repeat_under_its_idempotency_key_is_not_looked_up_again(shared: Served) -> None:
    client, source_id = await shared.any_source()
    body = {"name": "x", "destination_url": "https://not-yet.example.org/"}
    path, headers = f"{SOURCES}/{source_id}/connections", {"idempotency-key": "mine"}
    first, again = [await client.post(path, body, headers=headers) for _ in range(2)]
    assert again.json() == first.json()
    assert len(again.json()["warnings"]) == 1


class SilentNames(AbstractResolver):
    """A name server that never answers."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        await asyncio.Event().wait()
        raise AssertionError

    async def close(self) -> None:
        pass


async def test_a_name_server_that_does_not_answer_is_a_warning_after_a_while(shared: Served) -> None:
    user_id, client = await shared.user_and_client()
    source_id = (await shared.source(client))["source_id"]
    outgoing = GuardedClient(EgressPolicy(), resolver=SilentNames())
    connections = Connections(
        shared.items,
        ItemsIdempotency(shared.items, SEALER, shared.clock),
        shared.services.sources,
        outgoing,
        sealer=SEALER,
        clock=shared.clock,
        random=bytes,
        vet_seconds_max=0.01,
    )
    principal = Principal(HOOKS_USER, "key", user_id, frozenset())
    given = {"name": "x", "destination_url": GOOD_URL}
    made = await connections.create(principal, source_id, given, None)
    await outgoing.close()
    assert [warning.code for warning in made.value.warnings] == ["dns_failed"]


# --- headers ---------------------------------------------------------------------------------------


async def test_values_of_headers_are_sealed_and_shown_masked(
    shared: Served, caplog: pytest.LogCaptureFixture
) -> None:
    headers = {"Authorization": "Bearer s3cret-token", "X-Team": "blue-t3am"}
    with caplog.at_level(logging.DEBUG):
        client, source_id, connection_id = await shared.any_connection(headers=headers)
        path = f"{CONNECTIONS}/{connection_id}"
        answers = [
            await client.get(path),
            await client.request("PATCH", path, json={"headers": headers}),
            await client.get(f"{SOURCES}/{source_id}/connections"),
            await client.post(f"{path}/pause"),
        ]
    stored = msgspec.json.encode(await shared.connection_item(source_id, connection_id)).decode()
    for value in ("s3cret-token", "blue-t3am"):
        assert value not in stored + caplog.text + "".join(answer.body.decode() for answer in answers)
    assert answers[0].json()["headers"] == {"Authorization": "***", "X-Team": "***"}
    assert await headers_of(shared, source_id, connection_id) == headers


async def test_headers_are_replaced_as_a_whole_but_masked_values_stay(shared: Served) -> None:
    client, source_id, connection_id = await shared.any_connection(headers={"X-A": "one", "X-B": "two"})
    path = f"{CONNECTIONS}/{connection_id}"
    seen = shown(await client.get(path))["headers"]
    shown(await client.request("PATCH", path, json={"headers": seen | {"X-C": "three"}}))
    assert await headers_of(shared, source_id, connection_id) == {"X-A": "one", "X-B": "two", "X-C": "three"}
    changed = shown(await client.request("PATCH", path, json={"headers": {"X-B": "***"}}))
    assert changed["headers"] == {"X-B": "***"}
    assert await headers_of(shared, source_id, connection_id) == {"X-B": "two"}
    answer = await client.request("PATCH", path, json={"headers": {"X-A": "***"}})
    assert (answer.status, answer.fields) == (422, [("headers.X-A", "masked")])


async def test_a_change_of_something_else_leaves_headers_as_they_are(shared: Served) -> None:
    client, source_id, connection_id = await shared.any_connection(headers={"X-A": "one"})
    before = (await shared.connection_item(source_id, connection_id))["headers"]
    shown(await client.request("PATCH", f"{CONNECTIONS}/{connection_id}", json={"name": "new"}))
    assert (await shared.connection_item(source_id, connection_id))["headers"] == before
