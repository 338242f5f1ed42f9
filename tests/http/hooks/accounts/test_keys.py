"""API keys: made and shown once, listed, deleted, and what each of them may do."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from typing import Any

import pytest
from tests.support.asgi_client import Answer
from tests.support.hooks_accounts import KEYS, ME, USAGE, HoldingFirst, Node, Served
from tests.support.passing_on import PassingOn

from crossdock.engines.items.port import Item, Items, Outcome, Transaction
from crossdock.hooks.accounts_model import KEYS_MAX
from crossdock.hooks.model import KeyPermission
from crossdock.http.principals import Principal
from crossdock.kit.clock import rfc3339
from crossdock.kit.errors import Forbidden

MINUTE = 60
RAW_KEY = re.compile(r"fh_[A-Za-z0-9_-]{43}")
KEY_ID = re.compile(r"key_[0-9A-Za-z_-]{16}")
UNKNOWN_ID = "key_0123456789abcdef"
UNKNOWN_USER = "usr_0123456789abcdef"


async def stored_key(served: Served, key: dict[str, Any]) -> Item:
    item = await served.stored_key(key["user_id"], key["key_id"])
    assert item is not None
    return item


async def delete(served: Served, key: dict[str, Any]) -> Answer:
    return await served.operator.request("DELETE", f"{KEYS}/{key['key_id']}?user_id={key['user_id']}")


async def use(node: Node, key: dict[str, Any]) -> Answer:
    return await node.operator.with_key(key["api_key"]).get(ME)


async def is_refused(node: Node, key: dict[str, Any]) -> bool:
    answer = await use(node, key)
    assert answer.status == 200 or (answer.status, answer.code) == (401, "invalid_credential")
    return answer.status == 401


# --- made ------------------------------------------------------------------------------------------


async def test_a_key_is_shown_once_and_stored_as_the_contract_says(shared: Served) -> None:
    user = await shared.user()
    body = {"name": "Production", "permissions": "write", "user_id": user["user_id"]}
    answer = await shared.operator.post(KEYS, body)
    assert answer.status == 201
    made, now = answer.json(), rfc3339(shared.now_ms)
    raw = made.pop("api_key")
    assert RAW_KEY.fullmatch(raw)
    assert KEY_ID.fullmatch(made["key_id"])
    shown = {
        **body,
        "key_id": made["key_id"],
        "key_prefix": raw[:8],
        "created_at": now,
        "last_used_at": None,
    }
    assert made == shown
    key_hash = hashlib.sha256(raw.encode()).hexdigest()
    assert await stored_key(shared, made) == {
        "PK": f"USER#{user['user_id']}",
        "SK": f"KEY#{made['key_id']}",
        "GSI2PK": f"KEYHASH#{key_hash}",
        "GSI2SK": "KEY",
        "keyId": made["key_id"],
        "userId": user["user_id"],
        "name": "Production",
        "keyHash": key_hash,
        "keyPrefix": raw[:8],
        "permissions": "write",
        "createdAt": now,
    }
    listed = await shared.operator.get(f"{KEYS}?user_id={user['user_id']}")
    assert listed.json() == {"data": [shown], "next_cursor": None}
    for secret in (raw, key_hash):
        assert secret.encode() not in listed.body


async def test_a_new_key_works_at_once_everywhere_although_indexes_lag(lagging: Served) -> None:
    user, elsewhere = await lagging.user(), lagging.another_node()
    key = await lagging.key(user["user_id"])
    for node in (elsewhere, lagging.node):
        assert (await use(node, key)).status == 200


async def test_a_raw_key_is_in_no_log_line(shared: Served, caplog: pytest.LogCaptureFixture) -> None:
    user = await shared.user()
    with caplog.at_level(logging.DEBUG):
        key = await shared.key(user["user_id"])
        assert (await use(shared.node, key)).status == 200
        await delete(shared, key)
        assert await is_refused(shared.node, key)
    assert key["api_key"] not in caplog.text


@pytest.mark.parametrize(
    ("changed", "field", "code"),
    [
        ({"name": ""}, "name", "wrong_format"),
        ({"name": "x" * 129}, "name", "wrong_format"),
        ({"name": None}, "name", "wrong_type"),
        ({"permissions": "all"}, "permissions", "not_a_choice"),
        ({"permissions": ["read"]}, "permissions", "wrong_type"),
        ({"user_id": 7}, "user_id", "wrong_type"),
        ({"user_id": None}, "user_id", "required"),
        ({"api_key": "fh_mine"}, "api_key", "unknown_field"),
    ],
)
async def test_a_wrong_field_is_422_and_named(
    shared: Served, changed: dict[str, Any], field: str, code: str
) -> None:
    user_id = (await shared.user())["user_id"]
    answer = await shared.operator.post(
        KEYS, {"name": "k", "permissions": "read", "user_id": user_id, **changed}
    )
    assert (answer.status, answer.code, answer.fields) == (422, "invalid_input", [(field, code)])


async def test_a_repeat_is_the_same_key_and_masked_after_ten_minutes(served: Served) -> None:
    user = await served.user()

    async def make(node: Node, name: str = "one") -> Answer:
        body = {"name": name, "permissions": "read", "user_id": user["user_id"]}
        return await node.operator.post(KEYS, body, headers={"idempotency-key": "mine"})

    first = await make(served.node)
    again = await make(served.another_node())
    assert (again.status, again.json(), again.header("idempotency-replayed")) == (201, first.json(), "true")
    other = await make(served.node, "two")
    assert (other.status, other.code) == (409, "idempotency_conflict")
    served.clock.advance(seconds=10 * MINUTE)
    assert (await make(served.node)).json() == first.json() | {"api_key": "***"}
    assert (await served.stored_user(user["user_id"]))["keyCount"] == 1


async def test_a_user_has_at_most_100_keys_however_many_are_made_at_once(served: Served) -> None:
    user = await served.user()
    made = []
    for _ in range(KEYS_MAX // 10 - 1):
        made += await asyncio.gather(*(served.key(user["user_id"]) for _ in range(10)))
    body = {"name": "k", "permissions": "read", "user_id": user["user_id"]}
    answers = await asyncio.gather(*(served.operator.post(KEYS, body) for _ in range(15)))
    assert sorted(answer.status for answer in answers) == [201] * 10 + [409] * 5
    assert {answer.code for answer in answers if answer.status == 409} == {"too_many_keys"}
    assert (await delete(served, made[0])).status == 204
    assert (await served.operator.post(KEYS, body)).status == 201
    assert (await served.operator.post(KEYS, body)).status == 409
    page = (await served.operator.get(f"{KEYS}?user_id={user['user_id']}&limit=200")).json()
    assert (len(page["data"]), page["next_cursor"]) == (KEYS_MAX, None)


# --- listed ----------------------------------------------------------------------------------------


async def test_keys_are_listed_newest_first_in_pages(served: Served) -> None:
    user, other = await served.user(), await served.user()
    made = []
    for number in range(6):
        made.append(await served.key(user["user_id"], "read"))
        await served.key(other["user_id"])
        served.clock.advance(seconds=number % 2)  # two of one second, too
    client = await served.client_of(user["user_id"])
    expected = {key["key_id"] for key in made}
    for limit in (1, 2, 4, 50):
        found: list[dict[str, Any]] = []
        cursor = ""
        while True:
            page = (await client.get(f"{KEYS}?limit={limit}{cursor}")).json()
            assert len(page["data"]) <= limit
            found += page["data"]
            if page["next_cursor"] is None:
                break
            cursor = f"&cursor={page['next_cursor']}"
        assert [key["created_at"] for key in found] == sorted((k["created_at"] for k in found), reverse=True)
        ids = [key["key_id"] for key in found]
        assert len(ids) == len(set(ids)) == 7
        assert expected < set(ids)


async def test_a_user_without_keys_has_an_empty_list(shared: Served) -> None:
    user = await shared.user()
    answer = await shared.operator.get(f"{KEYS}?user_id={user['user_id']}")
    assert (answer.status, answer.json()) == (200, {"data": [], "next_cursor": None})


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("limit=0", (422, "invalid_input")),
        ("limit=201", (422, "invalid_input")),
        ("cursor=nonsense", (400, "invalid_cursor")),
    ],
)
async def test_a_wrong_page_is_refused(shared: Served, query: str, expected: tuple[int, str]) -> None:
    client = await shared.client_of((await shared.user())["user_id"])
    answer = await client.get(f"{KEYS}?{query}")
    assert (answer.status, answer.code) == expected


# --- deleted ---------------------------------------------------------------------------------------


async def test_a_deleted_key_is_gone_and_its_neighbours_stay(shared: Served) -> None:
    user = await shared.user()
    key, kept = await shared.key(user["user_id"]), await shared.key(user["user_id"])
    assert (await delete(shared, key)).status == 204
    again = await delete(shared, key)
    assert (again.status, again.code) == (404, "key_not_found")
    assert await shared.stored_key(user["user_id"], key["key_id"]) is None
    assert not await is_refused(shared.node, kept)
    assert (await shared.stored_user(user["user_id"]))["keyCount"] == 1


async def test_deleted_twice_at_once_a_key_is_counted_once(served: Served) -> None:
    user = await served.user()
    key, _ = await served.key(user["user_id"]), await served.key(user["user_id"])
    answers = await asyncio.gather(*(delete(served, key) for _ in range(4)))
    assert sorted(answer.status for answer in answers) == [204, 404, 404, 404]
    assert (await served.stored_user(user["user_id"]))["keyCount"] == 1


async def test_a_deleted_key_is_refused_at_once_here_and_within_five_seconds_elsewhere(
    lagging: Served,
) -> None:
    user, other_items = await lagging.user(), await lagging.open_items()
    elsewhere = [lagging.another_node(), lagging.another_node(items=other_items)]
    key = await lagging.key(user["user_id"])
    for node in (lagging.node, *elsewhere):
        assert not await is_refused(node, key)
    lagging.clock.advance(seconds=3)
    await delete(lagging, key)
    assert await is_refused(lagging.node, key)
    for _ in range(5):  # however often it is used meanwhile
        for node in elsewhere:
            await use(node, key)
        lagging.clock.advance(seconds=1)
    for node in elsewhere:
        assert await is_refused(node, key)


async def test_a_key_deleted_while_it_is_being_read_is_not_brought_back(served: Served) -> None:
    user = await served.user()
    key = await served.key(user["user_id"])
    holding = HoldingFirst(served.items, lambda key: key.get("SK", "").startswith("KEY#"))
    node = served.another_node(items=holding)
    using = asyncio.create_task(use(node, key))
    await holding.is_held.wait()
    deleted = await node.operator.request("DELETE", f"{KEYS}/{key['key_id']}?user_id={user['user_id']}")
    assert deleted.status == 204
    holding.may_go.set()
    assert (await using).status == 200  # it came before
    assert await is_refused(node, key)


@pytest.mark.parametrize("key_id", [UNKNOWN_ID, "x", "%20", "..", "key_", "x" * 3000, "%C3%A4"])
async def test_a_key_that_is_not_there_is_404(shared: Served, key_id: str) -> None:
    user = await shared.user()
    answer = await shared.operator.request("DELETE", f"{KEYS}/{key_id}?user_id={user['user_id']}")
    assert (answer.status, answer.code) == (404, "key_not_found")


# --- used ------------------------------------------------------------------------------------------


async def test_last_used_at_moves_at_most_every_five_minutes_whoever_is_asked(served: Served) -> None:
    user, elsewhere = await served.user(), served.another_node()
    key = await served.key(user["user_id"])
    began_ms = served.now_ms

    async def used_after(seconds: int, *nodes: Node) -> object:
        served.clock.advance(seconds=seconds)
        for node in nodes:
            assert (await use(node, key)).status == 200
        return (await stored_key(served, key)).get("lastUsedAt")

    assert await used_after(0) is None
    assert await used_after(0, served.node) == rfc3339(began_ms)
    assert await used_after(5 * MINUTE - 1, served.node, elsewhere) == rfc3339(began_ms)
    assert await used_after(1, served.node, elsewhere) == rfc3339(began_ms + 5 * MINUTE * 1000)
    assert await used_after(5 * MINUTE, elsewhere) == rfc3339(began_ms + 10 * MINUTE * 1000)
    shown = (await served.operator.get(f"{KEYS}?user_id={user['user_id']}")).json()["data"]
    assert [each["last_used_at"] for each in shown] == [rfc3339(began_ms + 10 * MINUTE * 1000)]


class CountingWrites(PassingOn):
    def __init__(self, items: Items) -> None:
        super().__init__(items)
        self.count = 0

    async def transact(self, writes: Transaction) -> Outcome:
        self.count += 1
        return await super().transact(writes)


async def test_a_use_is_written_once_in_five_minutes_and_not_even_tried_more_often(served: Served) -> None:
    key = await served.key((await served.user())["user_id"])
    counting = CountingWrites(served.items)
    node = served.another_node(items=counting)
    for _ in range(10):
        for _ in range(3):
            assert (await use(node, key)).status == 200
        served.clock.advance(seconds=20)
    assert counting.count == 1


async def test_using_a_key_does_not_bring_it_back(served: Served) -> None:
    """Another process may still know it when it notes the use."""
    user, elsewhere = await served.user(), served.another_node()
    key = await served.key(user["user_id"])
    assert (await use(elsewhere, key)).status == 200
    served.clock.advance(seconds=5 * MINUTE - 2)
    assert (await use(elsewhere, key)).status == 200
    await delete(served, key)
    served.clock.advance(seconds=3)
    assert (await use(elsewhere, key)).status == 200
    assert await served.stored_key(user["user_id"], key["key_id"]) is None


# --- who may -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("permissions", "looks", "administers"), [("read", 200, 403), ("write", 200, 403), ("admin", 200, 200)]
)
async def test_a_key_may_what_its_permissions_say(
    shared: Served, permissions: str, looks: int, administers: int
) -> None:
    client = await shared.client_of((await shared.user())["user_id"], permissions)
    assert [(await client.get(target)).status for target in (ME, USAGE)] == [looks, looks]
    answers = [
        await client.get(KEYS),
        await client.request("PATCH", ME, json={"name": "x"}),
        await client.post(KEYS, {"name": "k", "permissions": "read"}),
        await client.request("DELETE", f"{KEYS}/{UNKNOWN_ID}"),
    ]
    if administers == 403:
        assert {(answer.status, answer.code) for answer in answers} == {(403, "permission_denied")}
    else:
        assert [answer.status for answer in answers] == [200, 200, 201, 404]


@pytest.mark.parametrize("permissions", list(KeyPermission))
async def test_no_key_may_do_more_than_who_makes_it(shared: Served, permissions: KeyPermission) -> None:
    user_id = (await shared.user())["user_id"]
    keeper = Principal("hooks_user", "key_0", user_id, frozenset({"hooks:admin"}))
    with pytest.raises(Forbidden):
        await shared.node.services.keys.create(keeper, user_id, "k", permissions, None)


async def test_a_user_makes_and_deletes_its_own_keys_only(shared: Served) -> None:
    own, other = await shared.user(), await shared.user()
    client, theirs = await shared.client_of(own["user_id"]), await shared.key(other["user_id"])
    made = await client.post(KEYS, {"name": "k", "permissions": "read"})
    assert (made.status, made.json()["user_id"]) == (201, own["user_id"])
    for user_id in (other["user_id"], UNKNOWN_USER):
        body = {"name": "k", "permissions": "read", "user_id": user_id}
        for answer in (
            await client.post(KEYS, body),
            await client.get(f"{KEYS}?user_id={user_id}"),
            await client.request("DELETE", f"{KEYS}/{theirs['key_id']}?user_id={user_id}"),
        ):
            assert (answer.status, answer.code) == (404, "user_not_found")
    answer = await client.request("DELETE", f"{KEYS}/{theirs['key_id']}")
    assert (answer.status, answer.code) == (404, "key_not_found")
    assert not await is_refused(shared.node, theirs)


async def test_the_operator_says_whose(shared: Served) -> None:
    for answer in (
        await shared.operator.get(KEYS),
        await shared.operator.post(KEYS, {"name": "k", "permissions": "read"}),
        await shared.operator.request("DELETE", f"{KEYS}/{UNKNOWN_ID}"),
        await shared.operator.get(USAGE),
    ):
        assert (answer.status, answer.fields) == (422, [("user_id", "required")])
    body = {"name": "k", "permissions": "read", "user_id": UNKNOWN_USER}
    for answer in (
        await shared.operator.post(KEYS, body),
        await shared.operator.get(f"{KEYS}?user_id={UNKNOWN_USER}"),
        await shared.operator.get(f"{USAGE}?user_id={UNKNOWN_USER}"),
    ):
        assert (answer.status, answer.code) == (404, "user_not_found")


@pytest.mark.parametrize(
    "credential", ["fh_" + "x" * 43, "fh_", "fh_" + "x" * 42, "fh_" + "x" * 44, "fh_" + "!" * 43, "fhx"]
)
async def test_what_is_no_key_is_401(shared: Served, credential: str) -> None:
    for target in (ME, KEYS, USAGE):
        answer = await shared.operator.with_key(credential).get(target)
        assert (answer.status, answer.code) == (401, "invalid_credential")
        assert answer.header("www-authenticate") is not None
