"""What Stripe's events make of a plan: read, and decided."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.hooks.model import Plan
from crossdock.hooks.rules.billing import (
    BillingState,
    Ignored,
    PlanMove,
    SubscriptionEvent,
    decide,
    parse_prices,
    read_event,
)
from crossdock.kit.clock import ms_from_rfc3339
from crossdock.kit.configuration import SettingsError
from crossdock.kit.errors import MalformedRequest

PRICES = {"price_s": Plan.STARTER, "price_p": Plan.PRO, "price_t": Plan.TEAM}
MARCH_10 = ms_from_rfc3339("2024-03-10T22:00:00Z") // 1000


def body(what: str = "updated", prices: tuple[str, ...] = ("price_p",), **changed: Any) -> bytes:
    subscription = {
        "id": "sub_1",
        "customer": "cus_1",
        "status": "active",
        "items": {"data": [{"price": {"id": price}} for price in prices]},
        **changed,
    }
    event = {"type": f"customer.subscription.{what}", "created": 1000, "data": {"object": subscription}}
    return msgspec.json.encode(event)


# --- prices ----------------------------------------------------------------------------------------


def test_prices_are_read_from_the_setting() -> None:
    assert parse_prices(("price_s=starter", " price_t = team ")) == {
        "price_s": Plan.STARTER,
        "price_t": Plan.TEAM,
    }
    assert parse_prices(()) == {}


@pytest.mark.parametrize("entry", ["price_s", "price_s=gold", "=team", "price_s=", "price_s==team"])
def test_a_price_without_a_plan_is_told_at_start(entry: str) -> None:
    with pytest.raises(SettingsError, match="CROSSDOCK_HOOKS_STRIPE_PRICES"):
        parse_prices(("price_p=pro", entry))


# --- reading ---------------------------------------------------------------------------------------

PRO = SubscriptionEvent(1000, "cus_1", "sub_1", Plan.PRO)
ENDED = replace(PRO, plan=None)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (body("created"), PRO),
        (body("updated"), PRO),
        (body("deleted"), ENDED),
        (body(status="trialing"), PRO),
        (body(status="past_due"), PRO),
        (body(status="canceled"), ENDED),
        (body(status="unpaid"), ENDED),
        (body(status="paused"), ENDED),
        (body(status="incomplete_expired"), ENDED),
        (body(status="incomplete"), Ignored("not_paid_yet")),
        (body(status="of the future"), Ignored("not_paid_yet")),
        (body("deleted", status="incomplete"), ENDED),
        (body("deleted", ("price_x",)), ENDED),
        (body(prices=("price_x",)), Ignored("unknown_price")),
        (body(prices=()), Ignored("unknown_price")),
        (body(prices=("price_x", "price_s", "price_t", "price_p")), replace(PRO, plan=Plan.TEAM)),
        (body(customer={"id": "cus_1", "object": "customer"}), PRO),
        (body(current_period_start=MARCH_10), replace(PRO, period_start="2024-03-10")),
        (
            body(items={"data": [{"price": {"id": "price_p"}, "current_period_start": MARCH_10}]}),
            replace(PRO, period_start="2024-03-10"),
        ),
        (body("trial_will_end"), Ignored("other_event")),
        (b'{"type": "invoice.paid"}', Ignored("other_event")),
    ],
)
def test_an_event_says_what_became_of_a_subscription(sent: bytes, expected: object) -> None:
    assert read_event(sent, PRICES) == expected


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\xff",
        b"[" * 5000,
        b"null",
        b'{"type": "customer.subscription.updated", "created": 1}',
        body(customer=7),
        body(status=None),
        body(items=[]),
        body(current_period_start=10**15),
        body(current_period_start=-1),
        body().replace(b"1000", b"1e400"),
    ],
)
def test_what_is_no_event_is_refused(sent: bytes) -> None:
    with pytest.raises(MalformedRequest):
        read_event(sent, PRICES)


@given(st.binary(max_size=200))
def test_whatever_was_signed_there_is_an_answer(sent: bytes) -> None:
    try:
        read_event(sent, PRICES)
    except MalformedRequest as error:
        assert error.code == "malformed_event"


# --- deciding --------------------------------------------------------------------------------------

FRESH = BillingState(Plan.FREE, "cus_1", None, None, "2024-03-01")
ON_PRO = BillingState(Plan.PRO, "cus_1", "sub_1", 1000, "2024-03-01")
TODAY = "2024-03-20"


@pytest.mark.parametrize(
    ("event", "state", "expected"),
    [
        (PRO, FRESH, PlanMove(Plan.PRO, "sub_1", 1000, None)),
        (PRO, replace(FRESH, plan=Plan.TEAM), PlanMove(Plan.PRO, "sub_1", 1000, None)),
        (PRO, ON_PRO, PlanMove(Plan.PRO, "sub_1", 1000, None)),
        (replace(PRO, at=999), ON_PRO, Ignored("older_event")),
        (replace(ENDED, at=999), ON_PRO, Ignored("older_event")),
        (ENDED, ON_PRO, PlanMove(Plan.FREE, "sub_1", 1000, None)),
        (PRO, replace(ON_PRO, plan=Plan.FREE), Ignored("older_event")),
        (replace(PRO, at=1001), replace(ON_PRO, plan=Plan.FREE), PlanMove(Plan.PRO, "sub_1", 1001, None)),
        (replace(ENDED, at=1001, subscription_id="sub_0"), ON_PRO, Ignored("other_subscription")),
        (
            replace(PRO, at=1001, subscription_id="sub_2"),
            ON_PRO,
            PlanMove(Plan.PRO, "sub_2", 1001, None),
        ),
        (ENDED, FRESH, PlanMove(Plan.FREE, "sub_1", 1000, None)),
        (replace(PRO, customer_id="cus_2"), FRESH, Ignored("unknown_customer")),
        (PRO, replace(FRESH, customer_id=None), Ignored("unknown_customer")),
    ],
)
def test_an_event_moves_the_plan_or_says_why_not(
    event: SubscriptionEvent, state: BillingState, expected: object
) -> None:
    assert decide(event, state, TODAY) == expected


@pytest.mark.parametrize(
    ("period_start", "begins"),
    [
        (None, False),
        ("2024-02-28", False),
        ("2024-03-01", False),
        ("2024-03-02", True),
        (TODAY, True),
        ("2024-03-21", False),
    ],
)
def test_a_billing_period_that_has_begun_since_begins_the_usage_period(
    period_start: str | None, begins: bool
) -> None:
    move = decide(replace(PRO, period_start=period_start), FRESH, TODAY)
    assert isinstance(move, PlanMove)
    assert move.period_start == (period_start if begins else None)


def test_in_whatever_order_events_come_the_newest_decides() -> None:
    events = [
        replace(PRO, at=1, plan=Plan.STARTER),
        replace(PRO, at=2),
        replace(PRO, at=3, plan=Plan.TEAM),
        replace(ENDED, at=3),
    ]
    for order in permutations(events):
        state = FRESH
        for event in order:
            move = decide(event, state, TODAY)
            if isinstance(move, PlanMove):
                state = BillingState(move.plan, "cus_1", move.subscription_id, move.event_at, "2024-03-01")
        assert (state.plan, state.event_at) == (Plan.FREE, 3)
