"""Stripe's events move plans; usage is counted by the month."""

from __future__ import annotations

import asyncio
import hmac
import itertools
from typing import Any

import msgspec
import pytest
import stripe
from tests.support.asgi_client import Answer
from tests.support.hooks_accounts import STRIPE, USAGE, USERS, HoldingFirst, Node, Served

from crossdock.engines.items.port import Set
from crossdock.hooks.rules.usage import period_of
from crossdock.hooks.settings import HooksSettings
from crossdock.hooks.store.tables import MAIN, user_key
from crossdock.kit.clock import ms_from_rfc3339, rfc3339

SECRET = "whsec_of_the_tests"
SETTINGS = HooksSettings(
    stripe_webhook_secret=SECRET,
    stripe_prices=("price_s=starter", "price_p=pro", " price_t = team "),
    monthly_events_free=100,
    monthly_events_pro=1000,
)
DAY = 86_400

_customers = itertools.count(1)


def event(
    customer: str, at: int, price: str = "price_p", what: str = "updated", **changed: Any
) -> dict[str, Any]:
    """As Stripe sends it, with more in it than we read."""
    subscription = {
        "id": "sub_1",
        "object": "subscription",
        "customer": customer,
        "status": "canceled" if what == "deleted" else "active",
        "cancel_at_period_end": False,
        "items": {"object": "list", "data": [{"id": "si_1", "price": {"id": price, "unit_amount": 900}}]},
        **changed,
    }
    kind = f"customer.subscription.{what}"
    return {
        "id": "evt_1",
        "object": "event",
        "type": kind,
        "created": at,
        "livemode": False,
        "data": {"object": subscription},
    }


def signature(body: bytes, at: int, secret: str = SECRET) -> str:
    signed = f"{at}.".encode() + body
    return f"t={at},v1={hmac.digest(secret.encode(), signed, 'sha256').hex()}"


@pytest.fixture
def node(shared: Served) -> Node:
    return shared.another_node(SETTINGS)


async def send(served: Served, node: Node, sent: object, signed_with: str | None = None) -> Answer:
    body = sent if isinstance(sent, bytes) else msgspec.json.encode(sent)
    stamp = signature(body, served.now_ms // 1000) if signed_with is None else signed_with
    return await node.nobody.request("POST", STRIPE, body=body, headers={"stripe-signature": stamp})


async def outcome(served: Served, node: Node, sent: object) -> dict[str, Any]:
    answer = await send(served, node, sent)
    assert answer.status == 200, answer
    said: dict[str, Any] = answer.json()
    return said


async def customer_of(served: Served, **changed: Any) -> tuple[str, str]:
    """A new user's id, and the customer that it is."""
    customer = f"cus_{next(_customers)}"
    return (await served.user(stripe_customer_id=customer, **changed))["user_id"], customer


async def plan_of(served: Served, user_id: str) -> object:
    return (await served.stored_user(user_id))["plan"]


# --- who may say so --------------------------------------------------------------------------------


async def test_what_stripes_own_library_takes_for_signed_is_taken(shared: Served, node: Node) -> None:
    user_id, customer = await customer_of(shared)
    body, now = msgspec.json.encode(event(customer, shared.now_ms // 1000)), shared.now_ms // 1000
    stamp = signature(body, now)
    assert stripe.WebhookSignature.verify_header(body.decode(), stamp, SECRET, None)
    assert (await send(shared, node, body, stamp)).json() == {"applied": True, "plan": "pro"}
    assert await plan_of(shared, user_id) == "pro"


async def test_an_event_that_is_not_signed_or_too_old_is_401_and_moves_nothing(
    shared: Served, node: Node
) -> None:
    user_id, customer = await customer_of(shared)
    now = shared.now_ms // 1000
    body = msgspec.json.encode(event(customer, now))
    for stamp in (
        "",
        "t=1",
        "nonsense",
        signature(body, now, "whsec_wrong"),
        signature(body + b" ", now),
        signature(body, now).replace(f"t={now}", f"t={now - 1}"),
        signature(body, now - 301),
        signature(body, now + 301),
    ):
        answer = await send(shared, node, body, stamp)
        assert (answer.status, answer.code) == (401, "invalid_signature")
    assert await plan_of(shared, user_id) == "free"
    assert (await send(shared, node, body, signature(body, now - 300))).status == 200


async def test_no_credential_of_ours_is_needed_or_enough(shared: Served, node: Node) -> None:
    _, customer = await customer_of(shared)
    answer = await node.operator.post(STRIPE, event(customer, shared.now_ms // 1000))
    assert (answer.status, answer.code) == (401, "invalid_signature")


async def test_without_a_secret_in_the_settings_it_is_404(shared: Served) -> None:
    _, customer = await customer_of(shared)
    answer = await send(shared, shared.node, event(customer, shared.now_ms // 1000))
    assert (answer.status, answer.code) == (404, "billing_not_configured")


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"type": 7}', b'{"type": "customer.subscription.updated"}']
)
async def test_a_signed_body_that_is_no_event_is_400(shared: Served, node: Node, body: bytes) -> None:
    answer = await send(shared, node, body)
    assert (answer.status, answer.code) == (400, "malformed_event")


async def test_a_body_of_more_than_a_megabyte_is_413(shared: Served, node: Node) -> None:
    answer = await send(shared, node, b" " * 1_100_000)
    assert (answer.status, answer.code) == (413, "body_too_large")


# --- what becomes of it ----------------------------------------------------------------------------


async def test_an_event_moves_the_plan_and_is_remembered(served: Served) -> None:
    node = served.another_node(SETTINGS)
    user_id, customer = await customer_of(served)
    before, now = await served.stored_user(user_id), served.now_ms // 1000
    served.clock.advance(seconds=60)
    sent = event(customer, now, "price_t", "created")
    assert await outcome(served, node, sent) == {"applied": True, "plan": "team"}
    after = await served.stored_user(user_id)
    moved = {
        "plan": "team",
        "stripeSubId": "sub_1",
        "stripeEventAt": now,
        "updatedAt": rfc3339(served.now_ms),
    }
    assert after == before | moved
    assert await outcome(served, node, sent) == {"applied": True, "plan": "team"}
    assert await served.stored_user(user_id) == after


async def test_the_end_of_a_subscription_is_the_plan_free(shared: Served, node: Node) -> None:
    user_id, customer = await customer_of(shared)
    now = shared.now_ms // 1000
    for number, end in enumerate(
        [
            event(customer, now, what="deleted"),
            event(customer, now, status="canceled"),
            event(customer, now, status="unpaid"),
        ]
    ):
        start, end["created"] = now + 2 * number, now + 2 * number + 1
        assert (await outcome(shared, node, event(customer, start)))["plan"] == "pro"
        assert await outcome(shared, node, end) == {"applied": True, "plan": "free"}
        assert await plan_of(shared, user_id) == "free"


async def test_an_older_event_that_comes_late_moves_nothing(shared: Served, node: Node) -> None:
    user_id, customer = await customer_of(shared)
    now = shared.now_ms // 1000
    assert (await outcome(shared, node, event(customer, now, what="deleted")))["plan"] == "free"
    for late in (event(customer, now - 1), event(customer, now)):
        assert await outcome(shared, node, late) == {"applied": False, "reason": "older_event"}
    assert await plan_of(shared, user_id) == "free"
    assert (await outcome(shared, node, event(customer, now + 1)))["plan"] == "pro"


async def test_of_events_at_once_the_newest_has_the_last_word(shared: Served, node: Node) -> None:
    nodes = [node, shared.another_node(SETTINGS)]
    for _ in range(5):
        user_id, customer = await customer_of(shared)
        now = shared.now_ms // 1000
        sent = [
            event(customer, now, "price_s"),
            event(customer, now + 1, "price_t"),
            event(customer, now + 2, "price_p"),
            event(customer, now + 3, what="deleted"),
        ]
        answers = await asyncio.gather(*(send(shared, nodes[at % 2], each) for at, each in enumerate(sent)))
        assert {answer.status for answer in answers} == {200}
        assert await plan_of(shared, user_id) == "free"


async def test_an_event_that_was_being_decided_when_a_newer_one_was_applied_moves_nothing(
    shared: Served, node: Node
) -> None:
    user_id, customer = await customer_of(shared)
    now = shared.now_ms // 1000
    await outcome(shared, node, event(customer, now))
    holding = HoldingFirst(shared.items, lambda key: key.get("SK") == "PROFILE")
    late = asyncio.create_task(
        outcome(shared, shared.another_node(SETTINGS, holding), event(customer, now + 1, "price_t"))
    )
    await holding.is_held.wait()
    assert (await outcome(shared, node, event(customer, now + 2)))["plan"] == "pro"
    holding.may_go.set()
    assert await late == {"applied": False, "reason": "older_event"}
    assert await plan_of(shared, user_id) == "pro"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"price": "price_of_another_product"}, "unknown_price"),
        ({"customer": "cus_unknown"}, "unknown_customer"),
        ({"status": "incomplete"}, "not_paid_yet"),
        ({"what": "trial_will_end"}, "other_event"),
    ],
)
async def test_what_does_not_concern_us_is_200_and_says_why(
    shared: Served, node: Node, changed: dict[str, Any], reason: str
) -> None:
    user_id, customer = await customer_of(shared)
    sent = event(**{"customer": customer, "at": shared.now_ms // 1000, **changed})
    assert await outcome(shared, node, sent) == {"applied": False, "reason": reason}
    assert await plan_of(shared, user_id) == "free"


async def test_the_end_of_another_subscription_is_no_end(shared: Served, node: Node) -> None:
    user_id, customer = await customer_of(shared)
    now = shared.now_ms // 1000
    await outcome(shared, node, event(customer, now, id="sub_new"))
    end = event(customer, now + 1, what="deleted", id="sub_old")
    assert await outcome(shared, node, end) == {"applied": False, "reason": "other_subscription"}
    assert await plan_of(shared, user_id) == "pro"


async def test_a_customer_that_was_given_to_another_user_moves_that_one(shared: Served, node: Node) -> None:
    (one, customer), (two, _) = await customer_of(shared), await customer_of(shared)
    for user_id, value in [(one, None), (two, customer)]:
        body = {"stripe_customer_id": value}
        assert (await shared.operator.request("PATCH", f"{USERS}/{user_id}", json=body)).status == 200
    assert (await outcome(shared, node, event(customer, shared.now_ms // 1000)))["applied"]
    assert [await plan_of(shared, user_id) for user_id in (one, two)] == ["free", "pro"]


async def test_a_billing_period_that_begins_begins_the_usage_period(served: Served) -> None:
    node = served.another_node(SETTINGS)
    user_id, customer = await customer_of(served)
    await served.items.update(MAIN, user_key(user_id), Set("usageThisMonth", 70))
    served.clock.advance(seconds=10 * DAY)
    now = served.now_ms // 1000
    today = rfc3339(served.now_ms)[:10]
    await outcome(served, node, event(customer, now, current_period_start=now))
    stored = await served.stored_user(user_id)
    assert (stored["usagePeriodStart"], stored["usageThisMonth"]) == (today, 0)
    await served.items.update(MAIN, user_key(user_id), Set("usageThisMonth", 5))
    for start in (now, now - 5 * DAY, now + 5 * DAY):
        await outcome(served, node, event(customer, now + 1, current_period_start=start))
    stored = await served.stored_user(user_id)
    assert (stored["usagePeriodStart"], stored["usageThisMonth"]) == (today, 5)


# --- usage -----------------------------------------------------------------------------------------


async def test_usage_says_what_is_left_of_the_plan_this_month(served: Served) -> None:
    node = served.another_node(SETTINGS)
    user = await served.user(plan="pro")
    client = node.operator.with_key((await served.key(user["user_id"], "read"))["api_key"])
    period = period_of(user["usage_period_start"], served.now_ms)
    fresh = {
        "plan": "pro",
        "period_start": user["usage_period_start"],
        "period_end": period.end,
        "used": 0,
        "limit": 1000,
        "remaining": 1000,
    }
    for used, remaining in [(0, 1000), (999, 1), (1000, 0), (1234, 0)]:
        await served.items.update(MAIN, user_key(user["user_id"]), Set("usageThisMonth", used))
        expected = fresh | {"used": used, "remaining": remaining}
        for answer in (
            await client.get(USAGE),
            await node.operator.get(f"{USAGE}?user_id={user['user_id']}"),
        ):
            assert (answer.status, answer.json()) == (200, expected)
    served.clock.advance(ms=ms_from_rfc3339(f"{period.end}T00:00:00Z") - served.now_ms)
    later = (await client.get(USAGE)).json()
    assert (later["period_start"], later["used"], later["remaining"]) == (period.end, 0, 1000)


async def test_a_period_is_begun_once_however_many_come_at_once(served: Served) -> None:
    usage = [served.another_node().services.usage for _ in range(2)]
    user = await served.user()
    user_id, key = user["user_id"], user_key(user["user_id"])
    await served.items.update(MAIN, key, Set("usageThisMonth", 9))
    assert (await usage[0].roll_over(user_id)).usage_this_month == 9
    period = period_of(user["usage_period_start"], served.now_ms)
    served.clock.advance(ms=ms_from_rfc3339(f"{period.end}T00:00:00Z") - served.now_ms)
    rolled = await asyncio.gather(*(usage[number % 2].roll_over(user_id) for number in range(6)))
    assert {(each.usage_period_start, each.usage_this_month) for each in rolled} == {(period.end, 0)}
    await served.items.update(MAIN, key, Set("usageThisMonth", 3))
    assert (await usage[1].roll_over(user_id)).usage_this_month == 3


async def test_who_comes_late_to_a_new_period_does_not_begin_it_again(served: Served) -> None:
    user = await served.user()
    user_id, key = user["user_id"], user_key(user["user_id"])
    period = period_of(user["usage_period_start"], served.now_ms)
    served.clock.advance(ms=ms_from_rfc3339(f"{period.end}T00:00:00Z") - served.now_ms)
    holding = HoldingFirst(served.items, lambda key: key.get("SK") == "PROFILE")
    late = asyncio.create_task(served.another_node(items=holding).services.usage.roll_over(user_id))
    await holding.is_held.wait()
    await served.node.services.usage.roll_over(user_id)
    await served.items.update(MAIN, key, Set("usageThisMonth", 3))
    holding.may_go.set()
    assert (await late).usage_this_month == 3
