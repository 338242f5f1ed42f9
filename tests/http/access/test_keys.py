from __future__ import annotations

import asyncio
import hashlib
import logging
from uuid import UUID, uuid4

import pytest
from tests.http.access.conftest import OPERATOR_KEY, Served

KEYS = "/v1/sync/keys"
WORKSPACES = "/v1/sync/workspaces"


async def test_a_key_is_shown_once_and_kept_as_its_hash(served: Served) -> None:
    created = await served.client.post(KEYS, {"label": "ci-pipeline"})
    assert created.status == 201
    key = created.json()
    assert key["key"].startswith("dk_")
    assert len(key["key"]) == len("dk_") + 43
    assert (key["key_prefix"], key["label"], key["is_active"]) == (key["key"][3:11], "ci-pipeline", True)
    row = await served.pool.fetchrow("SELECT * FROM api_keys WHERE id = $1", UUID(key["id"]))
    assert row is not None
    assert row["key_hash"] == hashlib.sha256(key["key"].encode()).hexdigest()
    assert key["key"] not in str(dict(row))
    for target in (KEYS, f"{KEYS}/{key['id']}"):
        assert key["key"].encode() not in (await served.client.get(target)).body


async def test_a_key_is_in_no_log_line(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        _, raw = await served.key()
        await served.client.with_key(raw).get(KEYS)
        await served.client.with_key(raw + "x").get(KEYS)
    assert raw not in caplog.text


async def test_an_operators_key_without_a_workspace_may_do_everything(served: Served) -> None:
    _, raw = await served.key()
    assert (await served.client.with_key(raw).post(WORKSPACES, {"name": "x"})).status == 201


async def test_a_key_works_as_bearer_and_as_x_api_key(shared: Served) -> None:
    nobody = shared.client.with_key(None)
    for headers in ({"authorization": f"bearer {OPERATOR_KEY}"}, {"x-api-key": OPERATOR_KEY}):
        assert (await nobody.get(KEYS, headers=headers)).status == 200


async def test_a_workspaces_key_makes_and_sees_keys_of_its_own_workspace(shared: Served) -> None:
    own_id, tenant = await shared.tenant()
    made = await tenant.post(KEYS, {"label": "second"})
    assert (made.status, made.json()["workspace_id"]) == (201, own_id)
    listed = (await tenant.get(KEYS)).json()["data"]
    assert {each["workspace_id"] for each in listed} == {own_id}
    assert len(listed) == 2


async def test_another_workspaces_key_is_as_good_as_missing(shared: Served) -> None:
    other_id = await shared.workspace("other")
    foreign_id, _ = await shared.key(other_id)
    operators_id, _ = await shared.key(None)
    _, tenant = await shared.tenant()
    missing = await tenant.get(f"{KEYS}/{uuid4()}")
    for key_id in (foreign_id, operators_id):
        shown = await tenant.get(f"{KEYS}/{key_id}")
        assert (shown.status, shown.body) == (404, missing.body)
        assert (await tenant.request("PATCH", f"{KEYS}/{key_id}", json={"label": "x"})).status == 404
        assert (await tenant.post(f"{KEYS}/{key_id}/revoke")).status == 404
    assert (await tenant.get(f"{KEYS}?workspace_id={other_id}")).status == 404
    assert (await tenant.post(KEYS, {"label": "x", "workspace_id": other_id})).code == "workspace_not_found"
    assert (await shared.client.get(f"{KEYS}/{foreign_id}")).json()["is_active"] is True


async def test_a_key_of_a_workspace_that_is_not_there_is_404(shared: Served) -> None:
    answer = await shared.client.post(KEYS, {"label": "x", "workspace_id": str(uuid4())})
    assert (answer.status, answer.code) == (404, "workspace_not_found")


async def test_the_operator_lists_all_keys_or_those_of_one_workspace(served: Served) -> None:
    workspace_id = await served.workspace()
    served.clock.advance(ms=1)
    bound_id, _ = await served.key(workspace_id)
    served.clock.advance(ms=1)
    free_id, _ = await served.key(None)
    everything = (await served.client.get(KEYS)).json()["data"]
    assert [each["id"] for each in everything][:2] == [free_id, bound_id]
    assert len(everything) == 3
    bound = (await served.client.get(f"{KEYS}?workspace_id={workspace_id}")).json()["data"]
    assert [each["id"] for each in bound] == [bound_id]


async def test_keys_are_listed_in_pages(served: Served) -> None:
    for number in range(3):
        served.clock.advance(ms=1)
        await served.key(label=f"k{number}")
    first = (await served.client.get(f"{KEYS}?limit=2")).json()
    second = (await served.client.get(f"{KEYS}?limit=2&cursor={first['next_cursor']}")).json()
    labels = [each["label"] for page in (first, second) for each in page["data"]]
    assert labels == ["k2", "k1", "k0", "operator"]
    assert second["next_cursor"] is None


async def test_a_key_gets_another_label(served: Served) -> None:
    key_id, _ = await served.key()
    changed = await served.client.request("PATCH", f"{KEYS}/{key_id}", json={"label": "new"})
    assert (changed.status, changed.json()["label"]) == (200, "new")
    assert (await served.client.request("PATCH", f"{KEYS}/{key_id}", json={})).json()["label"] == "new"


async def test_a_revoked_key_stops_at_once_here_and_within_5_seconds_on_every_node(served: Served) -> None:
    key_id, raw = await served.key()
    elsewhere = served.another_node().client.with_key(raw)
    assert (await elsewhere.get(KEYS)).status == 200
    assert (await served.client.with_key(raw).get(KEYS)).status == 200
    revoked = await served.client.post(f"{KEYS}/{key_id}/revoke")
    assert (revoked.status, revoked.json()["is_active"]) == (200, False)
    refused = await served.client.with_key(raw).get(KEYS)
    assert (refused.status, refused.code) == (401, "invalid_credential")
    served.clock.advance(seconds=5)
    assert (await elsewhere.get(KEYS)).status == 401


async def test_revoking_again_is_no_error_and_changes_nothing(served: Served) -> None:
    key_id, _ = await served.key()
    first = await served.client.post(f"{KEYS}/{key_id}/revoke")
    served.clock.advance(seconds=1)
    again = await served.client.post(f"{KEYS}/{key_id}/revoke")
    assert (again.status, again.json()) == (200, first.json())


async def test_the_keys_of_a_deleted_workspace_stop_working(served: Served) -> None:
    workspace_id, tenant = await served.tenant()
    assert (await tenant.get(KEYS)).status == 200
    await served.client.request("DELETE", f"{WORKSPACES}/{workspace_id}")
    assert (await tenant.get(KEYS)).status == 401
    answer = await served.client.post(KEYS, {"label": "x", "workspace_id": workspace_id})
    assert answer.code == "workspace_not_found"


async def test_a_workspace_that_is_being_deleted_gets_no_new_key(served: Served) -> None:
    workspace_id = await served.workspace()
    async with served.pool.acquire() as connection:
        deletion = connection.transaction()
        await deletion.start()
        await connection.execute("UPDATE workspaces SET deleted_at = now() WHERE id = $1", UUID(workspace_id))
        creation = asyncio.create_task(
            served.client.post(KEYS, {"label": "late", "workspace_id": workspace_id})
        )
        done, _ = await asyncio.wait([creation], timeout=0.1)
        assert not done  # it waits to see what becomes of the workspace
        await deletion.commit()
    assert (await creation).code == "workspace_not_found"
    assert await served.pool.fetchval("SELECT count(*) FROM api_keys WHERE label = 'late'") == 0


# --- the operator key of the configuration -----------------------------------------------------------


async def test_a_changed_operator_key_makes_the_old_one_worthless_and_back_again(served: Served) -> None:
    new = "dk_" + "n" * 43
    _, made_by_hand = await served.key(None, label="another operator")
    assert await served.node.service.ensure_operator_key(new)
    assert (await served.client.get(KEYS)).status == 401
    assert (await served.client.with_key(new).get(KEYS)).status == 200
    assert (await served.client.with_key(made_by_hand).get(KEYS)).status == 200
    assert await served.node.service.ensure_operator_key(OPERATOR_KEY)
    assert (await served.client.get(KEYS)).status == 200
    assert (await served.client.with_key(new).get(KEYS)).status == 401


async def test_the_same_operator_key_at_the_next_start_changes_nothing(served: Served) -> None:
    before = await served.pool.fetch("SELECT * FROM api_keys")
    served.clock.advance(seconds=1)
    assert not await served.node.service.ensure_operator_key(OPERATOR_KEY)
    assert await served.pool.fetch("SELECT * FROM api_keys") == before


@pytest.mark.parametrize("raw", ["", "secret", "dk_short", "dk_" + "ü" * 40, "fh_" + "x" * 43])
async def test_what_does_not_look_like_a_key_can_not_be_the_operators(shared: Served, raw: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        await shared.node.service.ensure_operator_key(raw)


async def test_the_configured_operator_key_is_not_changed_by_the_api(shared: Served) -> None:
    listed = (await shared.client.get(f"{KEYS}?limit=200")).json()["data"]
    key_id = next(each["id"] for each in listed if each["label"] == "operator")
    revoked = await shared.client.post(f"{KEYS}/{key_id}/revoke")
    assert (revoked.status, revoked.code) == (409, "operator_key_configured")
    relabelled = await shared.client.request("PATCH", f"{KEYS}/{key_id}", json={"label": "mine"})
    assert (relabelled.status, relabelled.code) == (409, "operator_key_configured")


async def test_no_other_key_may_take_the_operators_label(shared: Served) -> None:
    key_id, _ = await shared.key()
    for answer in (
        await shared.client.post(KEYS, {"label": "operator"}),
        await shared.client.request("PATCH", f"{KEYS}/{key_id}", json={"label": "operator"}),
    ):
        assert (answer.status, answer.fields) == (422, [("label", "reserved")])


# --- refusals ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "field", "code"),
    [
        ({}, "label", "required"),
        ({"label": ""}, "label", "wrong_length"),
        ({"label": "x", "workspace_id": "no"}, "workspace_id", "wrong_format"),
        ({"label": "x", "workspace_id": 1}, "workspace_id", "wrong_type"),
        ({"label": "x", "is_active": True}, "is_active", "unknown_field"),
    ],
)
async def test_a_wrong_field_is_named(shared: Served, body: object, field: str, code: str) -> None:
    answer = await shared.client.post(KEYS, body)
    assert (answer.status, answer.code, answer.fields) == (422, "invalid_input", [(field, code)])


@pytest.mark.parametrize(
    ("method", "suffix"), [("GET", ""), ("PATCH", ""), ("POST", "/revoke")], ids=["show", "change", "revoke"]
)
async def test_an_unknown_key_is_404(shared: Served, method: str, suffix: str) -> None:
    body = {"label": "x"} if method == "PATCH" else None
    answer = await shared.client.request(method, f"{KEYS}/{uuid4()}{suffix}", json=body)
    assert (answer.status, answer.code) == (404, "key_not_found")


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("POST", KEYS),
        ("GET", KEYS),
        ("GET", f"{KEYS}/{UUID(int=1)}"),
        ("PATCH", f"{KEYS}/{UUID(int=1)}"),
        ("POST", f"{KEYS}/{UUID(int=1)}/revoke"),
    ],
)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Basic b3A6b3A="},
        {"authorization": "Bearer"},
        {"authorization": f"Bearer {OPERATOR_KEY}x"},
        {"authorization": "Bearer dk_\xff" + "x" * 43},
        {"authorization": "Bearer " + "dk_" + "x" * 5000},
        {"x-api-key": "x"},
        {"cookie": "crossdock_session=nonsense", "sec-fetch-site": "same-origin"},
        {"cookie": f"crossdock_session={uuid4()}", "sec-fetch-site": "same-origin"},
        {"cookie": "=;;\xff;crossdock_session"},
    ],
)
async def test_nobody_gets_in_without_a_good_key(
    shared: Served, method: str, target: str, headers: dict[str, str]
) -> None:
    answer = await shared.client.with_key(None).request(method, target, headers=headers)
    assert answer.status == 401
    assert answer.code in ("credential_required", "invalid_credential")
