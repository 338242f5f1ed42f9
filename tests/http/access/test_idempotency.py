"""Idempotency-Key as a client sees it, with effects in PostgreSQL."""

from __future__ import annotations

import asyncio
from http.cookies import SimpleCookie

import pytest
from tests.http.access.conftest import OPERATOR_KEY, Served
from tests.support.asgi_client import Answer, AsgiClient

KEYS = "/v1/sync/keys"
WORKSPACES = "/v1/sync/workspaces"
ONE = {"idempotency-key": "one"}
MINUTE = 60


async def make(client: AsgiClient, key: str = "one", name: str = "acme") -> Answer:
    return await client.post(WORKSPACES, {"name": name}, headers={"idempotency-key": key})


async def count(served: Served, table: str = "workspaces") -> int:
    return int(await served.pool.fetchval(f"SELECT count(*) FROM {table}"))


async def test_a_repeat_gets_the_same_answer_and_makes_nothing(served: Served) -> None:
    first = await make(served.client)
    again = await make(served.client)
    assert (first.status, first.header("idempotency-replayed")) == (201, None)
    assert (again.status, again.header("idempotency-replayed")) == (201, "true")
    assert again.body == first.body
    assert await count(served) == 1


async def test_without_a_key_a_repeat_is_another_request(served: Served) -> None:
    first = await served.client.post(WORKSPACES, {"name": "acme"})
    again = await served.client.post(WORKSPACES, {"name": "acme"})
    assert first.json()["id"] != again.json()["id"]


async def test_a_repeat_is_known_on_every_node_and_with_the_cookie_of_the_same_key(served: Served) -> None:
    first = await make(served.client)
    elsewhere = served.another_node().client
    assert (await make(elsewhere)).body == first.body
    login = await elsewhere.with_key(None).post("/v1/sessions", {"api_key": OPERATOR_KEY})
    cookie = next(iter(SimpleCookie(login.all("set-cookie")[0]).values())).value
    browser = {"cookie": f"crossdock_session={cookie}", "sec-fetch-site": "same-origin"}
    again = await elsewhere.with_key(None).post(WORKSPACES, {"name": "acme"}, headers=browser | ONE)
    assert again.body == first.body


async def test_the_same_key_with_another_body_or_query_is_409(served: Served) -> None:
    await make(served.client)
    other_body = await make(served.client, name="other")
    assert (other_body.status, other_body.code) == (409, "idempotency_conflict")
    other_query = await served.client.post(f"{WORKSPACES}?x=1", {"name": "acme"}, headers=ONE)
    assert (other_query.status, other_query.code) == (409, "idempotency_conflict")
    assert await count(served) == 1


async def test_a_key_means_something_else_on_another_path_and_for_another_principal(served: Served) -> None:
    await make(served.client)
    _, second_operator = await served.key(label="second")
    assert (await make(served.client.with_key(second_operator))).header("idempotency-replayed") is None
    key = await served.client.post(KEYS, {"label": "x"}, headers=ONE)
    assert (key.status, key.header("idempotency-replayed")) == (201, None)
    assert await count(served) == 2


async def test_a_refused_request_may_be_mended_under_its_key(served: Served) -> None:
    assert (await make(served.client, name="")).status == 422
    assert (await make(served.client, name="acme")).status == 201


async def test_a_repeat_is_forgotten_after_24_hours(served: Served) -> None:
    first = await make(served.client)
    served.clock.advance(seconds=24 * 60 * MINUTE - 1)
    assert (await make(served.client)).json()["id"] == first.json()["id"]
    served.clock.advance(seconds=1)
    again = await make(served.client)
    assert again.json()["id"] != first.json()["id"]
    assert (await make(served.client)).json()["id"] == again.json()["id"]


async def test_a_secret_is_repeated_for_ten_minutes_and_then_masked(served: Served) -> None:
    first = await served.client.post(KEYS, {"label": "x"}, headers=ONE)
    served.clock.advance(seconds=10 * MINUTE - 1)
    again = await served.client.post(KEYS, {"label": "x"}, headers=ONE)
    assert again.json() == first.json()
    served.clock.advance(seconds=1)
    late = await served.client.post(KEYS, {"label": "x"}, headers=ONE)
    assert late.status == 201
    assert late.json() == first.json() | {"key": "***"}
    assert await count(served, "api_keys") == 2


async def test_a_repeated_login_sets_the_same_cookie_for_ten_minutes_and_then_none(served: Served) -> None:
    async def login() -> Answer:
        return await served.client.with_key(None).post("/v1/sessions", {"api_key": OPERATOR_KEY}, headers=ONE)

    first = await login()
    assert (await login()).all("set-cookie") == first.all("set-cookie") != []
    served.clock.advance(seconds=10 * MINUTE)
    late = await login()
    assert (late.status, late.body, late.all("set-cookie")) == (201, first.body, [])
    assert await count(served, "sessions") == 1


async def test_the_stored_answer_can_not_be_read_in_the_database(served: Served) -> None:
    made = await served.client.post(KEYS, {"label": "very-visible"}, headers={"idempotency-key": "my-own"})
    (row,) = await served.pool.fetch("SELECT * FROM platform.idempotency_records")
    for text in (made.json()["key"], "very-visible", "my-own"):
        assert text not in str(dict(row))


async def test_an_answer_that_can_not_be_unsealed_is_409_and_not_done_again(served: Served) -> None:
    await make(served.client)
    await served.pool.execute(
        "UPDATE platform.idempotency_records SET response = replace(response, 'v1.', 'v1.0')"
    )
    answer = await make(served.client)
    assert (answer.status, answer.code) == (409, "idempotency_answer_lost")
    assert await count(served) == 1


async def test_many_identical_requests_at_once_make_one_thing(served: Served) -> None:
    nodes = [served.node, served.another_node(), served.another_node()]
    for round_number in range(10):
        answers = await asyncio.gather(*(make(nodes[n % 3].client, f"k{round_number}") for n in range(8)))
        made = {answer.body for answer in answers if answer.status == 201}
        busy = [answer for answer in answers if answer.status == 409]
        assert len(made) == 1
        assert {answer.code for answer in busy} <= {"idempotency_in_progress"}
        assert all(answer.header("retry-after") == "1" for answer in busy)
        assert len(busy) + sum(answer.status == 201 for answer in answers) == 8
    assert await count(served) == 10


@pytest.mark.parametrize("values", [[""], ["x" * 256], ["\xfc"], ["a\tb"], ["one", "two"]], ids=repr)
async def test_a_key_out_of_bounds_is_422(shared: Served, values: list[str]) -> None:
    headers = [("idempotency-key", value) for value in values]
    answer = await shared.client.post(WORKSPACES, {"name": "x"}, headers=headers)
    assert (answer.status, answer.code) == (422, "invalid_idempotency_key")
    assert answer.fields == [("Idempotency-Key", "wrong_format")]


async def test_a_key_of_255_printable_characters_is_good(shared: Served) -> None:
    key = ("".join(map(chr, range(0x20, 0x7F))) * 3)[:255]
    assert (await make(shared.client, key)).status == 201
    assert (await make(shared.client, key)).header("idempotency-replayed") == "true"
