from __future__ import annotations

import pytest
from tests.http.access.conftest import Served

SETTINGS = "/v1/sync/settings"


async def test_a_setting_is_set_read_changed_and_unset(served: Served) -> None:
    target = f"{SETTINGS}/global_max_concurrency"
    created = await served.client.request("PUT", target, json={"value": "8"})
    assert created.status == 200
    assert created.json() == {
        "key": "global_max_concurrency",
        "value": "8",
        "updated_at": "2025-01-01T12:00:00Z",
    }
    served.clock.advance(seconds=1)
    assert (await served.client.request("PUT", target, json={"value": "9"})).status == 200
    read = await served.client.get(target)
    assert (read.status, read.json()["value"]) == (200, "9")
    assert read.json()["updated_at"] == "2025-01-01T12:00:01Z"
    assert (await served.client.request("DELETE", target)).status == 204
    assert (await served.client.get(target)).code == "setting_not_found"


async def test_settings_are_listed_by_key_in_pages(served: Served) -> None:
    for key in ("b", "a_b", "a", "c.d"):
        await served.client.request("PUT", f"{SETTINGS}/{key}", json={"value": ""})
    first = (await served.client.get(f"{SETTINGS}?limit=3")).json()
    second = (await served.client.get(f"{SETTINGS}?limit=3&cursor={first['next_cursor']}")).json()
    assert [each["key"] for each in first["data"]] == ["a", "a_b", "b"]
    assert [each["key"] for each in second["data"]] == ["c.d"]
    assert second["next_cursor"] is None


@pytest.mark.parametrize("key", ["Upper", "1st", "a-b", "a" * 65, "%C3%BC", "a%20b"])
async def test_a_key_that_can_not_be_is_refused_on_writing_and_missing_on_reading(
    shared: Served, key: str
) -> None:
    written = await shared.client.request("PUT", f"{SETTINGS}/{key}", json={"value": "1"})
    assert (written.status, written.fields) == (422, [("key", "wrong_format")])
    for method in ("GET", "DELETE"):
        answer = await shared.client.request(method, f"{SETTINGS}/{key}")
        assert (answer.status, answer.code) == (404, "setting_not_found")


@pytest.mark.parametrize(
    ("body", "field", "code"),
    [
        ({"value": 8}, "value", "wrong_type"),
        ({"value": "x" * 4097}, "value", "wrong_length"),
        ({"value": "a\0"}, "value", "nul_character"),
        ({}, "value", "required"),
        ({"value": "1", "unit": "s"}, "unit", "unknown_field"),
    ],
)
async def test_a_wrong_value_is_named(shared: Served, body: object, field: str, code: str) -> None:
    answer = await shared.client.request("PUT", f"{SETTINGS}/a", json=body)
    assert (answer.status, answer.fields) == (422, [(field, code)])


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", SETTINGS),
        ("GET", f"{SETTINGS}/a"),
        ("PUT", f"{SETTINGS}/a"),
        ("DELETE", f"{SETTINGS}/a"),
    ],
)
async def test_settings_are_the_operators_alone(shared: Served, method: str, target: str) -> None:
    _, tenant = await shared.tenant()
    denied = await tenant.request(method, target, json={"value": "1"})
    assert (denied.status, denied.code) == (403, "permission_denied")
    unknown = await shared.client.with_key(None).request(method, target, json={"value": "1"})
    assert (unknown.status, unknown.code) == (401, "credential_required")
