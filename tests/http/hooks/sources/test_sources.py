"""Sources: made, shown, changed, paused, deleted; whose they are, and what is refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.support.hooks_sources import PUBLIC_URL, SOURCES, Served, new_user_id, shown

from crossdock.hooks.store.tables import MAIN
from crossdock.kit.clock import rfc3339

UNKNOWN = "src_0123456789abcdef"
CUSTOM = {"header": "X-Signature", "signed": "{timestamp}.{body}", "timestamp_header": "X-Time"}


# --- made ------------------------------------------------------------------------------------------


async def test_a_source_is_made_and_shown_with_its_url_and_without_its_secret(shared: Served) -> None:
    user_id, client = await shared.user_and_client()
    answer = await client.post(
        SOURCES, {"name": "Stripe Prod", "provider": "stripe", "signing_secret": "whsec_5ecret"}
    )
    made = shown(answer, 201)
    source_id = made["source_id"]
    assert made == {
        "source_id": source_id,
        "user_id": user_id,
        "name": "Stripe Prod",
        "provider": "stripe",
        "status": "active",
        "ingest_url": f"{PUBLIC_URL}/in/{source_id}",
        "has_secret": True,
        "previous_secrets_valid_until": [],
        "signs_url": False,
        "signing": None,
        "dedup": None,
        "response": None,
        "event_count": 0,
        "last_event_at": None,
        "created_at": rfc3339(shared.now_ms),
    }
    assert shown(await client.get(f"{SOURCES}/{source_id}")) == made
    assert shown(await client.get(SOURCES)) == {"data": [made], "next_cursor": None}


async def test_everything_that_may_be_said_of_a_source_is_kept_and_shown(shared: Served) -> None:
    _, client = await shared.user_and_client()
    fields = {
        "name": "ours",
        "provider": "custom",
        "signing_secret": "a secret",
        "signing": CUSTOM,
        "dedup": {"header": "X-Id", "window_seconds": 3600},
        "response": {"status": 202, "body": "thanks", "content_type": "text/plain"},
    }
    made = await shared.source(client, **fields)
    del fields["signing_secret"]
    assert made.items() >= fields.items()
    assert shown(await client.get(f"{SOURCES}/{made['source_id']}")) == made


async def test_a_source_may_have_no_secret(shared: Served) -> None:
    user_id, client = await shared.user_and_client()
    for fields in ({}, {"signing_secret": None, "signing": None, "dedup": None, "response": None}):
        made = await shared.source(client, **fields)
        assert made["has_secret"] is False
        stored = await shared.source_item(user_id, made["source_id"])
        assert stored.keys().isdisjoint({"signingSecret", "previousSecrets", "signing", "dedup", "response"})


@pytest.mark.parametrize(("provider", "signs_url"), [("twilio", True), ("square", True), ("github", False)])
async def test_it_is_said_which_providers_sign_the_url(
    shared: Served, provider: str, signs_url: bool
) -> None:
    _, client = await shared.user_and_client()
    assert (await shared.source(client, provider=provider))["signs_url"] is signs_url


async def test_the_operator_makes_a_source_for_a_user(shared: Served) -> None:
    user_id, client = await shared.user_and_client()
    made = await shared.source(shared.operator, user_id=user_id)
    assert made["user_id"] == user_id
    assert shown(await client.get(SOURCES))["data"] == [made]


async def test_the_operator_must_say_for_whom(shared: Served) -> None:
    answer = await shared.operator.post(SOURCES, {"name": "x", "provider": "stripe"})
    assert (answer.status, answer.code, answer.fields) == (422, "invalid_input", [("user_id", "required")])


@pytest.mark.parametrize("user_id", [new_user_id(), "usr_no", "x", ""])
async def test_nobody_makes_a_source_for_a_user_that_is_not_there(shared: Served, user_id: str) -> None:
    body = {"name": "x", "provider": "stripe", "user_id": user_id}
    _, client = await shared.user_and_client()
    for each in (shared.operator, client, shared.client(new_user_id())):
        answer = await each.post(SOURCES, body)
        assert (answer.status, answer.code) == (404, "user_not_found")


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"name": ""}, [("name", "wrong_length")]),
        ({"name": "x" * 257}, [("name", "wrong_length")]),
        ({"name": None}, [("name", "wrong_type")]),
        ({"name": "a\0b"}, [("name", "nul_character")]),
        ({"provider": "fax"}, [("provider", "not_a_choice")]),
        ({"provider": None}, [("provider", "wrong_type")]),
        ({"signing_secret": ""}, [("signing_secret", "unusable_secret")]),
        ({"signing_secret": " x"}, [("signing_secret", "unusable_secret")]),
        ({"provider": "basic-auth", "signing_secret": "x"}, [("signing_secret", "unusable_secret")]),
        ({"signing": {"header": "X"}}, [("signing", "not_taken")]),
        ({"provider": "custom"}, [("signing.header", "required")]),
        ({"provider": "custom", "signing": {**CUSTOM, "salt": 1}}, [("signing.salt", "unknown_field")]),
        ({"signing": []}, [("signing", "wrong_type")]),
        ({"dedup": {"path": "a..b"}}, [("dedup.path", "wrong_format")]),
        ({"dedup": {"header": "A", "path": "b"}}, [("dedup", "not_together")]),
        ({"response": {"status": 404}}, [("response.status", "out_of_range")]),
        ({"response": {"status": 200, "body": "x" * 1025}}, [("response.body", "too_large")]),
        ({"status": "paused"}, [("status", "unknown_field")]),
        (
            {"provider": "fax", "dedup": {"path": ""}, "response": {}},
            [("provider", "not_a_choice"), ("dedup.path", "wrong_format"), ("response.status", "required")],
        ),
    ],
)
async def test_wrong_fields_are_422_and_named(
    shared: Served, changed: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    user_id, client = await shared.user_and_client()
    answer = await client.post(SOURCES, {"name": "x", "provider": "stripe"} | changed)
    assert (answer.status, answer.code, answer.fields) == (422, "invalid_input", expected)
    made = await shared.source(client)
    before = await shared.source_item(user_id, made["source_id"])
    answer = await client.request("PATCH", f"{SOURCES}/{made['source_id']}", json=changed)
    assert (answer.status, answer.code, answer.fields) == (422, "invalid_input", expected)
    assert await shared.source_item(user_id, made["source_id"]) == before


@pytest.mark.parametrize("missing", ["name", "provider"])
async def test_a_source_has_a_name_and_a_provider(shared: Served, missing: str) -> None:
    _, client = await shared.user_and_client()
    body = {"name": "x", "provider": "stripe"}
    del body[missing]
    answer = await client.post(SOURCES, body)
    assert (answer.status, answer.fields) == (422, [(missing, "required")])


async def test_a_secret_is_said_in_no_refusal(shared: Served) -> None:
    _, client = await shared.user_and_client()
    body = {"name": "x", "provider": "discord", "signing_secret": "v3ry-s3cret"}
    assert b"v3ry" not in (await client.post(SOURCES, body)).body


async def test_a_source_made_again_under_its_idempotency_key_is_the_same(shared: Served) -> None:
    _, client = await shared.user_and_client()
    body = {"name": "x", "provider": "stripe", "signing_secret": "whsec_5ecret"}
    headers = {"idempotency-key": "mine"}
    first = await client.post(SOURCES, body, headers=headers)
    again = await client.post(SOURCES, body, headers=headers)
    assert (first.status, again.status, again.json()) == (201, 201, first.json())
    assert again.header("idempotency-replayed") == "true"
    assert len(shown(await client.get(SOURCES))["data"]) == 1
    other = await client.post(SOURCES, body | {"name": "y"}, headers=headers)
    assert (other.status, other.code) == (409, "idempotency_conflict")


# --- shown -----------------------------------------------------------------------------------------


async def test_a_new_source_is_found_by_the_operator_although_indexes_lag(lagging: Served) -> None:
    user_id = await lagging.user()
    made = await lagging.source(lagging.operator, user_id=user_id)
    assert shown(await lagging.operator.get(f"{SOURCES}/{made['source_id']}")) == made


async def test_the_operator_sees_a_source_as_it_is_now_although_indexes_lag(lagging: Served) -> None:
    client, source_id = await lagging.any_source()
    await client.request("PATCH", f"{SOURCES}/{source_id}", json={"name": "new"})
    assert shown(await lagging.operator.get(f"{SOURCES}/{source_id}"))["name"] == "new"
    await client.request("DELETE", f"{SOURCES}/{source_id}")
    assert (await lagging.operator.get(f"{SOURCES}/{source_id}")).status == 404


@pytest.mark.parametrize("source_id", [UNKNOWN, "src_", "x", "src_0123456789abcde%2F", "%00", "a" * 3000])
async def test_a_source_that_is_not_there_is_404(shared: Served, source_id: str) -> None:
    _, client = await shared.user_and_client()
    for each in (client, shared.operator):
        for method, suffix, body in REQUESTS:
            answer = await each.request(method, f"{SOURCES}/{source_id}{suffix}", json=body)
            assert answer.status == 404, (method, suffix)
            assert answer.code in ("source_not_found", "not_found")


REQUESTS: list[tuple[str, str, dict[str, Any] | None]] = [
    ("GET", "", None),
    ("PATCH", "", {"name": "x"}),
    ("DELETE", "", None),
    ("POST", "/rotate-secret", {"signing_secret": "x"}),
    ("POST", "/pause", None),
    ("POST", "/resume", None),
    ("GET", "/connections", None),
    ("POST", "/connections", {"name": "x", "destination_url": "https://api.example.org/"}),
]


@pytest.mark.parametrize(("method", "suffix", "body"), REQUESTS)
async def test_somebody_elses_source_is_404_and_stays_as_it_is(
    shared: Served, method: str, suffix: str, body: dict[str, Any] | None
) -> None:
    user_id, client = await shared.user_and_client()
    source_id = (await shared.source(client))["source_id"]
    before = await shared.source_item(user_id, source_id)
    _, other = await shared.user_and_client()
    answer = await other.request(method, f"{SOURCES}/{source_id}{suffix}", json=body)
    assert (answer.status, answer.code) == (404, "source_not_found")
    assert await shared.source_item(user_id, source_id) == before


@pytest.mark.parametrize(("method", "suffix", "body"), [*REQUESTS, ("POST", "", {"name": "x"})])
async def test_a_key_that_may_not_is_403_and_none_is_401(
    shared: Served, method: str, suffix: str, body: dict[str, Any] | None
) -> None:
    user_id, client = await shared.user_and_client()
    path = f"{SOURCES}/{(await shared.source(client))['source_id']}{suffix}"
    too_weak = "none" if method == "GET" else "read"
    answer = await shared.client(user_id, too_weak).request(method, path, json=body)
    expected = (405, "method_not_allowed") if (method, suffix) == ("POST", "") else (403, "permission_denied")
    assert (answer.status, answer.code) == expected
    anonymous = await shared.operator.with_key(None).request(method, path, json=body)
    assert anonymous.status in (401, 405)


async def test_a_key_that_may_look_sees_sources_and_makes_none(shared: Served) -> None:
    user_id, client = await shared.user_and_client()
    made = await shared.source(client)
    reader = shared.client(user_id, "read")
    assert shown(await reader.get(SOURCES))["data"] == [made]
    assert shown(await reader.get(f"{SOURCES}/{made['source_id']}")) == made
    answer = await reader.post(SOURCES, {"name": "x", "provider": "stripe"})
    assert (answer.status, answer.code) == (403, "permission_denied")


# --- changed ---------------------------------------------------------------------------------------


async def test_only_what_is_given_changes(shared: Served) -> None:
    _, client = await shared.user_and_client()
    made = await shared.source(client, provider="custom", signing=CUSTOM, dedup={"path": "id"})
    path = f"{SOURCES}/{made['source_id']}"
    renamed = shown(await client.request("PATCH", path, json={"name": "new"}))
    assert renamed == made | {"name": "new"}
    moved = {"provider": "github", "signing": None, "response": {"status": 201}}
    changed = shown(await client.request("PATCH", path, json=moved))
    assert changed == renamed | moved
    assert shown(await client.get(path)) == changed


async def test_null_takes_away_what_a_source_may_do_without(shared: Served) -> None:
    user_id, client = await shared.user_and_client()
    made = await shared.source(
        client, signing_secret="x", dedup={"path": "id"}, response={"status": 201, "body": "x"}
    )
    nothing = {"signing_secret": None, "dedup": None, "response": None, "signing": None}
    changed = shown(await client.request("PATCH", f"{SOURCES}/{made['source_id']}", json=nothing))
    assert changed == made | {"has_secret": False, "dedup": None, "response": None}
    stored = await shared.source_item(user_id, made["source_id"])
    assert stored.keys().isdisjoint({"signingSecret", "dedup", "response", "signing"})


async def test_a_change_of_nothing_changes_nothing(shared: Served) -> None:
    client, source_id = await shared.any_source()
    before = shown(await client.get(f"{SOURCES}/{source_id}"))
    for body in ({}, {"name": before["name"]}):
        assert shown(await client.request("PATCH", f"{SOURCES}/{source_id}", json=body)) == before


async def test_a_change_leaves_counters_alone(shared: Served) -> None:
    user_id, client = await shared.user_and_client()
    source_id = (await shared.source(client))["source_id"]
    item = await shared.source_item(user_id, source_id)
    counted = {**item, "eventCount": 7, "lastEventAt": "2025-01-01T12:00:00Z"}
    await shared.items.put(MAIN, counted)
    changed = shown(await client.request("PATCH", f"{SOURCES}/{source_id}", json={"name": "new"}))
    assert (changed["event_count"], changed["last_event_at"]) == (7, "2025-01-01T12:00:00Z")


async def test_a_source_is_paused_and_resumed_as_often_as_one_likes(shared: Served) -> None:
    client, source_id = await shared.any_source()
    for verb, status in [
        ("pause", "paused"),
        ("pause", "paused"),
        ("resume", "active"),
        ("resume", "active"),
        ("pause", "paused"),
    ]:
        assert shown(await client.post(f"{SOURCES}/{source_id}/{verb}"))["status"] == status
        assert shown(await client.get(f"{SOURCES}/{source_id}"))["status"] == status


# --- deleted ---------------------------------------------------------------------------------------


async def test_a_deleted_source_is_gone_for_everyone_and_its_record_stays(shared: Served) -> None:
    user_id, client = await shared.user_and_client()
    source_id = (await shared.source(client, signing_secret="x"))["source_id"]
    answer = await client.request("DELETE", f"{SOURCES}/{source_id}")
    assert (answer.status, answer.body) == (204, b"")
    for each in (client, shared.operator):
        for method, suffix, body in REQUESTS:
            answer = await each.request(method, f"{SOURCES}/{source_id}{suffix}", json=body)
            assert (answer.status, answer.code) == (404, "source_not_found"), (method, suffix)
    stored = await shared.source_item(user_id, source_id)
    assert stored["status"] == "deleted"
    assert stored.keys().isdisjoint({"signingSecret", "previousSecrets"})


async def test_a_paused_source_can_be_deleted(shared: Served) -> None:
    client, source_id = await shared.any_source()
    await client.post(f"{SOURCES}/{source_id}/pause")
    assert (await client.request("DELETE", f"{SOURCES}/{source_id}")).status == 204
    assert shown(await client.get(SOURCES))["data"] == []


async def test_every_operation_is_described(shared: Served) -> None:
    document = msgspec.json.decode((await shared.operator.get("/openapi.json")).body)
    paths = {path: operations for path, operations in document["paths"].items() if "/hooks/" in path}
    assert paths.keys() == {
        "/v1/hooks/sources",
        "/v1/hooks/sources/{source_id}",
        "/v1/hooks/sources/{source_id}/rotate-secret",
        "/v1/hooks/sources/{source_id}/pause",
        "/v1/hooks/sources/{source_id}/resume",
        "/v1/hooks/sources/{source_id}/connections",
        "/v1/hooks/connections/{connection_id}",
        "/v1/hooks/connections/{connection_id}/rotate-secret",
        "/v1/hooks/connections/{connection_id}/pause",
        "/v1/hooks/connections/{connection_id}/resume",
        "/v1/hooks/filters/test",
        "/v1/hooks/transforms/test",
    }
    operations = [each for path in paths.values() for each in path.values()]
    assert all(each["summary"] and each["tags"] == ["hooks"] for each in operations)
