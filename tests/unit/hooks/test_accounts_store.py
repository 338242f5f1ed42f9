"""What is written of users, keys and sessions, compared with the contract attribute for attribute."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from crossdock.engines.items.apply import changed
from crossdock.engines.items.conditions import holds
from crossdock.engines.items.port import Delete, Failure, Item, Put, Refused, Update, Write
from crossdock.hooks.accounts_model import KEYS_MAX, OAuthProvider
from crossdock.hooks.model import ApiKey, KeyPermission, Plan, User
from crossdock.hooks.rules.billing import BillingState, PlanMove
from crossdock.hooks.store import accounts, credentials
from crossdock.hooks.store.guards import email_guard_key, guard, moved, taken
from crossdock.hooks.store.tables import MAIN, guard_key
from crossdock.kit.clock import ms_from_rfc3339

NOW = "2024-01-31T10:30:00Z"
NOW_MS = ms_from_rfc3339(NOW) + 999
LATER = "2024-02-01T00:00:00Z"
LATER_MS = ms_from_rfc3339(LATER)
USER_ID, KEY_ID = "usr_0123456789abcdef", "key_0123456789abcdef"
KEY_HASH = hashlib.sha256(b"x").hexdigest()

USER_RECORD: dict[str, Any] = {
    "PK": f"USER#{USER_ID}",
    "SK": "PROFILE",
    "GSI1PK": "EMAIL#ann@example.com",
    "GSI1SK": "USER",
    "GSI2PK": "USERS",
    "GSI2SK": f"{NOW}#{USER_ID}",
    "userId": USER_ID,
    "email": "Ann@Example.com",
    "name": "Ann",
    "passwordHash": None,
    "plan": "free",
    "usageThisMonth": 0,
    "usagePeriodStart": "2024-01-31",
    "createdAt": NOW,
    "updatedAt": NOW,
}
KEY_RECORD: dict[str, Any] = {
    "PK": f"USER#{USER_ID}",
    "SK": f"KEY#{KEY_ID}",
    "GSI2PK": f"KEYHASH#{KEY_HASH}",
    "GSI2SK": "KEY",
    "keyId": KEY_ID,
    "userId": USER_ID,
    "name": "Production",
    "keyHash": KEY_HASH,
    "keyPrefix": "fh_01234",
    "permissions": "read",
    "createdAt": NOW,
}
KEY = ApiKey(
    key_id=KEY_ID,
    user_id=USER_ID,
    name="Production",
    key_prefix="fh_01234",
    permissions=KeyPermission.READ,
    created_at=NOW,
)


def new_user(**given: Any) -> list[Write]:
    new = accounts.NewUser(user_id=USER_ID, email="Ann@Example.com", name="Ann", **given)
    return accounts.new_user(new, NOW_MS)


def user(**given: Any) -> User:
    put = new_user(**given)[0]
    assert isinstance(put, Put)
    return accounts.user_of(put.item)


def after(write: Write, item: Item) -> Item:
    """The item as the update leaves it."""
    assert isinstance(write, Update)
    assert holds(write.condition, item), write.condition
    return changed(item, write.key, write.changes)


def puts(writes: list[Write]) -> list[Item]:
    return [write.item for write in writes if isinstance(write, Put)]


# --- users -----------------------------------------------------------------------------------------


def test_a_new_user_has_the_attributes_of_the_contract_and_a_guard() -> None:
    record, email_guard = puts(new_user())
    assert record == USER_RECORD
    assert email_guard == {"PK": "EMAIL#ann@example.com", "SK": "UNIQUE", "userId": USER_ID}


@pytest.mark.parametrize(
    ("given", "attributes", "guards"),
    [
        ({"password_hash": "$2b$"}, {"passwordHash": "$2b$"}, []),
        ({"plan": Plan.TEAM}, {"plan": "team"}, []),
        ({"alert_url": "https://x.com"}, {"alertUrl": "https://x.com"}, []),
        ({"email_proven": True}, {"emailProven": True}, []),
        ({"stripe_customer_id": "cus_1"}, {"stripeCustomerId": "cus_1"}, ["STRIPE#cus_1"]),
        ({"link": (OAuthProvider.GITHUB, "7")}, {"githubId": "7"}, ["GITHUB#7"]),
        ({"link": (OAuthProvider.GOOGLE, "7")}, {"googleId": "7"}, ["GOOGLE#7"]),
    ],
)
def test_what_is_given_is_stored_and_guarded(
    given: dict[str, Any], attributes: dict[str, Any], guards: list[str]
) -> None:
    record, *found = puts(new_user(**given))
    assert record == USER_RECORD | attributes
    assert [item["PK"] for item in found] == ["EMAIL#ann@example.com", *guards]


def test_a_new_user_and_every_guard_is_put_only_if_absent() -> None:
    writes = new_user(stripe_customer_id="cus_1")
    assert len(writes) == 3
    for write in writes:
        assert isinstance(write, Put)
        assert holds(write.condition, None)
        assert not holds(write.condition, write.item)


def test_a_user_is_read_as_it_was_written_and_shows_no_hash() -> None:
    record = USER_RECORD | {
        "passwordHash": "$2b$secret",
        "githubId": "7",
        "googleId": "8",
        "stripeCustomerId": "cus_1",
        "alertUrl": "https://x.com",
        "usageThisMonth": 5.0,
        "keyCount": 3,
    }
    shown = accounts.user_of(record)
    assert shown == User(
        user_id=USER_ID,
        email="Ann@Example.com",
        name="Ann",
        plan=Plan.FREE,
        created_at=NOW,
        updated_at=NOW,
        usage_this_month=5,
        usage_period_start="2024-01-31",
        alert_url="https://x.com",
        has_password=True,
        github_id="7",
        google_id="8",
        stripe_customer_id="cus_1",
    )
    assert "$2b$" not in repr(shown)


CHANGES: list[tuple[dict[str, str | None], bool, dict[str, Any]]] = [
    ({"name": "Zoe"}, False, {"name": "Zoe"}),
    ({"plan": "pro"}, True, {"plan": "pro"}),
    ({"alert_url": "https://y.com"}, False, {"alertUrl": "https://y.com"}),
    ({"password_hash": "$2b$"}, False, {"passwordHash": "$2b$", "sessionEpoch": 1}),
    ({"email": "b@x.com"}, True, {"email": "b@x.com", "GSI1PK": "EMAIL#b@x.com", "emailProven": True}),
    ({"email": "ANN@example.com"}, False, {"email": "ANN@example.com", "emailProven": True}),
]


@pytest.mark.parametrize(("fields", "proven", "attributes"), CHANGES)
def test_a_change_sets_its_attributes_and_no_others(
    fields: dict[str, str | None], proven: bool, attributes: dict[str, Any]
) -> None:
    record = USER_RECORD | {"emailProven": True}
    write = accounts.user_changed(user(), fields, LATER_MS, email_proven=proven)[0]
    assert after(write, record) == record | attributes | {"updatedAt": LATER}


def test_who_changes_its_own_address_has_not_proven_the_new_one() -> None:
    record = USER_RECORD | {"emailProven": True}
    write = accounts.user_changed(user(), {"email": "b@x.com"}, LATER_MS, email_proven=False)[0]
    assert "emailProven" not in after(write, record)


def test_what_is_none_is_taken_away() -> None:
    before = user(stripe_customer_id="cus_1", alert_url="https://x.com")
    fields: dict[str, str | None] = {"stripe_customer_id": None, "alert_url": None}
    writes = accounts.user_changed(before, fields, LATER_MS, email_proven=True)
    record = USER_RECORD | {"stripeCustomerId": "cus_1", "alertUrl": "https://x.com"}
    assert after(writes[0], record) == USER_RECORD | {"updatedAt": LATER}
    assert [write.key for write in writes if isinstance(write, Delete)] == [guard_key("STRIPE", "cus_1")]


@pytest.mark.parametrize(
    ("fields", "record"),
    [
        ({"email": "b@x.com"}, {"email": "changed@x.com"}),
        ({"stripe_customer_id": "cus_2"}, {"stripeCustomerId": "cus_1"}),
    ],
)
def test_a_change_of_what_is_unique_holds_only_if_nobody_was_faster(
    fields: dict[str, str | None], record: dict[str, Any]
) -> None:
    write = accounts.user_changed(user(), fields, LATER_MS, email_proven=True)[0]
    assert isinstance(write, Update)
    assert holds(write.condition, USER_RECORD)
    assert not holds(write.condition, USER_RECORD | record)
    assert not holds(write.condition, None)


def test_linking_holds_for_a_proven_address_that_is_not_linked() -> None:
    proven = USER_RECORD | {"emailProven": True}
    update, link_guard = accounts.linked(user(), OAuthProvider.GITHUB, "7", LATER_MS)
    assert after(update, proven) == proven | {"githubId": "7", "updatedAt": LATER}
    assert isinstance(update, Update)
    for record in (USER_RECORD, proven | {"githubId": "8"}, proven | {"email": "other@x.com"}, None):
        assert not holds(update.condition, record)
    assert puts([link_guard]) == [{"PK": "GITHUB#7", "SK": "UNIQUE", "userId": USER_ID}]


def test_a_period_begins_once() -> None:
    used = USER_RECORD | {"usageThisMonth": 30}
    update = accounts.period_begun(user(), "2024-02-29", LATER_MS)
    begun = after(update, used)
    assert begun == used | {"usageThisMonth": 0, "usagePeriodStart": "2024-02-29", "updatedAt": LATER}
    assert not holds(update.condition, begun)
    assert not holds(update.condition, None)


@pytest.mark.parametrize(
    ("period_start", "attributes"),
    [(None, {}), ("2024-02-01", {"usagePeriodStart": "2024-02-01", "usageThisMonth": 0})],
)
def test_a_move_of_the_plan_holds_if_all_it_was_decided_by_is_as_it_was(
    period_start: str | None, attributes: dict[str, Any]
) -> None:
    record: Item = USER_RECORD | {"stripeCustomerId": "cus_1", "usageThisMonth": 9}
    state = accounts.billing_state_of(record)
    assert state == BillingState(Plan.FREE, "cus_1", None, None, "2024-01-31")
    move = PlanMove(Plan.PRO, "sub_1", 1_700_000_000, period_start)
    update = accounts.plan_moved(USER_ID, state, move, LATER_MS)
    told = {"plan": "pro", "stripeSubId": "sub_1", "stripeEventAt": 1_700_000_000, "updatedAt": LATER}
    moved_on = after(update, record)
    assert moved_on == record | told | attributes
    assert accounts.billing_state_of(moved_on).event_at == 1_700_000_000
    others: list[dict[str, Any]] = [
        {"plan": "team"},
        {"stripeCustomerId": "cus_2"},
        {"stripeSubId": "sub_0"},
        {"stripeEventAt": 1},
        {"usagePeriodStart": "2024-02-29"},
    ]
    for other in others:
        assert not holds(update.condition, record | other)


# --- guards ----------------------------------------------------------------------------------------


def test_a_value_that_stays_moves_nothing() -> None:
    for key in (None, email_guard_key("a@x.com")):
        assert moved(key, key, USER_ID) == []
    assert email_guard_key("A@X.com") == email_guard_key("a@x.com")


def test_a_guard_is_given_up_only_by_who_has_it() -> None:
    (write,) = moved(email_guard_key("a@x.com"), None, USER_ID)
    assert isinstance(write, Delete)
    item: Item = {**email_guard_key("a@x.com"), "userId": USER_ID}
    assert holds(write.condition, item)
    assert holds(write.condition, None)
    assert not holds(write.condition, item | {"userId": "usr_other"})


def test_a_refusal_says_which_value_is_taken() -> None:
    own, other = Failure(0, USER_RECORD), Failure(1, guard(guard_key("STRIPE", "cus_1"), "usr_other").item)
    assert taken(Refused((own,))) is None
    assert taken(Refused((Failure(0, None),))) is None
    assert taken(Refused((own, other))) == "STRIPE"


# --- keys and sessions -----------------------------------------------------------------------------


def test_a_new_key_has_the_attributes_of_the_contract_and_is_counted() -> None:
    counted, put = credentials.new_key(KEY, KEY_HASH)
    assert puts([put]) == [KEY_RECORD]
    assert after(counted, USER_RECORD) == USER_RECORD | {"keyCount": 1}
    assert isinstance(counted, Update)
    for count, allowed in [(0, True), (KEYS_MAX - 1, True), (KEYS_MAX, False)]:
        assert holds(counted.condition, USER_RECORD | {"keyCount": count}) is allowed
    assert not holds(counted.condition, None)


def test_a_key_is_read_as_it_was_written() -> None:
    assert credentials.key_of(KEY_RECORD) == KEY
    assert credentials.last_used_ms(KEY) is None
    used = credentials.key_of(KEY_RECORD | {"lastUsedAt": LATER})
    assert credentials.last_used_ms(used) == LATER_MS


@pytest.mark.parametrize(
    ("last_used_at", "allowed"),
    [(None, True), ("2024-01-31T23:55:00Z", True), ("2024-01-31T23:55:01Z", False), (LATER, False)],
)
def test_use_of_a_key_is_written_every_five_minutes(last_used_at: str | None, allowed: bool) -> None:
    record: Item = KEY_RECORD if last_used_at is None else KEY_RECORD | {"lastUsedAt": last_used_at}
    update = credentials.key_used(USER_ID, KEY_ID, LATER_MS)
    assert holds(update.condition, record) is allowed
    assert not holds(update.condition, None)
    assert changed(record, update.key, update.changes) == record | {"lastUsedAt": LATER}


def test_a_session_is_found_by_its_hash_and_expires() -> None:
    session = credentials.Session(USER_ID, 2, NOW_MS // 1000 + 86_400)
    put = credentials.new_session(KEY_HASH, session, NOW_MS)
    assert put.item == {
        "PK": f"SESSION#{KEY_HASH}",
        "SK": "SESSION",
        "userId": USER_ID,
        "sessionEpoch": 2,
        "createdAt": NOW,
        "expiresAt": NOW_MS // 1000 + 86_400,
    }
    assert MAIN.ttl == "expiresAt"
    assert credentials.session_of(put.item) == session
