"""Logins: begun with a password, ended, over after a day; and how many guesses are listened to."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re

import pytest
from tests.support.asgi_client import Answer
from tests.support.hooks_accounts import (
    KEYS,
    LOGIN,
    LOGOUT,
    ME,
    PASSWORD,
    USERS,
    HoldingFirst,
    Node,
    Served,
    new_email,
)

from crossdock.hooks.service.passwords import AT_ONCE, WAITING_MAX
from crossdock.hooks.store.tables import MAIN, session_key
from crossdock.kit.clock import rfc3339

MINUTE, HOUR = 60, 3600
TOKEN = re.compile(r"fhs_[A-Za-z0-9_-]{43}")


def hash_of(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


async def log_in(node: Node, email: str, password: str = PASSWORD) -> Answer:
    return await node.nobody.post(LOGIN, {"email": email, "password": password})


async def is_good(node: Node, token: str) -> bool:
    answer = await node.operator.with_key(token).get(ME)
    assert answer.status == 200 or (answer.status, answer.code) == (401, "invalid_credential")
    return answer.status == 200


# --- begun -----------------------------------------------------------------------------------------


async def test_a_login_is_a_token_for_a_day_and_only_its_hash_is_stored(served: Served) -> None:
    user = await served.user()
    answer = await log_in(served.node, user["email"].upper())
    assert answer.status == 200
    token, expires_ms = answer.json()["token"], served.now_ms + 24 * HOUR * 1000
    assert answer.json() == {"token": token, "expires_at": rfc3339(expires_ms)}
    assert TOKEN.fullmatch(token)
    stored = await served.items.get(MAIN, session_key(hash_of(token)))
    assert stored == {
        "PK": f"SESSION#{hash_of(token)}",
        "SK": "SESSION",
        "userId": user["user_id"],
        "sessionEpoch": 0,
        "createdAt": rfc3339(served.now_ms),
        "expiresAt": expires_ms // 1000,
    }
    me = await served.operator.with_key(token).get(ME)
    assert (me.status, me.json()) == (200, user)


async def test_a_login_may_all_that_its_user_may(shared: Served) -> None:
    user = await shared.user()
    client = shared.operator.with_key(await shared.token(user["email"]))
    assert (await client.request("PATCH", ME, json={"name": "New"})).status == 200
    assert (await client.post(KEYS, {"name": "k", "permissions": "admin"})).status == 201


async def test_a_login_works_at_once_everywhere_although_indexes_lag(lagging: Served) -> None:
    user = await lagging.user()
    token = await lagging.token(user["email"], node=lagging.another_node())
    assert await is_good(lagging.another_node(items=await lagging.open_items()), token)


async def test_a_repeat_under_one_idempotency_key_is_the_same_login(served: Served) -> None:
    user = await served.user()

    async def repeat(password: str = PASSWORD) -> Answer:
        body = {"email": user["email"], "password": password}
        return await served.nobody.post(LOGIN, body, headers={"idempotency-key": "mine"})

    first, again = await repeat(), await repeat()
    assert (again.status, again.json()) == (200, first.json())
    assert again.header("idempotency-replayed") == "true"
    assert (await repeat("wrong-password")).status == 401
    served.clock.advance(seconds=10 * MINUTE)
    assert (await repeat()).json() == first.json() | {"token": "***"}


# --- refused ---------------------------------------------------------------------------------------


async def test_a_wrong_password_and_an_unknown_address_are_one_answer(shared: Served) -> None:
    user = await shared.user()
    without = (await shared.operator.post(USERS, {"email": new_email(), "name": "No password"})).json()
    answers = [
        await log_in(shared.node, user["email"], PASSWORD + "!"),
        await log_in(shared.node, user["email"], ""),
        await log_in(shared.node, user["email"], "x" * 1000),
        await log_in(shared.node, new_email()),
        await log_in(shared.node, without["email"]),
        await log_in(shared.node, ""),
        await log_in(shared.node, "not an address"),
        await log_in(shared.node, "ä@example.com"),
    ]
    assert {(answer.status, answer.code, answer.body) for answer in answers} == {
        (401, "invalid_login", answers[0].body)
    }


@pytest.mark.parametrize(
    ("body", "field", "code"),
    [
        ({"email": "a@example.com"}, "password", "required"),
        ({"password": "x"}, "email", "required"),
        ({"email": "x" * 255, "password": "x"}, "email", "wrong_length"),
        ({"email": "a@example.com", "password": "x" * 1025}, "password", "wrong_length"),
        ({"email": "a@example.com", "password": "a\0b"}, "password", "nul_character"),
        ({"email": 7, "password": "x"}, "email", "wrong_type"),
        ({"email": "a@example.com", "password": "x", "otp": "1"}, "otp", "unknown_field"),
    ],
)
async def test_a_wrong_field_is_422_and_named(shared: Served, body: object, field: str, code: str) -> None:
    answer = await shared.nobody.post(LOGIN, body)
    assert (answer.status, answer.code, answer.fields) == (422, "invalid_input", [(field, code)])


@pytest.mark.parametrize("is_known", [True, False])
async def test_ten_failures_in_15_minutes_and_an_address_is_not_listened_to(
    served: Served, is_known: bool
) -> None:
    email = (await served.user())["email"] if is_known else new_email()
    for number in range(10):
        assert (await log_in(served.node, email, f"guess-{number}")).status == 401
        served.clock.advance(seconds=60)
    for password in (PASSWORD, "guess"):
        answer = await log_in(served.node, email.upper(), password)
        assert (answer.status, answer.code) == (429, "too_many_failures")
        assert answer.header("retry-after") == "300"
    served.clock.advance(seconds=300)
    expected = 200 if is_known else 401
    assert (await log_in(served.node, email)).status == expected


async def test_guesses_at_the_same_time_are_no_way_around(served: Served) -> None:
    email = (await served.user())["email"]
    answers = await asyncio.gather(*(log_in(served.node, email, f"guess-{each}") for each in range(15)))
    assert sorted(answer.status for answer in answers) == [401] * 10 + [429] * 5


async def test_right_passwords_are_no_failures_and_others_are_not_in_the_way(served: Served) -> None:
    user, other = await served.user(), await served.user()
    for _ in range(12):
        assert (await log_in(served.node, user["email"])).status == 200
    for _ in range(10):
        assert (await log_in(served.node, other["email"], "wrong")).status == 401
    assert (await log_in(served.node, user["email"])).status == 200


async def test_more_logins_at_once_than_can_be_worked_off_are_503_and_no_failures(served: Served) -> None:
    node = served.another_node(password_cost=10)
    emails = [new_email() for _ in range(3 * (AT_ONCE + WAITING_MAX))]
    answers = await asyncio.gather(*(log_in(node, email) for email in emails))
    busy = {email: answer for email, answer in zip(emails, answers, strict=True) if answer.status != 401}
    assert {(answer.status, answer.code, answer.header("retry-after")) for answer in busy.values()} == {
        (503, "logins_busy", "1")
    }
    email = next(iter(busy))
    assert [(await log_in(node, email)).status for _ in range(11)] == [401] * 10 + [429]


async def test_an_address_that_was_given_up_between_two_reads_lets_nobody_in(served: Served) -> None:
    user = await served.user()
    holding = HoldingFirst(served.items, lambda key: key.get("PK", "").startswith("EMAIL#"))
    late = asyncio.create_task(log_in(served.another_node(items=holding), user["email"]))
    await holding.is_held.wait()
    changed = await served.operator.request(
        "PATCH", f"{USERS}/{user['user_id']}", json={"email": new_email()}
    )
    assert changed.status == 200
    holding.may_go.set()
    assert (await late).status == 401


# --- ended -----------------------------------------------------------------------------------------


async def test_a_login_is_over_after_a_day_however_often_it_is_used(served: Served) -> None:
    token = await served.token((await served.user())["email"])
    served.clock.advance(seconds=24 * HOUR - 1)
    assert await is_good(served.node, token)
    served.clock.advance(seconds=1)
    assert not await is_good(served.node, token)


async def test_a_logout_ends_a_login_at_once_here_and_within_five_seconds_elsewhere(served: Served) -> None:
    user, elsewhere = await served.user(), served.another_node()
    token, kept = await served.token(user["email"]), await served.token(user["email"])
    for node in (served.node, elsewhere):
        assert await is_good(node, token)
    answer = await served.operator.with_key(token).post(LOGOUT)
    assert (answer.status, answer.body) == (204, b"")
    assert await served.items.get(MAIN, session_key(hash_of(token))) is None
    assert not await is_good(served.node, token)
    served.clock.advance(seconds=5)
    assert not await is_good(elsewhere, token)
    assert await is_good(elsewhere, kept)
    assert (await served.operator.with_key(token).post(LOGOUT)).status == 401


async def test_only_a_login_can_be_ended(shared: Served) -> None:
    client = await shared.client_of((await shared.user())["user_id"])
    for each, expected in [
        (client, (403, "not_a_session")),
        (shared.operator, (403, "not_a_session")),
        (shared.nobody, (401, "credential_required")),
        (shared.operator.with_key("fhs_" + "x" * 43), (401, "invalid_credential")),
        (shared.operator.with_key("fhs_short"), (401, "invalid_credential")),
    ]:
        answer = await each.post(LOGOUT)
        assert (answer.status, answer.code) == expected


@pytest.mark.parametrize("by_operator", [True, False])
async def test_a_new_password_ends_every_login_and_no_key(served: Served, by_operator: bool) -> None:
    user, elsewhere = await served.user(), served.another_node()
    tokens = [await served.token(user["email"]) for _ in range(2)]
    key = (await served.key(user["user_id"]))["api_key"]
    for node in (served.node, elsewhere):
        assert await is_good(node, tokens[0])
    client = served.operator if by_operator else served.operator.with_key(tokens[0])
    path = f"{USERS}/{user['user_id']}" if by_operator else ME
    assert (await client.request("PATCH", path, json={"password": "another password"})).status == 200
    assert [await is_good(served.node, token) for token in tokens] == [False, False]
    served.clock.advance(seconds=5)
    assert [await is_good(elsewhere, token) for token in tokens] == [False, False]
    assert await is_good(elsewhere, key)
    assert (await log_in(served.node, user["email"])).status == 401
    assert await is_good(elsewhere, await served.token(user["email"], "another password"))


async def test_a_token_is_in_no_log_line(shared: Served, caplog: pytest.LogCaptureFixture) -> None:
    user = await shared.user()
    with caplog.at_level(logging.DEBUG):
        token = await shared.token(user["email"])
        client = shared.operator.with_key(token)
        await client.get(USERS)
        await client.post(LOGOUT)
        assert not await is_good(shared.node, token)
    assert token not in caplog.text
