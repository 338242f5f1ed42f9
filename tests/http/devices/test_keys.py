"""Device keys: made and shown once, listed, revoked, and what each of them may do."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from typing import Any
from uuid import uuid4

import pytest
from tests.support.asgi_client import Answer
from tests.support.devices import (
    KEYS,
    PEPPER,
    REGISTER,
    Node,
    Served,
    new_hardware_id,
    reading,
    registration,
)

from crossdock.devices.store import KEYS as TABLE
from crossdock.engines.items.port import Item, Query
from crossdock.http.idempotency import identify
from crossdock.http.idempotency_items import IDEMPOTENCY
from crossdock.http.principals import ALL_PERMISSIONS, Principal
from crossdock.kit.clock import rfc3339
from crossdock.kit.ids import is_uuid4

MINUTE = 60
RAW_KEY = re.compile(r"[0-9a-f]{64}")
UNKNOWN_ID = "a1b2c3d4-e5f6-4890-abcd-ef1234567890"


async def stored_key(served: Served, key_id: str) -> Item:
    item = await served.stored(TABLE, {"key_id": key_id})
    assert item is not None
    return item


async def count_of_keys(served: Served) -> int:
    return len((await served.items.query(Query(TABLE, "api_keys", index="gsi1", limit=1000))).items)


async def use(node: Node, raw: str, hardware_id: str, now_ms: int) -> Answer:
    return await node.send(raw, hardware_id, reading(now_ms))


# --- made ------------------------------------------------------------------------------------------


async def test_a_key_is_shown_once_and_kept_as_its_peppered_hash(shared: Served) -> None:
    body = {"description": "greenhouse", "hardware_id": new_hardware_id()}
    created = await shared.operator.post(KEYS, body)
    assert created.status == 201
    made = created.json()
    raw = made.pop("api_key")
    assert RAW_KEY.fullmatch(raw)
    assert is_uuid4(made["key_id"])
    now = rfc3339(shared.now_ms)
    shown = {**body, "key_id": made["key_id"], "created_at": now, "is_active": True, "last_used_at": None}
    assert made == shown
    stored = await stored_key(shared, made["key_id"])
    assert stored == {
        **body,
        "key_id": made["key_id"],
        "api_key_hash": hashlib.sha256((PEPPER + raw).encode()).hexdigest(),
        "created_at": now,
        "is_active": True,
        "gsi1pk": "api_keys",
        "gsi1sk": now,
    }
    again = await shared.operator.get(f"{KEYS}/{made['key_id']}")
    assert (again.status, again.json()) == (200, shown)
    revoked = await shared.operator.post(f"{KEYS}/{made['key_id']}/revoke")
    for answer in (again, revoked, await shared.operator.get(f"{KEYS}?limit=200")):
        assert raw.encode() not in answer.body
        assert str(stored["api_key_hash"]).encode() not in answer.body


async def test_what_was_not_given_is_null_and_not_stored(shared: Served) -> None:
    created = (await shared.operator.post(KEYS, {})).json()
    assert (created["description"], created["hardware_id"]) == (None, None)
    stored = await stored_key(shared, created["key_id"])
    assert stored.keys().isdisjoint({"description", "hardware_id", "last_used_at"})


async def test_two_keys_are_never_the_same(shared: Served) -> None:
    keys = [await shared.key() for _ in range(5)]
    assert len({key_id for key_id, _ in keys}) == len({raw for _, raw in keys}) == 5


async def test_a_raw_key_is_in_no_log_line(shared: Served, caplog: pytest.LogCaptureFixture) -> None:
    hardware_id = await shared.device()
    with caplog.at_level(logging.DEBUG):
        key_id, raw = await shared.key()
        await use(shared.node, raw, hardware_id, shared.now_ms)
        await shared.operator.with_key(raw).get(KEYS)
        await shared.operator.post(f"{KEYS}/{key_id}/revoke")
        assert (await use(shared.node, raw, hardware_id, shared.now_ms)).status == 401
    assert raw not in caplog.text


async def test_a_new_key_works_at_once_everywhere_although_indexes_lag(lagging: Served) -> None:
    hardware_id, elsewhere = await lagging.device(), lagging.another_node()
    _, raw = await lagging.key()
    for node in (elsewhere, lagging.node):
        assert (await use(node, raw, hardware_id, lagging.now_ms)).status == 200


@pytest.mark.parametrize(
    ("body", "field", "code"),
    [
        ({"description": ""}, "description", "wrong_length"),
        ({"description": "x" * 257}, "description", "wrong_length"),
        ({"description": 7}, "description", "wrong_type"),
        ({"description": "a\0b"}, "description", "nul_character"),
        ({"hardware_id": "aa:bb:cc:dd:ee:ff"}, "hardware_id", "wrong_format"),
        ({"hardware_id": "AA:BB:CC:DD:EE"}, "hardware_id", "wrong_format"),
        ({"hardware_id": ["AA:BB:CC:DD:EE:FF"]}, "hardware_id", "wrong_type"),
        ({"api_key": "f" * 64}, "api_key", "unknown_field"),
        ({"is_active": True}, "is_active", "unknown_field"),
        ([], "", "wrong_type"),
    ],
)
async def test_a_wrong_field_is_422_and_named(shared: Served, body: object, field: str, code: str) -> None:
    answer = await shared.operator.post(KEYS, body)
    assert (answer.status, answer.code, answer.fields) == (422, "invalid_input", [(field, code)])


async def test_a_body_that_can_not_be_read_is_refused_by_what_is_wrong_with_it(shared: Served) -> None:
    for body, headers, expected in [
        (b"", {}, (400, "body_required")),
        (b'{"description": ', {}, (400, "malformed_json")),
        (b'{"description": "\\ud83d"}', {}, (400, "malformed_json")),
        (b'{"description": "' + b"x" * 1_100_000 + b'"}', {}, (413, "body_too_large")),
        (b"{}", {"content-type": "text/csv"}, (415, "unsupported_media_type")),
    ]:
        answer = await shared.operator.request("POST", KEYS, body=body, headers=headers)
        assert (answer.status, answer.code) == expected


# --- Idempotency-Key -------------------------------------------------------------------------------


async def make(node: Node, description: str = "one") -> Answer:
    return await node.operator.post(KEYS, {"description": description}, headers={"idempotency-key": "mine"})


async def test_a_repeat_is_the_same_key_on_every_node_and_masked_after_ten_minutes(served: Served) -> None:
    first, elsewhere = await make(served.node), served.another_node()
    served.clock.advance(seconds=10 * MINUTE - 1)
    for node in (served.node, elsewhere):
        again = await make(node)
        assert (again.status, again.json()) == (201, first.json())
        assert again.header("idempotency-replayed") == "true"
    assert first.header("idempotency-replayed") is None
    served.clock.advance(seconds=1)
    late = await make(elsewhere)
    assert (late.status, late.json()) == (201, first.json() | {"api_key": "***"})
    assert await count_of_keys(served) == 1
    served.clock.advance(seconds=24 * 60 * MINUTE - 10 * MINUTE)
    assert (await make(served.node)).json()["key_id"] != first.json()["key_id"]


async def test_another_body_under_the_same_idempotency_key_is_409(served: Served) -> None:
    await make(served.node)
    answer = await make(served.node, "two")
    assert (answer.status, answer.code) == (409, "idempotency_conflict")
    assert await count_of_keys(served) == 1


async def test_repeats_at_the_same_time_make_one_key(served: Served) -> None:
    nodes = [served.node, served.another_node()]
    answers = await asyncio.gather(*(make(nodes[number % 2]) for number in range(8)))
    made = [answer for answer in answers if answer.status == 201]
    assert len({answer.json()["api_key"] for answer in made}) == 1
    busy = {(answer.status, answer.code) for answer in answers if answer.status != 201}
    assert busy <= {(409, "idempotency_in_progress")}
    assert await count_of_keys(served) == 1


async def test_the_remembered_answer_can_not_be_read_in_the_store(served: Served) -> None:
    raw = (await make(served.node, "very-visible")).json()["api_key"]
    page = await served.items.query(Query(TABLE, "api_keys", index="gsi1"))
    operator = Principal("operator", "operator", None, ALL_PERMISSIONS)
    request = identify(operator, method="POST", path=KEYS, query=b"", key="mine", body=b"")
    record = await served.stored(IDEMPOTENCY, {"scope": request.scope})
    assert record is not None
    for text in (raw, "very-visible", "mine"):
        assert text not in str(record)
    assert raw not in str(page.items)


# --- listed and shown ------------------------------------------------------------------------------


async def listed(served: Served, limit: int) -> list[dict[str, Any]]:
    """Every page, followed to the end."""
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = (await served.operator.get(f"{KEYS}?limit={limit}{cursor}")).json()
        assert len(page["data"]) <= limit
        found += page["data"]
        if page["next_cursor"] is None:
            return found
        cursor = f"&cursor={page['next_cursor']}"


async def test_keys_are_listed_newest_first_in_pages(served: Served) -> None:
    made = []
    for number in range(5):
        made.append((await served.operator.post(KEYS, {"description": f"k{number}"})).json())
        served.clock.advance(seconds=1)
    expected = [{name: value for name, value in key.items() if name != "api_key"} for key in made[::-1]]
    for limit in (1, 2, 5, 50):
        assert await listed(served, limit) == expected


async def test_keys_of_the_same_second_are_neither_skipped_nor_repeated(served: Served) -> None:
    made = {(await served.key())[0] for _ in range(5)}
    for limit in (1, 2, 4):
        assert sorted(key["key_id"] for key in await listed(served, limit)) == sorted(made)


async def test_a_key_made_while_a_list_is_read_moves_no_other(served: Served) -> None:
    for _ in range(3):
        await served.key()
        served.clock.advance(seconds=1)
    first = (await served.operator.get(f"{KEYS}?limit=2")).json()
    await served.key()
    second = (await served.operator.get(f"{KEYS}?limit=2&cursor={first['next_cursor']}")).json()
    assert len({key["key_id"] for key in (*first["data"], *second["data"])}) == 3
    assert second["next_cursor"] is None


async def test_a_list_shows_a_revocation_at_once_although_indexes_lag(lagging: Served) -> None:
    key_id, _ = await lagging.key()
    await lagging.operator.post(f"{KEYS}/{key_id}/revoke")
    for key in (await lagging.operator.get(KEYS)).json()["data"]:
        assert key["is_active"] is False


async def test_a_wrong_page_is_refused(shared: Served) -> None:
    for query, expected in [
        ("limit=0", (422, "invalid_input")),
        ("limit=201", (422, "invalid_input")),
        ("limit=x", (422, "invalid_input")),
        ("cursor=nonsense", (400, "invalid_cursor")),
    ]:
        answer = await shared.operator.get(f"{KEYS}?{query}")
        assert (answer.status, answer.code) == expected


@pytest.mark.parametrize(
    "key_id", [UNKNOWN_ID, UNKNOWN_ID.replace("-4890-", "-1890-"), "x", "%20", "..", "x" * 3000, "%C3%A4"]
)
async def test_a_key_that_is_not_there_is_404(shared: Served, key_id: str) -> None:
    shown = await shared.operator.get(f"{KEYS}/{key_id}")
    revoked = await shared.operator.post(f"{KEYS}/{key_id}/revoke")
    for answer in (shown, revoked):
        assert (answer.status, answer.code) == (404, "device_key_not_found")
    assert await shared.stored(TABLE, {"key_id": UNKNOWN_ID}) is None


# --- revoked ---------------------------------------------------------------------------------------


async def test_revoking_twice_is_no_error_and_changes_nothing_more(shared: Served) -> None:
    key_id, _ = await shared.key()
    before = await stored_key(shared, key_id)
    first = await shared.operator.post(f"{KEYS}/{key_id}/revoke")
    again = await shared.operator.post(f"{KEYS}/{key_id}/revoke")
    assert (first.status, first.json()["is_active"]) == (200, False)
    assert (again.status, again.json()) == (200, first.json())
    assert await stored_key(shared, key_id) == before | {"is_active": False}


async def test_a_revoked_key_is_refused_at_once_here_and_within_five_seconds_elsewhere(
    lagging: Served,
) -> None:
    hardware_id, other_items = await lagging.device(), await lagging.open_items()
    elsewhere = [lagging.another_node(), lagging.another_node(other_items)]
    key_id, raw = await lagging.key()
    for node in (lagging.node, *elsewhere):
        assert (await use(node, raw, hardware_id, lagging.now_ms)).status == 200
    lagging.clock.advance(seconds=3)
    await lagging.operator.post(f"{KEYS}/{key_id}/revoke")
    refused = await use(lagging.node, raw, hardware_id, lagging.now_ms)
    assert (refused.status, refused.code) == (401, "invalid_credential")
    for _ in range(5):  # however often it is used meanwhile
        for node in elsewhere:
            await use(node, raw, hardware_id, lagging.now_ms)
        lagging.clock.advance(seconds=1)
    for node in elsewhere:
        refused = await use(node, raw, hardware_id, lagging.now_ms)
        assert (refused.status, refused.code) == (401, "invalid_credential")


async def test_revoking_one_key_leaves_the_others(shared: Served) -> None:
    hardware_id = await shared.device()
    (revoked_id, _), (_, kept) = await shared.key(hardware_id), await shared.key(hardware_id)
    await shared.operator.post(f"{KEYS}/{revoked_id}/revoke")
    assert (await use(shared.node, kept, hardware_id, shared.now_ms)).status == 200


async def test_readings_sent_with_a_revoked_key_are_401_and_not_stored(shared: Served) -> None:
    hardware_id = await shared.device()
    key_id, raw = await shared.key()
    await shared.operator.post(f"{KEYS}/{key_id}/revoke")
    client = shared.operator.with_key(raw)
    for answer in (
        await use(shared.node, raw, hardware_id, shared.now_ms),
        await client.post(REGISTER, registration(new_hardware_id())),
        await client.get(KEYS),
    ):
        assert (answer.status, answer.code) == (401, "invalid_credential")
        assert answer.header("www-authenticate") is not None
    assert await shared.rows(hardware_id) == []


# --- used ------------------------------------------------------------------------------------------


async def test_a_bound_key_speaks_for_its_own_device_only(shared: Served) -> None:
    own, other = await shared.device(), await shared.device()
    key_id, raw = await shared.key(own)
    assert (await shared.operator.get(f"{KEYS}/{key_id}")).json()["hardware_id"] == own
    assert (await use(shared.node, raw, own, shared.now_ms)).status == 200
    client = shared.operator.with_key(raw)
    for answer in (
        await use(shared.node, raw, other, shared.now_ms),
        await use(shared.node, raw, new_hardware_id(), shared.now_ms),
        await client.post(REGISTER, registration(other)),
    ):
        assert (answer.status, answer.code) == (403, "key_bound_to_other_device")
    assert await shared.rows(other) == []


async def test_last_used_at_moves_at_most_every_five_minutes_whoever_is_asked(served: Served) -> None:
    hardware_id, elsewhere = await served.device(), served.another_node()
    key_id, raw = await served.key()
    began_ms = served.now_ms

    async def used_after(seconds: int, *nodes: Node) -> object:
        served.clock.advance(seconds=seconds)
        for node in nodes:
            assert (await use(node, raw, hardware_id, served.now_ms)).status == 200
        return (await stored_key(served, key_id)).get("last_used_at")

    assert await used_after(0) is None
    assert await used_after(0, served.node) == rfc3339(began_ms)
    assert await used_after(5 * MINUTE - 1, served.node, elsewhere) == rfc3339(began_ms)
    assert await used_after(1, served.node) == rfc3339(began_ms + 5 * MINUTE * 1000)
    assert await used_after(5 * MINUTE, elsewhere) == rfc3339(began_ms + 10 * MINUTE * 1000)
    shown = (await served.operator.get(f"{KEYS}/{key_id}")).json()
    assert shown["last_used_at"] == rfc3339(began_ms + 10 * MINUTE * 1000)


async def test_a_use_that_was_refused_is_none(shared: Served) -> None:
    key_id, raw = await shared.key(new_hardware_id())
    assert (await use(shared.node, raw, await shared.device(), shared.now_ms)).status == 403
    assert "last_used_at" not in await stored_key(shared, key_id)


async def test_using_a_key_does_not_bring_it_back(served: Served) -> None:
    """Another process may still know it when it notes the use."""
    hardware_id, elsewhere = await served.device(), served.another_node()
    key_id, raw = await served.key()
    served.clock.advance(seconds=5 * MINUTE)
    assert (await elsewhere.operator.with_key(raw).get(KEYS)).status == 403
    await served.operator.post(f"{KEYS}/{key_id}/revoke")
    assert (await use(elsewhere, raw, hardware_id, served.now_ms)).status == 200
    stored = await stored_key(served, key_id)
    assert (stored["is_active"], stored["last_used_at"]) == (False, rfc3339(served.now_ms))


# --- who may -----------------------------------------------------------------------------------------

CALLS = [
    ("POST", ""),
    ("GET", ""),
    ("GET", f"/{UNKNOWN_ID}"),
    ("POST", f"/{UNKNOWN_ID}/revoke"),
]


@pytest.mark.parametrize(("method", "path"), CALLS)
async def test_only_the_operator_may(shared: Served, method: str, path: str) -> None:
    body: object = {} if (method, path) == ("POST", "") else None
    for key, expected in [
        (await shared.any_key(), (403, "permission_denied")),
        (None, (401, "credential_required")),
        (uuid4().hex * 2, (401, "invalid_credential")),
        ("dk_nobody", (401, "invalid_credential")),
    ]:
        answer = await shared.operator.with_key(key).request(method, KEYS + path, json=body)
        assert (answer.status, answer.code) == expected
