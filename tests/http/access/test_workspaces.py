from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from tests.http.access.conftest import Served

WORKSPACES = "/v1/sync/workspaces"


async def test_a_created_workspace_can_be_read(served: Served) -> None:
    created = await served.client.post(WORKSPACES, {"name": "acme"})
    assert created.status == 201
    workspace = created.json()
    assert UUID(workspace["id"]).version == 7
    assert workspace | {"id": ""} == {
        "id": "",
        "name": "acme",
        "created_at": "2025-01-01T12:00:00Z",
        "updated_at": "2025-01-01T12:00:00Z",
        "deleted_at": None,
    }
    read = await served.client.get(f"{WORKSPACES}/{workspace['id']}")
    assert (read.status, read.json()) == (200, workspace)


async def test_a_workspace_is_renamed(served: Served) -> None:
    workspace_id = await served.workspace()
    served.clock.advance(seconds=1)
    renamed = await served.client.request("PATCH", f"{WORKSPACES}/{workspace_id}", json={"name": "new"})
    assert (renamed.status, renamed.json()["name"]) == (200, "new")
    assert renamed.json()["updated_at"] == "2025-01-01T12:00:01Z"


async def test_an_empty_change_changes_nothing(served: Served) -> None:
    workspace_id = await served.workspace()
    served.clock.advance(seconds=1)
    same = await served.client.request("PATCH", f"{WORKSPACES}/{workspace_id}", json={})
    assert (same.status, same.json()["updated_at"]) == (200, "2025-01-01T12:00:00Z")


async def test_a_deleted_workspace_is_gone_for_readers_and_stays_stored(served: Served) -> None:
    workspace_id = await served.workspace()
    path = f"{WORKSPACES}/{workspace_id}"
    assert (await served.client.request("DELETE", path)).status == 204
    assert (await served.client.get(path)).code == "workspace_not_found"
    assert (await served.client.request("PATCH", path, json={"name": "x"})).status == 404
    assert (await served.client.request("DELETE", path)).status == 404
    assert (await served.client.get(WORKSPACES)).json()["data"] == []
    assert await served.pool.fetchval("SELECT deleted_at FROM workspaces") is not None


@pytest.mark.parametrize(
    ("body", "field", "code"),
    [
        ({"name": ""}, "name", "wrong_length"),
        ({"name": "x" * 201}, "name", "wrong_length"),
        ({"name": 5}, "name", "wrong_type"),
        ({"name": None}, "name", "wrong_type"),
        ({}, "name", "required"),
        ({"name": "a", "colour": "red"}, "colour", "unknown_field"),
        ({"name": "a\0b"}, "name", "nul_character"),
    ],
)
async def test_a_wrong_field_is_named(shared: Served, body: object, field: str, code: str) -> None:
    answer = await shared.client.post(WORKSPACES, body)
    assert (answer.status, answer.code, answer.fields) == (422, "invalid_input", [(field, code)])


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
async def test_an_unknown_workspace_is_404(shared: Served, method: str) -> None:
    body = {"name": "x"} if method == "PATCH" else None
    answer = await shared.client.request(method, f"{WORKSPACES}/{uuid4()}", json=body)
    assert (answer.status, answer.code) == (404, "workspace_not_found")


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
async def test_what_is_no_uuid_names_nothing(shared: Served, method: str) -> None:
    answer = await shared.client.request(method, f"{WORKSPACES}/nonsense")
    assert (answer.status, answer.code) == (404, "not_found")


async def test_pages_list_every_workspace_once_while_others_are_made(served: Served) -> None:
    expected = []
    for number in range(7):
        served.clock.advance(ms=1)
        expected.append(await served.workspace(f"w{number}"))
    seen: list[str] = []
    target = f"{WORKSPACES}?limit=3"
    while True:
        page = (await served.client.get(target)).json()
        seen += [each["id"] for each in page["data"]]
        served.clock.advance(ms=1)
        await served.workspace("made meanwhile")
        if page["next_cursor"] is None:
            break
        target = f"{WORKSPACES}?limit=3&cursor={page['next_cursor']}"
    assert seen == expected[::-1]


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("limit=0", 422, "invalid_input"),
        ("limit=201", 422, "invalid_input"),
        ("limit=ten", 422, "invalid_input"),
        ("limit=1e3", 422, "invalid_input"),
        ("limit=" + "9" * 400, 422, "invalid_input"),
        ("cursor=nonsense", 400, "invalid_cursor"),
        ("cursor=", 400, "invalid_cursor"),
        ("cursor=WzEse31d", 400, "invalid_cursor"),
        ("cursor=WzEseyJpZCI6Im5vIn1d", 400, "invalid_cursor"),
        ("cursor=%00", 400, "malformed_query"),
    ],
)
async def test_a_bad_page_request_is_refused(shared: Served, query: str, status: int, code: str) -> None:
    answer = await shared.client.get(f"{WORKSPACES}?{query}")
    assert (answer.status, answer.code) == (status, code)


# --- a workspace's own key ---------------------------------------------------------------------------


async def test_a_workspace_sees_itself_alone(shared: Served) -> None:
    other_id = await shared.workspace("other")
    own_id, tenant = await shared.tenant()
    assert [each["id"] for each in (await tenant.get(WORKSPACES)).json()["data"]] == [own_id]
    assert (await tenant.get(f"{WORKSPACES}/{own_id}")).status == 200
    hidden, missing = (
        await tenant.get(f"{WORKSPACES}/{other_id}"),
        await tenant.get(f"{WORKSPACES}/{uuid4()}"),
    )
    assert hidden.status == 404
    assert hidden.body == missing.body


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
async def test_a_workspace_may_not_change_workspaces(shared: Served, method: str) -> None:
    own_id, tenant = await shared.tenant()
    target = WORKSPACES if method == "POST" else f"{WORKSPACES}/{own_id}"
    answer = await tenant.request(method, target, json={"name": "x"})
    assert (answer.status, answer.code) == (403, "permission_denied")


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("POST", WORKSPACES),
        ("GET", WORKSPACES),
        ("GET", f"{WORKSPACES}/{UUID(int=1)}"),
        ("PATCH", f"{WORKSPACES}/{UUID(int=1)}"),
        ("DELETE", f"{WORKSPACES}/{UUID(int=1)}"),
    ],
)
async def test_nobody_gets_in_without_a_key_and_the_body_is_not_even_read(
    shared: Served, method: str, target: str
) -> None:
    answer = await shared.client.with_key(None).request(method, target, body=b"{not json")
    assert (answer.status, answer.code) == (401, "credential_required")
    assert answer.header("www-authenticate") == 'Bearer realm="crossdock"'
