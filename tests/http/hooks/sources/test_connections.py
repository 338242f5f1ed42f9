"""Connections: made, listed, shown, changed, paused, deleted; whose they are, and how many there may be."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.hooks_sources import CONNECTIONS, GOOD_URL, SOURCES, Served, shown

from crossdock.delivery.breaker import BreakerState
from crossdock.engines.items.port import Update, Written
from crossdock.hooks.model import CONNECTIONS_MAX, Connection
from crossdock.hooks.store import connections as store
from crossdock.hooks.store.tables import event_key
from crossdock.kit.clock import rfc3339
from crossdock.kit.signing import key_of_secret

UNKNOWN = "conn_0123456789abcdef"
FIELDS: dict[str, Any] = {
    "filters": [{"on": "body", "match": {"type": "order.paid", "amount": {"$gte": 100}}}],
    "transform": [{"remove": ["secret"]}, {"set_headers": {"X-Kind": "order"}}],
    "retry_config": {"schedule_seconds": [0, 5, 60.5]},
    "rate_limit": {"requests": 10, "per_seconds": 1.5},
    "max_in_flight": 7,
    "ordered": True,
    "timeout_seconds": 60,
}
DEFAULTS: dict[str, Any] = {
    "filters": None,
    "transform": None,
    "retry_config": None,
    "headers": {},
    "rate_limit": None,
    "max_in_flight": None,
    "ordered": False,
    "timeout_seconds": 30,
}
REQUESTS: list[tuple[str, str, dict[str, Any] | None]] = [
    ("GET", "", None),
    ("PATCH", "", {"name": "x"}),
    ("DELETE", "", None),
    ("POST", "/rotate-secret", {}),
    ("POST", "/pause", None),
    ("POST", "/resume", None),
]


async def stored_connection(served: Served, source_id: str, connection_id: str) -> Connection:
    return store.connection_of(await served.connection_item(source_id, connection_id))


async def apply(served: Served, update: Update) -> None:
    assert isinstance(await served.items.transact([update]), Written)


# --- made ------------------------------------------------------------------------------------------


async def test_a_connection_is_made_and_its_secret_shown_this_once(shared: Served) -> None:
    user_id, client = await shared.user_and_client()
    source_id = (await shared.source(client))["source_id"]
    made = await shared.connection(client, source_id)
    secret, warnings = made.pop("signing_secret"), made.pop("warnings")
    assert len(key_of_secret(secret)) == 32
    assert warnings == []
    now = rfc3339(shared.now_ms)
    assert made == {
        "connection_id": made["connection_id"],
        "source_id": source_id,
        "user_id": user_id,
        "name": "billing",
        "destination_url": GOOD_URL,
        "status": "active",
        "paused_reason": None,
        "circuit": "closed",
        "previous_secrets_valid_until": [],
        "delivery_count": 0,
        "failure_count": 0,
        "created_at": now,
        "updated_at": now,
        **DEFAULTS,
    }
    assert shown(await client.get(f"{CONNECTIONS}/{made['connection_id']}")) == made
    listed = shown(await client.get(f"{SOURCES}/{source_id}/connections"))
    assert listed == {"data": [made], "next_cursor": None}


async def test_everything_that_may_be_said_of_a_connection_is_kept_and_shown(shared: Served) -> None:
    client, source_id = await shared.any_source()
    made = await shared.connection(client, source_id, **FIELDS)
    assert made.items() >= FIELDS.items()
    del made["signing_secret"], made["warnings"]
    assert shown(await client.get(f"{CONNECTIONS}/{made['connection_id']}")) == made


async def test_null_is_the_same_as_nothing_said(shared: Served) -> None:
    client, source_id = await shared.any_source()
    made = await shared.connection(client, source_id, **dict.fromkeys(DEFAULTS))
    assert made.items() >= DEFAULTS.items()


async def test_a_connection_belongs_to_the_sources_user_whoever_makes_it(shared: Served) -> None:
    user_id, client = await shared.user_and_client()
    source_id = (await shared.source(client))["source_id"]
    made = await shared.connection(shared.operator, source_id)
    assert made["user_id"] == user_id
    assert shown(await client.get(f"{CONNECTIONS}/{made['connection_id']}"))["user_id"] == user_id


async def test_a_paused_source_may_be_connected(shared: Served) -> None:
    client, source_id = await shared.any_source()
    await client.post(f"{SOURCES}/{source_id}/pause")
    assert (await shared.connection(client, source_id))["status"] == "active"


async def test_a_connection_made_again_under_its_idempotency_key_is_the_same_secret_and_all(
    shared: Served,
) -> None:
    client, source_id = await shared.any_source()
    path, body = f"{SOURCES}/{source_id}/connections", {"name": "x", "destination_url": GOOD_URL}
    headers = {"idempotency-key": "mine"}
    first = await client.post(path, body, headers=headers)
    again = await client.post(path, body, headers=headers)
    assert (first.status, again.status, again.json()) == (201, 201, first.json())
    shared.clock.advance(seconds=600)
    masked = await client.post(path, body, headers=headers)
    assert masked.json() == first.json() | {"signing_secret": "***"}
    assert len(shown(await client.get(path))["data"]) == 1


async def test_a_50th_connection_is_made_a_51st_is_409_until_one_is_deleted(shared: Served) -> None:
    client, source_id = await shared.any_source()
    made = [await shared.connection(client, source_id) for _ in range(CONNECTIONS_MAX)]
    path, body = f"{SOURCES}/{source_id}/connections", {"name": "x", "destination_url": GOOD_URL}
    answer = await client.post(path, body, headers={"idempotency-key": "mine"})
    assert (answer.status, answer.code) == (409, "too_many_connections")
    await client.post(f"{CONNECTIONS}/{made[0]['connection_id']}/pause")
    assert (await client.post(path, body)).status == 409
    await client.request("DELETE", f"{CONNECTIONS}/{made[0]['connection_id']}")
    assert (await client.post(path, body, headers={"idempotency-key": "mine"})).status == 201
    assert (await client.post(path, body)).status == 409
    assert len(shown(await client.get(f"{path}?limit=200"))["data"]) == CONNECTIONS_MAX


# --- listed and shown ------------------------------------------------------------------------------


async def test_a_sources_connections_are_listed_each_once_without_the_deleted_ones(shared: Served) -> None:
    client, source_id = await shared.any_source()
    made = sorted([(await shared.connection(client, source_id))["connection_id"] for _ in range(7)])
    for connection_id in (made[0], made[3], made[6]):
        assert (await client.request("DELETE", f"{CONNECTIONS}/{connection_id}")).status == 204
    for limit in (1, 2, 3, 4, 200):
        found: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            page = shown(await client.get(f"{SOURCES}/{source_id}/connections?limit={limit}{cursor}"))
            found += [each["connection_id"] for each in page["data"]]
            cursor = None if page["next_cursor"] is None else f"&cursor={page['next_cursor']}"
        assert found == [made[1], made[2], made[4], made[5]]


async def test_another_sources_connections_are_not_listed(shared: Served) -> None:
    client, source_id, _ = await shared.any_connection()
    other = (await shared.source(client))["source_id"]
    assert shown(await client.get(f"{SOURCES}/{other}/connections"))["data"] == []
    assert len(shown(await shared.operator.get(f"{SOURCES}/{source_id}/connections"))["data"]) == 1


async def test_a_new_connection_is_found_and_shown_as_it_is_now_although_indexes_lag(lagging: Served) -> None:
    client, _, connection_id = await lagging.any_connection()
    path = f"{CONNECTIONS}/{connection_id}"
    assert shown(await client.get(path))["name"] == "billing"
    shown(await client.request("PATCH", path, json={"name": "new"}))
    assert shown(await client.get(path))["name"] == "new"
    assert (await client.request("DELETE", path)).status == 204
    assert (await client.get(path)).status == 404


@pytest.mark.parametrize("connection_id", [UNKNOWN, "conn_", "src_0123456789abcdef", "%01", "a" * 3000])
async def test_a_connection_that_is_not_there_is_404(shared: Served, connection_id: str) -> None:
    _, client = await shared.user_and_client()
    for method, suffix, body in REQUESTS:
        answer = await client.request(method, f"{CONNECTIONS}/{connection_id}{suffix}", json=body)
        assert (answer.status, answer.code) == (404, "connection_not_found"), (method, suffix)


@pytest.mark.parametrize(("method", "suffix", "body"), REQUESTS)
async def test_somebody_elses_connection_is_404_and_stays_as_it_is(
    shared: Served, method: str, suffix: str, body: dict[str, Any] | None
) -> None:
    _, source_id, connection_id = await shared.any_connection()
    before = await shared.connection_item(source_id, connection_id)
    _, other = await shared.user_and_client()
    answer = await other.request(method, f"{CONNECTIONS}/{connection_id}{suffix}", json=body)
    assert (answer.status, answer.code) == (404, "connection_not_found")
    assert await shared.connection_item(source_id, connection_id) == before


@pytest.mark.parametrize(("method", "suffix", "body"), REQUESTS)
async def test_a_key_that_may_not_is_403_and_none_is_401(
    shared: Served, method: str, suffix: str, body: dict[str, Any] | None
) -> None:
    user_id, client = await shared.user_and_client()
    made = await shared.connection(client, (await shared.source(client))["source_id"])
    path = f"{CONNECTIONS}/{made['connection_id']}{suffix}"
    too_weak = shared.client(user_id, "none" if method == "GET" else "read")
    answer = await too_weak.request(method, path, json=body)
    assert (answer.status, answer.code) == (403, "permission_denied")
    assert (await shared.operator.with_key(None).request(method, path, json=body)).status == 401


async def test_a_key_that_may_look_connects_nothing(shared: Served) -> None:
    user_id, client = await shared.user_and_client()
    path = f"{SOURCES}/{(await shared.source(client))['source_id']}/connections"
    reader = shared.client(user_id, "read")
    answer = await reader.post(path, {"name": "x", "destination_url": GOOD_URL})
    assert (answer.status, answer.code) == (403, "permission_denied")
    assert shown(await reader.get(path))["data"] == []


# --- changed ---------------------------------------------------------------------------------------


async def test_only_what_is_given_changes_and_the_time_of_it(shared: Served) -> None:
    client, _, connection_id = await shared.any_connection(**FIELDS)
    path = f"{CONNECTIONS}/{connection_id}"
    made = shown(await client.get(path))
    shared.clock.advance(seconds=1)
    now = rfc3339(shared.now_ms)
    for field, value in [
        ("name", "new"),
        ("destination_url", "https://both.example.org/"),
        ("filters", [{"on": "method", "match": "POST"}]),
        ("transform", []),
        ("retry_config", {"strategy": "linear", "base_seconds": 1}),
        ("rate_limit", {"requests": 1, "per_seconds": 60}),
        ("max_in_flight", 1000),
        ("ordered", False),
        ("timeout_seconds", 1),
    ]:
        made |= {field: value, "updated_at": now}
        changed = shown(await client.request("PATCH", path, json={field: value}))
        assert changed.pop("warnings") == []
        assert changed == made == shown(await client.get(path))


async def test_null_puts_a_field_back_to_its_default(shared: Served) -> None:
    client, source_id, connection_id = await shared.any_connection(**FIELDS, headers={"X-A": "b"})
    path = f"{CONNECTIONS}/{connection_id}"
    changed = shown(await client.request("PATCH", path, json=dict.fromkeys(DEFAULTS)))
    assert changed.items() >= DEFAULTS.items()
    stored = await shared.connection_item(source_id, connection_id)
    optional = {"filters", "transform", "retryConfig", "headers", "rateLimit", "maxInFlight", "orderedCursor"}
    assert stored.keys().isdisjoint(optional)


async def test_a_change_of_nothing_is_not_a_change(shared: Served) -> None:
    client, _, connection_id = await shared.any_connection(**FIELDS)
    path = f"{CONNECTIONS}/{connection_id}"
    before = shown(await client.get(path))
    shared.clock.advance(seconds=1)
    for body in ({}, {"name": before["name"], "ordered": True}, {"filters": FIELDS["filters"]}):
        assert shown(await client.request("PATCH", path, json=body)) == before | {"warnings": []}
    assert shown(await client.post(f"{path}/resume")) == before


async def test_true_in_place_of_1_is_a_change(shared: Served) -> None:
    client, _, connection_id = await shared.any_connection(filters=[{"on": "body", "match": {"a": 1}}])
    changed = [{"on": "body", "match": {"a": True}}]
    path = f"{CONNECTIONS}/{connection_id}"
    shown(await client.request("PATCH", path, json={"filters": changed}))
    assert shown(await client.get(path))["filters"][0]["match"]["a"] is True


# --- paused and resumed ----------------------------------------------------------------------------


async def test_a_connection_is_paused_and_resumed_as_often_as_one_likes(shared: Served) -> None:
    client, _, connection_id = await shared.any_connection()
    for verb, status in [
        ("pause", "paused"),
        ("pause", "paused"),
        ("resume", "active"),
        ("resume", "active"),
    ]:
        found = shown(await client.post(f"{CONNECTIONS}/{connection_id}/{verb}"))
        assert (found["status"], found["paused_reason"]) == (status, None)
        assert shown(await client.get(f"{CONNECTIONS}/{connection_id}")) == found


async def test_resuming_forgets_why_it_was_paused_and_closes_its_circuit(shared: Served) -> None:
    client, source_id, connection_id = await shared.any_connection()
    path = f"{CONNECTIONS}/{connection_id}"
    state = {"consecutive_failures": 10, "open_until_ms": shared.now_ms + 60_000}
    connection = await stored_connection(shared, source_id, connection_id)
    await apply(shared, store.breaker_changed(connection, state))
    connection = await stored_connection(shared, source_id, connection_id)
    await apply(shared, store.connection_paused(connection, "gone", rfc3339(shared.now_ms)))
    paused = shown(await client.get(path))
    assert (paused["status"], paused["paused_reason"], paused["circuit"]) == ("paused", "gone", "open")
    resumed = shown(await client.post(f"{path}/resume"))
    assert (resumed["status"], resumed["paused_reason"], resumed["circuit"]) == ("active", None, "closed")
    stored = await shared.connection_item(source_id, connection_id)
    assert stored.keys().isdisjoint({"breaker", "pausedReason"})


async def test_a_circuit_that_may_be_tried_again_is_half_open(shared: Served) -> None:
    client, source_id, connection_id = await shared.any_connection()
    state = {"open_until_ms": shared.now_ms}
    connection = await stored_connection(shared, source_id, connection_id)
    await apply(shared, store.breaker_changed(connection, state))
    assert shown(await client.get(f"{CONNECTIONS}/{connection_id}"))["circuit"] == "half_open"


async def test_another_destination_begins_with_a_closed_circuit(shared: Served) -> None:
    client, source_id, connection_id = await shared.any_connection()
    path = f"{CONNECTIONS}/{connection_id}"
    opened = {"open_until_ms": shared.now_ms + 60_000}
    connection = await stored_connection(shared, source_id, connection_id)
    await apply(shared, store.breaker_changed(connection, opened))
    kept = shown(await client.request("PATCH", path, json={"destination_url": GOOD_URL, "name": "new"}))
    assert kept["circuit"] == "open"
    moved = {"destination_url": "https://both.example.org/"}
    assert shown(await client.request("PATCH", path, json=moved))["circuit"] == "closed"


# --- in order --------------------------------------------------------------------------------------


async def test_an_order_begins_when_it_is_asked_for_and_is_not_begun_again(shared: Served) -> None:
    client, source_id, connection_id = await shared.any_connection()
    path = f"{CONNECTIONS}/{connection_id}"

    async def cursor() -> str | None:
        return (await stored_connection(shared, source_id, connection_id)).ordered_cursor

    async def put(**fields: Any) -> None:
        shown(await client.request("PATCH", path, json=fields))

    assert await cursor() is None
    await put(ordered=True)
    first = await cursor()
    assert first is not None
    assert first < event_key(source_id, shared.now_ms, "evt_x")["SK"]
    shared.clock.advance(seconds=600)
    await put(ordered=True, name="new")
    assert await cursor() == first
    await put(ordered=False)
    assert await cursor() is None
    await put(ordered=True)
    again = await cursor()
    assert again is not None
    assert again > first


# --- deleted ---------------------------------------------------------------------------------------


async def test_a_deleted_connection_is_gone_for_everyone_and_its_record_stays(shared: Served) -> None:
    client, source_id, connection_id = await shared.any_connection(headers={"X-Key": "abc"})
    answer = await client.request("DELETE", f"{CONNECTIONS}/{connection_id}")
    assert (answer.status, answer.body) == (204, b"")
    for each in (client, shared.operator):
        for method, suffix, body in REQUESTS:
            answer = await each.request(method, f"{CONNECTIONS}/{connection_id}{suffix}", json=body)
            assert (answer.status, answer.code) == (404, "connection_not_found"), (method, suffix)
    stored = await shared.connection_item(source_id, connection_id)
    assert stored["status"] == "deleted"
    assert stored.keys().isdisjoint({"signingSecret", "previousSecrets", "headers"})


async def test_connections_end_with_their_source(shared: Served) -> None:
    user_id, client = await shared.user_and_client()
    source_id = (await shared.source(client))["source_id"]
    made = [(await shared.connection(client, source_id))["connection_id"] for _ in range(CONNECTIONS_MAX)]
    await client.post(f"{CONNECTIONS}/{made[0]}/pause")
    await client.request("DELETE", f"{CONNECTIONS}/{made[1]}")
    assert (await client.request("DELETE", f"{SOURCES}/{source_id}")).status == 204
    for connection_id in made:
        stored = await shared.connection_item(source_id, connection_id)
        assert (stored["status"], "signingSecret" in stored) == ("deleted", False)
    assert (await client.get(f"{CONNECTIONS}/{made[2]}")).status == 404
    assert (await shared.source_item(user_id, source_id))["connectionCount"] == 0


async def test_a_breakers_state_is_read_as_it_was_written(shared: Served) -> None:
    _, source_id, connection_id = await shared.any_connection()
    state = {name: index + 1 for index, name in enumerate(BreakerState.__struct_fields__)}
    connection = await stored_connection(shared, source_id, connection_id)
    await apply(shared, store.breaker_changed(connection, state))
    assert (await stored_connection(shared, source_id, connection_id)).breaker == state
