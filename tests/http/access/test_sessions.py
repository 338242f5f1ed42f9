from __future__ import annotations

from http.cookies import SimpleCookie
from uuid import UUID

import pytest
from tests.http.access.conftest import OPERATOR_KEY, Served
from tests.support.asgi_client import Answer, AsgiClient

from crossdock.access.work import clean

SESSIONS = "/v1/sessions"
CURRENT = "/v1/sessions/current"
KEYS = "/v1/sync/keys"
OURS = {"sec-fetch-site": "same-origin"}


async def login(client: AsgiClient, key: str = OPERATOR_KEY) -> tuple[Answer, dict[str, str]]:
    """The answer, and the header that a browser would send from then on."""
    answer = await client.with_key(None).post(SESSIONS, {"api_key": key})
    return answer, {"cookie": f"theme=dark; crossdock_session={cookie_of(answer)['value']}"}


def cookie_of(answer: Answer) -> dict[str, str]:
    (raw,) = answer.all("set-cookie")
    ((name, morsel),) = SimpleCookie(raw).items()
    assert name == "crossdock_session"
    return {"value": morsel.value, **{key: str(value) for key, value in morsel.items()}}


async def test_a_key_is_exchanged_for_a_cookie_that_scripts_and_other_sites_can_not_use(
    served: Served,
) -> None:
    answer, _ = await login(served.client)
    cookie = cookie_of(answer)
    assert answer.status == 201
    assert UUID(cookie["value"]).version == 4
    assert (cookie["httponly"], cookie["samesite"].lower(), cookie["path"]) == ("True", "strict", "/")
    assert (cookie["max-age"], cookie["secure"]) == (str(24 * 60 * 60), "")
    assert cookie["value"].encode() not in answer.body
    session = answer.json()
    assert (session["label"], session["workspace_id"]) == ("operator", None)
    assert session["expires_at"] == "2025-01-02T12:00:00Z"


@pytest.mark.parametrize(("public_url", "secure"), [("https://x.example", "True"), ("http://x.example", "")])
async def test_the_cookie_is_secure_where_the_outside_uses_https(
    shared: Served, public_url: str, secure: str
) -> None:
    answer, _ = await login(shared.another_node(public_url).client)
    assert cookie_of(answer)["secure"] == secure


async def test_a_session_may_do_what_its_key_may(shared: Served) -> None:
    _, operator = await login(shared.client)
    workspace_id = await shared.workspace()
    _, raw = await shared.key(workspace_id)
    _, tenant = await login(shared.client, raw)
    nobody = shared.client.with_key(None)
    assert (await nobody.get("/v1/sync/settings", headers=operator)).status == 200
    assert (await nobody.get("/v1/sync/settings", headers=tenant)).status == 403
    seen = (await nobody.get("/v1/sync/workspaces", headers=tenant)).json()["data"]
    assert [each["id"] for each in seen] == [workspace_id]


async def test_the_current_session_is_shown_without_its_id(shared: Served) -> None:
    answer, cookie = await login(shared.client)
    current = await shared.client.with_key(None).get(CURRENT, headers=cookie)
    assert (current.status, current.json()) == (200, answer.json())


async def test_a_request_made_with_a_key_has_no_current_session(shared: Served) -> None:
    assert (await shared.client.get(CURRENT)).code == "session_not_found"
    assert (await shared.client.request("DELETE", CURRENT)).code == "session_not_found"


async def test_an_expired_session_is_not_shown_to_a_request_made_with_a_key(served: Served) -> None:
    _, cookie = await login(served.client)
    assert (await served.client.get(CURRENT, headers=cookie)).status == 200
    served.clock.advance(seconds=24 * 60 * 60)
    assert (await served.client.get(CURRENT, headers=cookie)).code == "session_not_found"


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_without_any_credential_there_is_nothing_to_show(shared: Served, method: str) -> None:
    answer = await shared.client.with_key(None).request(method, CURRENT)
    assert (answer.status, answer.code) == (401, "credential_required")


async def test_an_ended_session_is_refused_and_its_cookie_taken_back(served: Served) -> None:
    _, cookie = await login(served.client)
    nobody = served.client.with_key(None)
    assert (await nobody.get(KEYS, headers=cookie)).status == 200
    ended = await nobody.request("DELETE", CURRENT, headers=cookie | OURS)
    assert ended.status == 204
    assert (cookie_of(ended)["value"], cookie_of(ended)["max-age"]) == ("", "0")
    assert (await nobody.get(KEYS, headers=cookie)).status == 401


async def test_a_session_ends_when_its_time_is_over_even_if_it_was_just_used(served: Served) -> None:
    _, cookie = await login(served.client)
    nobody = served.client.with_key(None)
    served.clock.advance(seconds=24 * 60 * 60 - 1)
    assert (await nobody.get(KEYS, headers=cookie)).status == 200
    served.clock.advance(seconds=1)
    assert (await nobody.get(KEYS, headers=cookie)).code == "invalid_credential"


async def test_a_session_ends_with_its_key(served: Served) -> None:
    key_id, raw = await served.key()
    _, cookie = await login(served.client, raw)
    elsewhere = served.another_node().client.with_key(None)
    nobody = served.client.with_key(None)
    assert (await elsewhere.get(KEYS, headers=cookie)).status == 200
    assert (await nobody.get(KEYS, headers=cookie)).status == 200
    await served.client.post(f"{KEYS}/{key_id}/revoke")
    assert (await nobody.get(KEYS, headers=cookie)).status == 401
    served.clock.advance(seconds=5)
    assert (await elsewhere.get(KEYS, headers=cookie)).status == 401


async def test_cleaning_deletes_what_expired_and_nothing_else(served: Served) -> None:
    headers = {"idempotency-key": "old"}
    await served.client.post("/v1/sync/workspaces", {"name": "x"}, headers=headers)
    await login(served.client)
    served.clock.advance(seconds=24 * 60 * 60)
    await login(served.client)
    await served.client.post("/v1/sync/workspaces", {"name": "y"}, headers={"idempotency-key": "new"})
    await clean(served.node.sessions, served.node.idempotency)
    assert await served.pool.fetchval("SELECT count(*) FROM sessions") == 1
    assert await served.pool.fetchval("SELECT count(*) FROM platform.idempotency_records") == 1
    assert await served.pool.fetchval("SELECT count(*) FROM workspaces") == 2


@pytest.mark.parametrize("key", ["x", OPERATOR_KEY[:-1], "dk_" + "z" * 43, "fh_" + "z" * 43])
async def test_a_wrong_key_starts_no_session(shared: Served, key: str) -> None:
    answer = await shared.client.with_key(None).post(SESSIONS, {"api_key": key})
    assert (answer.status, answer.code) == (401, "invalid_credential")
    assert answer.all("set-cookie") == []


@pytest.mark.parametrize(
    ("body", "field", "code"),
    [
        ({}, "api_key", "required"),
        ({"api_key": ""}, "api_key", "wrong_length"),
        ({"api_key": None}, "api_key", "wrong_type"),
        ({"key": "x"}, "key", "unknown_field"),
    ],
)
async def test_a_wrong_field_is_named(shared: Served, body: object, field: str, code: str) -> None:
    answer = await shared.client.with_key(None).post(SESSIONS, body)
    assert (answer.status, answer.fields) == (422, [(field, code)])


# --- requests forged by other sites ------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
        {"sec-fetch-site": "cross-site", "origin": "http://test"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://test.evil.example"},
    ],
)
async def test_a_change_by_cookie_from_another_site_is_refused(
    shared: Served, headers: dict[str, str]
) -> None:
    _, cookie = await login(shared.client)
    answer = await shared.client.with_key(None).post(KEYS, {"label": "x"}, headers=cookie | headers)
    assert (answer.status, answer.code) == (403, "cross_origin")


@pytest.mark.parametrize("headers", [OURS, {"origin": "http://test"}])
async def test_a_change_by_cookie_from_our_own_pages_is_done(shared: Served, headers: dict[str, str]) -> None:
    _, cookie = await login(shared.client)
    answer = await shared.client.with_key(None).post(KEYS, {"label": "x"}, headers=cookie | headers)
    assert answer.status == 201


async def test_behind_a_proxy_our_own_pages_are_those_of_the_public_url(shared: Served) -> None:
    client = shared.another_node("https://x.example/").client.with_key(None)
    _, cookie = await login(client)
    for origin, status in (("https://x.example", 201), ("http://test", 403), ("http://x.example", 403)):
        answer = await client.post(KEYS, {"label": "x"}, headers=cookie | {"origin": origin})
        assert answer.status == status
