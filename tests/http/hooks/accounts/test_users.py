"""Users: made by the operator, or by themselves where sign-up is open; shown, listed, changed."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any

import bcrypt
import pytest
from tests.support.asgi_client import Answer
from tests.support.hooks_accounts import (
    KEYS,
    LOGIN,
    ME,
    OPEN,
    PASSWORD,
    USERS,
    Node,
    Served,
    new_email,
    new_user,
)

from crossdock.engines.items.port import Query
from crossdock.hooks.store.tables import MAIN, guard_key
from crossdock.hooks.store.tables import USERS as LISTED
from crossdock.http.idempotency import identify
from crossdock.http.idempotency_items import IDEMPOTENCY
from crossdock.http.principals import ALL_PERMISSIONS, Principal
from crossdock.kit.clock import rfc3339

MINUTE = 60
USER_ID = re.compile(r"usr_[0-9A-Za-z_-]{16}")
UNKNOWN_ID = "usr_0123456789abcdef"


async def guard_of(served: Served, kind: Any, value: str) -> object:
    item = await served.items.get(MAIN, guard_key(kind, value))
    return None if item is None else item["userId"]


async def count_of_users(served: Served) -> int:
    page = await served.items.query(Query(MAIN, LISTED, index="GSI2", limit=1000))
    return len(page.items)


# --- made ------------------------------------------------------------------------------------------


async def test_a_user_is_stored_as_the_contract_says_with_its_guards(shared: Served) -> None:
    email = new_email().replace("ann", "Ann")
    body = new_user(
        email=email, plan="pro", alert_url="https://example.com/alerts", stripe_customer_id="cus_1"
    )
    answer = await shared.operator.post(USERS, body)
    assert answer.status == 201
    user, now = answer.json(), rfc3339(shared.now_ms)
    assert USER_ID.fullmatch(user["user_id"])
    assert user == {
        "user_id": user["user_id"],
        "email": email,
        "name": "Ann",
        "plan": "pro",
        "created_at": now,
        "updated_at": now,
        "usage_this_month": 0,
        "usage_period_start": now[:10],
        "alert_url": "https://example.com/alerts",
        "has_password": True,
        "github_id": None,
        "google_id": None,
        "stripe_customer_id": "cus_1",
    }
    stored = await shared.stored_user(user["user_id"])
    password_hash = str(stored.pop("passwordHash"))
    assert bcrypt.checkpw(PASSWORD.encode(), password_hash.encode())
    assert stored == {
        "PK": f"USER#{user['user_id']}",
        "SK": "PROFILE",
        "GSI1PK": f"EMAIL#{email.lower()}",
        "GSI1SK": "USER",
        "GSI2PK": "USERS",
        "GSI2SK": f"{now}#{user['user_id']}",
        "userId": user["user_id"],
        "email": email,
        "name": "Ann",
        "plan": "pro",
        "stripeCustomerId": "cus_1",
        "usageThisMonth": 0,
        "usagePeriodStart": now[:10],
        "alertUrl": "https://example.com/alerts",
        "emailProven": True,
        "createdAt": now,
        "updatedAt": now,
    }
    assert await guard_of(shared, "EMAIL", email.lower()) == user["user_id"]
    assert await guard_of(shared, "STRIPE", "cus_1") == user["user_id"]
    shown = await shared.operator.get(f"{USERS}/{user['user_id']}")
    assert (shown.status, shown.json()) == (200, user)


async def test_what_was_not_given_takes_its_default(shared: Served) -> None:
    user = (await shared.operator.post(USERS, {"email": new_email(), "name": "B"})).json()
    assert (user["plan"], user["has_password"], user["alert_url"]) == ("free", False, None)
    stored = await shared.stored_user(user["user_id"])
    assert stored["passwordHash"] is None
    assert stored.keys().isdisjoint({"alertUrl", "stripeCustomerId", "githubId", "googleId"})


@pytest.mark.parametrize("change", [str, str.upper, str.title])
async def test_an_email_address_is_one_users_in_any_case_of_its_letters(shared: Served, change: Any) -> None:
    user = await shared.user()
    answer = await shared.operator.post(USERS, new_user(email=change(user["email"])))
    assert (answer.status, answer.code) == (409, "email_taken")


async def test_a_stripe_customer_is_one_user(shared: Served) -> None:
    await shared.user(stripe_customer_id="cus_one")
    body = new_user(stripe_customer_id="cus_one")
    answer = await shared.operator.post(USERS, body)
    assert (answer.status, answer.code) == (409, "stripe_customer_taken")
    assert await guard_of(shared, "EMAIL", body["email"]) is None


async def test_of_two_sign_ups_with_one_address_at_once_one_is_made(lagging: Served) -> None:
    nodes = [lagging.another_node(OPEN), lagging.another_node(OPEN, await lagging.open_items())]
    email = new_email()
    bodies = [new_user(email=email), new_user(email=email.upper())]
    answers = await asyncio.gather(
        *(node.nobody.post(USERS, body) for node, body in zip(nodes, bodies, strict=True))
    )
    assert sorted(answer.status for answer in answers) == [201, 409]
    made = next(answer.json() for answer in answers if answer.status == 201)
    assert next(answer.code for answer in answers if answer.status == 409) == "email_taken"
    assert await guard_of(lagging, "EMAIL", email) == made["user_id"]
    await lagging.token(email)


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"email": "ann"}, "email", "wrong_format"),
    ({"email": "ann@"}, "email", "wrong_format"),
    ({"email": "a nn@example.com"}, "email", "wrong_format"),
    ({"email": "ann@example.com\n"}, "email", "wrong_format"),
    ({"email": "a@b@example.com"}, "email", "wrong_format"),
    ({"email": "än@example.com"}, "email", "wrong_format"),
    ({"email": "\u212aate@example.com"}, "email", "wrong_format"),
    ({"email": "a" * 65 + "@example.com"}, "email", "wrong_format"),
    ({"email": "ann@" + "a" * 190}, "email", "wrong_format"),
    ({"email": None}, "email", "wrong_type"),
    ({"name": ""}, "name", "wrong_format"),
    ({"name": "x" * 129}, "name", "wrong_format"),
    ({"name": "a\x1bb"}, "name", "wrong_format"),
    ({"name": "a\0b"}, "name", "wrong_format"),
    ({"password": "seven77"}, "password", "wrong_length"),
    ({"password": "x" * 73}, "password", "wrong_length"),
    ({"password": "ä" * 37}, "password", "wrong_length"),
    ({"password": "x" * 1025}, "password", "wrong_length"),
    ({"password": 12345678}, "password", "wrong_type"),
    ({"alert_url": "ftp://example.com"}, "alert_url", "invalid_url"),
    ({"alert_url": "example.com"}, "alert_url", "invalid_url"),
    ({"alert_url": "https://u:p@example.com"}, "alert_url", "invalid_url"),
    ({"alert_url": "https://exa mple.com"}, "alert_url", "invalid_url"),
    ({"alert_url": "https://example.com/" + "x" * 2048}, "alert_url", "wrong_length"),
    ({"plan": "gold"}, "plan", "not_a_choice"),
    ({"stripe_customer_id": ""}, "stripe_customer_id", "wrong_format"),
    ({"stripe_customer_id": "cus#1"}, "stripe_customer_id", "wrong_format"),
    ({"github_id": "1"}, "github_id", "unknown_field"),
    ({"usage_this_month": 0}, "usage_this_month", "unknown_field"),
]


@pytest.mark.parametrize(("changed", "field", "code"), WRONG)
async def test_a_wrong_field_is_422_and_named(
    shared: Served, changed: dict[str, Any], field: str, code: str
) -> None:
    made = await shared.operator.post(USERS, new_user(**changed))
    user_id = (await shared.user())["user_id"]
    changing = await shared.operator.request("PATCH", f"{USERS}/{user_id}", json=changed)
    for answer in (made, changing):
        assert (answer.status, answer.fields) == (422, [(field, code)])
        assert answer.code in ("invalid_input", "invalid_url")


@pytest.mark.parametrize("missing", ["email", "name"])
async def test_a_missing_field_is_422(shared: Served, missing: str) -> None:
    body = {name: value for name, value in new_user().items() if name != missing}
    answer = await shared.operator.post(USERS, body)
    assert (answer.status, answer.fields) == (422, [(missing, "required")])


async def test_a_body_that_can_not_be_read_is_refused_by_what_is_wrong_with_it(shared: Served) -> None:
    for path in (USERS, LOGIN, KEYS):
        for body, headers, expected in [
            (b"", {}, (400, "body_required")),
            (b'{"email": ', {}, (400, "malformed_json")),
            (b'{"email": "' + b"x" * 1_100_000 + b'"}', {}, (413, "body_too_large")),
            (b"{}", {"content-type": "text/csv"}, (415, "unsupported_media_type")),
        ]:
            answer = await shared.operator.request("POST", path, body=body, headers=headers)
            assert (answer.status, answer.code) == expected


@pytest.mark.parametrize("password", ["x" * 8, "x" * 72, "ä" * 36, "  spaces  "])
async def test_a_password_of_8_to_72_bytes_logs_in_and_no_other_does(shared: Served, password: str) -> None:
    user = await shared.user(password=password)
    await shared.token(user["email"], password)
    for wrong in (password[:-1], password + "x", password.strip() + "y"):
        answer = await shared.nobody.post(LOGIN, {"email": user["email"], "password": wrong})
        assert answer.status == 401


async def test_a_password_is_in_no_answer_and_no_log_line(
    shared: Served, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "unmistakable-password"
    with caplog.at_level(logging.DEBUG):
        made = await shared.operator.post(USERS, new_user(password=secret))
        user = made.json()
        answers = [
            made,
            await shared.operator.post(USERS, new_user(email=user["email"], password=secret)),
            await shared.operator.post(USERS, new_user(password=secret + "x" * 72)),
            await shared.operator.post(USERS, new_user(password=[secret])),
            await shared.nobody.post(LOGIN, {"email": user["email"], "password": secret}),
            await shared.nobody.post(LOGIN, {"email": new_email(), "password": secret}),
            await shared.operator.request("PATCH", f"{USERS}/{user['user_id']}", json={"password": secret}),
        ]
    stored_hash = str((await shared.stored_user(user["user_id"]))["passwordHash"])
    assert secret not in caplog.text
    assert stored_hash not in caplog.text
    for answer in answers:
        assert secret.encode() not in answer.body
        assert b"$2b$" not in answer.body


# --- Idempotency-Key -------------------------------------------------------------------------------


async def make(node: Node, body: dict[str, Any], *, by_operator: bool = True) -> Answer:
    client = node.operator if by_operator else node.nobody
    return await client.post(USERS, body, headers={"idempotency-key": "mine"})


@pytest.mark.parametrize("by_operator", [True, False])
async def test_a_repeat_is_the_same_user(served: Served, by_operator: bool) -> None:
    nodes = [served.another_node(OPEN), served.another_node(OPEN)]
    body = new_user()
    first, again = [await make(node, body, by_operator=by_operator) for node in nodes]
    assert (first.status, first.header("idempotency-replayed")) == (201, None)
    assert (again.status, again.json()) == (201, first.json())
    assert again.header("idempotency-replayed") == "true"
    other = await make(nodes[0], {**body, "password": PASSWORD + "!"}, by_operator=by_operator)
    assert (other.status, other.code) == (409, "idempotency_conflict")
    assert await count_of_users(served) == 1


async def test_strangers_who_sign_up_with_one_idempotency_key_are_not_in_each_others_way(
    served: Served,
) -> None:
    node = served.another_node(OPEN)
    for _ in range(2):
        assert (await make(node, new_user(), by_operator=False)).status == 201
    assert await count_of_users(served) == 2


async def test_what_is_kept_of_a_request_is_as_slow_to_search_for_its_password(served: Served) -> None:
    """The digest of a body whose rest is known would tell a weak password in no time."""
    await make(served.node, new_user())
    operator = Principal("operator", "operator", None, ALL_PERMISSIONS)
    request = identify(operator, method="POST", path=USERS, query=b"", key="mine", body=b"")
    record = await served.items.get(IDEMPOTENCY, {"scope": request.scope})
    assert record is not None
    assert str(record["request_sha256"]).startswith("$2b$")


# --- sign-up ---------------------------------------------------------------------------------------


async def test_nobody_signs_up_where_it_is_closed(shared: Served) -> None:
    for client, expected in [
        (shared.nobody, (401, "credential_required")),
        (shared.operator.with_key("fh_" + "x" * 43), (401, "invalid_credential")),
        (await shared.client_of((await shared.user())["user_id"]), (403, "permission_denied")),
    ]:
        for body in (new_user(), {"email": 7}):
            answer = await client.post(USERS, body)
            assert (answer.status, answer.code) == expected


async def test_anybody_signs_up_where_it_is_open(shared: Served) -> None:
    client = shared.another_node(OPEN).nobody
    body = new_user()
    answer = await client.post(USERS, body)
    assert (answer.status, answer.json()["plan"]) == (201, "free")
    token = await shared.token(body["email"])
    me = await shared.operator.with_key(token).get(ME)
    assert (me.status, me.json()) == (200, answer.json())


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"plan": "team"}, (403, "operator_only")),
        ({"plan": "free"}, (403, "operator_only")),
        ({"stripe_customer_id": "cus_2"}, (403, "operator_only")),
        ({"password": None}, (422, "invalid_input")),
    ],
)
async def test_who_signs_up_gives_a_password_and_no_plan(
    shared: Served, changed: dict[str, Any], expected: tuple[int, str]
) -> None:
    answer = await shared.another_node(OPEN).nobody.post(USERS, new_user(**changed))
    assert (answer.status, answer.code) == expected


async def test_a_credential_is_judged_where_sign_up_is_open_too(shared: Served) -> None:
    node = shared.another_node(OPEN)
    key = await shared.key((await shared.user())["user_id"])
    for raw, expected in [
        (key["api_key"], (403, "permission_denied")),
        ("fh_" + "x" * 43, (401, "invalid_credential")),
    ]:
        answer = await node.operator.with_key(raw).post(USERS, new_user())
        assert (answer.status, answer.code) == expected
    assert (await node.operator.post(USERS, new_user(plan="team"))).json()["plan"] == "team"


# --- listed and shown ------------------------------------------------------------------------------


async def listed(served: Served, limit: int) -> list[dict[str, Any]]:
    """Every page, followed to the end."""
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = (await served.operator.get(f"{USERS}?limit={limit}{cursor}")).json()
        assert len(page["data"]) <= limit
        found += page["data"]
        if page["next_cursor"] is None:
            return found
        cursor = f"&cursor={page['next_cursor']}"


async def test_users_are_listed_newest_first_in_pages(served: Served) -> None:
    made = []
    for _ in range(5):
        made.append(await served.user())
        served.clock.advance(seconds=1)
    for limit in (1, 2, 5, 50):
        assert await listed(served, limit) == made[::-1]


async def test_users_of_the_same_second_are_neither_skipped_nor_repeated(served: Served) -> None:
    made = {(await served.user())["user_id"] for _ in range(5)}
    for limit in (1, 2, 4):
        assert sorted(user["user_id"] for user in await listed(served, limit)) == sorted(made)


async def test_a_list_shows_a_change_at_once_although_indexes_lag(lagging: Served) -> None:
    user = await lagging.user()
    await asyncio.sleep(0.6)  # until the index knows the user, by its old name
    await lagging.operator.request("PATCH", f"{USERS}/{user['user_id']}", json={"name": "New"})
    assert [each["name"] for each in await listed(lagging, 5)] == ["New"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("limit=0", (422, "invalid_input")),
        ("limit=201", (422, "invalid_input")),
        ("cursor=nonsense", (400, "invalid_cursor")),
        ("cursor=WzEseyJjcmVhdGVkX2F0IjoieCIsInVzZXJfaWQiOiJ4In1d", (400, "invalid_cursor")),
    ],
)
async def test_a_wrong_page_is_refused(shared: Served, query: str, expected: tuple[int, str]) -> None:
    answer = await shared.operator.get(f"{USERS}?{query}")
    assert (answer.status, answer.code) == expected


@pytest.mark.parametrize("user_id", [UNKNOWN_ID, "x", "%20", "..", "usr_", "x" * 3000, "%C3%A4"])
async def test_a_user_that_is_not_there_is_404(shared: Served, user_id: str) -> None:
    for answer in (
        await shared.operator.get(f"{USERS}/{user_id}"),
        await shared.operator.request("PATCH", f"{USERS}/{user_id}", json={"name": "x"}),
        await shared.operator.request("PATCH", f"{USERS}/{user_id}", json={"password": PASSWORD}),
        await shared.operator.request("PATCH", f"{USERS}/{user_id}", json={}),
        await shared.operator.get(f"{ME}?user_id={user_id}"),
        await shared.operator.get(f"{KEYS}?user_id={user_id}"),
    ):
        assert (answer.status, answer.code) == (404, "user_not_found")


@pytest.mark.parametrize(
    ("method", "path"), [("GET", USERS), ("GET", f"{USERS}/{UNKNOWN_ID}"), ("PATCH", f"{USERS}/{UNKNOWN_ID}")]
)
async def test_users_are_the_operators(shared: Served, method: str, path: str) -> None:
    user = await shared.user()
    body: object = {"name": "x"} if method == "PATCH" else None
    for key, expected in [
        ((await shared.key(user["user_id"]))["api_key"], (403, "permission_denied")),
        (await shared.token(user["email"]), (403, "permission_denied")),
        (None, (401, "credential_required")),
        ("fhs_" + "x" * 43, (401, "invalid_credential")),
    ]:
        answer = await shared.operator.with_key(key).request(method, path, json=body)
        assert (answer.status, answer.code) == expected


# --- changed ---------------------------------------------------------------------------------------


async def change(served: Served, user_id: str, **fields: object) -> Answer:
    return await served.operator.request("PATCH", f"{USERS}/{user_id}", json=fields)


async def test_only_the_fields_given_change(served: Served) -> None:
    user = await served.user(alert_url="https://example.com/a")
    served.clock.advance(seconds=5)
    changed = user | {"updated_at": rfc3339(served.now_ms)}
    changes: list[dict[str, Any]] = [
        {"name": "Zoe"},
        {"plan": "team"},
        {"alert_url": "https://example.com/b"},
        {"alert_url": None},
    ]
    for fields in changes:
        changed |= fields
        answer = await change(served, user["user_id"], **fields)
        assert (answer.status, answer.json()) == (200, changed)
    assert "alertUrl" not in await served.stored_user(user["user_id"])
    assert (await change(served, user["user_id"])).json() == changed


async def test_a_changed_address_moves_its_guard_and_the_old_one_is_free_again(served: Served) -> None:
    user, email = await served.user(), new_email()
    answer = await change(served, user["user_id"], email=email)
    assert (answer.status, answer.json()["email"]) == (200, email)
    assert (await served.stored_user(user["user_id"]))["GSI1PK"] == f"EMAIL#{email}"
    await served.token(email)
    gone = await served.nobody.post(LOGIN, {"email": user["email"], "password": PASSWORD})
    assert gone.status == 401
    assert (await served.operator.post(USERS, new_user(email=user["email"]))).status == 201


async def test_an_address_may_change_its_case(served: Served) -> None:
    user = await served.user()
    answer = await change(served, user["user_id"], email=user["email"].upper())
    assert (answer.status, answer.json()["email"]) == (200, user["email"].upper())
    assert await guard_of(served, "EMAIL", user["email"]) == user["user_id"]


async def test_an_address_of_somebody_else_is_409_and_changes_nothing(served: Served) -> None:
    one, two = await served.user(), await served.user()
    answer = await change(served, one["user_id"], email=two["email"].upper(), name="Changed")
    assert (answer.status, answer.code) == (409, "email_taken")
    assert (await served.operator.get(f"{USERS}/{one['user_id']}")).json() == one
    assert await guard_of(served, "EMAIL", one["email"]) == one["user_id"]


async def test_a_stripe_customer_moves_is_taken_and_taken_away(served: Served) -> None:
    one, two = await served.user(stripe_customer_id="cus_a"), await served.user()
    refused = await change(served, two["user_id"], stripe_customer_id="cus_a")
    assert (refused.status, refused.code) == (409, "stripe_customer_taken")
    assert (await change(served, one["user_id"], stripe_customer_id="cus_b")).status == 200
    assert (await change(served, two["user_id"], stripe_customer_id="cus_a")).status == 200
    assert (await change(served, one["user_id"], stripe_customer_id=None)).status == 200
    assert await guard_of(served, "STRIPE", "cus_a") == two["user_id"]
    assert await guard_of(served, "STRIPE", "cus_b") is None


async def test_of_two_users_who_want_one_address_at_once_one_gets_it(served: Served) -> None:
    one, two, email = await served.user(), await served.user(), new_email()
    answers = await asyncio.gather(*(change(served, user["user_id"], email=email) for user in (one, two)))
    assert sorted(answer.status for answer in answers) == [200, 409]
    winner, loser = (one, two) if answers[0].status == 200 else (two, one)
    assert await guard_of(served, "EMAIL", email) == winner["user_id"]
    assert await guard_of(served, "EMAIL", loser["email"]) == loser["user_id"]
    assert await guard_of(served, "EMAIL", winner["email"]) is None


async def test_of_a_users_two_new_addresses_at_once_one_stays_and_has_the_guard(served: Served) -> None:
    user, wanted = await served.user(), [new_email() for _ in range(4)]
    answers = await asyncio.gather(*(change(served, user["user_id"], email=email) for email in wanted))
    assert {answer.status for answer in answers} <= {200, 409}
    email = (await served.operator.get(f"{USERS}/{user['user_id']}")).json()["email"]
    assert email in wanted
    for each in (user["email"], *wanted):
        assert await guard_of(served, "EMAIL", each) == (user["user_id"] if each == email else None)


# --- me --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("permissions", ["read", "write", "admin"])
async def test_a_key_shows_its_own_user(shared: Served, permissions: str) -> None:
    user = await shared.user()
    client = await shared.client_of(user["user_id"], permissions)
    for target in (ME, f"{ME}?user_id={user['user_id']}"):
        answer = await client.get(target)
        assert (answer.status, answer.json()) == (200, user)
    changing = await client.request("PATCH", ME, json={"name": "Me"})
    assert changing.status == (200 if permissions == "admin" else 403)


async def test_another_user_is_404_as_if_it_were_not_there(shared: Served) -> None:
    one, two = await shared.user(), await shared.user()
    client = await shared.client_of(one["user_id"])
    for user_id in (two["user_id"], UNKNOWN_ID, ""):
        for method in ("GET", "PATCH"):
            body: object = {"name": "x"} if method == "PATCH" else None
            answer = await client.request(method, f"{ME}?user_id={user_id}", json=body)
            assert (answer.status, answer.code) == (404, "user_not_found")
    assert (await shared.operator.get(f"{USERS}/{two['user_id']}")).json() == two


async def test_the_operator_says_which_user(shared: Served) -> None:
    user = await shared.user()
    assert (await shared.operator.get(f"{ME}?user_id={user['user_id']}")).json() == user
    answer = await shared.operator.get(ME)
    assert (answer.status, answer.fields) == (422, [("user_id", "required")])


async def test_a_user_changes_itself_but_not_its_plan(shared: Served) -> None:
    user, email = await shared.user(), new_email()
    client = await shared.client_of(user["user_id"])
    fields = {"name": "Bob", "email": email, "alert_url": "https://example.com/"}
    answer = await client.request("PATCH", ME, json=fields)
    assert (answer.status, answer.json()) == (
        200,
        user | fields | {"updated_at": answer.json()["updated_at"]},
    )
    for field in ("plan", "stripe_customer_id"):
        refused = await client.request("PATCH", ME, json={field: "team"})
        assert (refused.status, refused.fields) == (422, [(field, "unknown_field")])


async def test_the_api_describes_itself(shared: Served) -> None:
    answer = await shared.nobody.get("/openapi.json")
    assert answer.status == 200
    paths = {path for path in answer.json()["paths"] if path.startswith("/v1/hooks")}
    assert paths == {
        "/v1/hooks/users",
        "/v1/hooks/users/{user_id}",
        "/v1/hooks/me",
        "/v1/hooks/keys",
        "/v1/hooks/keys/{key_id}",
        "/v1/hooks/login",
        "/v1/hooks/logout",
        "/v1/hooks/oauth/{provider}/start",
        "/v1/hooks/oauth/{provider}/callback",
        "/v1/hooks/usage",
        "/v1/hooks/billing/stripe",
    }
