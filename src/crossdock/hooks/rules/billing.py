"""What Stripe's events about subscriptions make of a user's plan. Pure.

- A subscription that is paid for, or in its grace (`past_due`), gives the best plan that one of its prices
  buys. One that ended takes the user back to `free`, unless another subscription gave the plan.
- Stripe's events may come late, twice and in any order: one that is older than the last applied changes
  nothing, and of two of one second the end wins.
- A billing period that begins after the usage period begins that anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias

import msgspec

from crossdock.hooks.model import Plan
from crossdock.hooks.rules.usage import day_of
from crossdock.kit.configuration import SettingsError
from crossdock.kit.errors import MalformedRequest

EVENT_TYPES = frozenset(f"customer.subscription.{what}" for what in ("created", "updated", "deleted"))
_ENDED = frozenset({"canceled", "unpaid", "incomplete_expired", "paused"})
_PAID = frozenset({"active", "trialing", "past_due"})
_RANKS = {plan: rank for rank, plan in enumerate(Plan)}

Prices: TypeAlias = Mapping[str, Plan]


@dataclass(frozen=True, slots=True)
class Ignored:
    """`reason`: a stable code."""

    reason: str


@dataclass(frozen=True, slots=True)
class SubscriptionEvent:
    """`plan` None: the subscription ended. `period_start`: the day its billing period began, if told."""

    at: int
    customer_id: str
    subscription_id: str
    plan: Plan | None
    period_start: str | None = None


@dataclass(frozen=True, slots=True)
class BillingState:
    """What is stored of a user that a move is decided by."""

    plan: Plan
    customer_id: str | None
    subscription_id: str | None
    event_at: int | None
    period_start: str


@dataclass(frozen=True, slots=True)
class PlanMove:
    """`period_start` None: the usage period goes on."""

    plan: Plan
    subscription_id: str
    event_at: int
    period_start: str | None


def parse_prices(entries: Sequence[str]) -> Prices:
    """Of the setting: `price_id=plan`. Raises SettingsError."""
    prices: dict[str, Plan] = {}
    for entry in entries:
        price_id, _, plan = (part.strip() for part in entry.partition("="))
        if not price_id or plan not in list(Plan):
            names = ", ".join(Plan)
            raise SettingsError(
                f"CROSSDOCK_HOOKS_STRIPE_PRICES must be price_id=plan with a plan of {names}, not {entry!r}."
            )
        prices[price_id] = Plan(plan)
    return prices


# --- reading ---------------------------------------------------------------------------------------


_Moment: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=253_402_300_799)]
"""Seconds since 1970, up to the last that a calendar has."""


class _Reference(msgspec.Struct):
    id: str


class _Item(msgspec.Struct):
    price: _Reference
    current_period_start: _Moment | None = None


class _Items(msgspec.Struct):
    data: list[_Item]


class _Subscription(msgspec.Struct):
    id: str
    customer: str | _Reference
    status: str
    items: _Items
    current_period_start: _Moment | None = None
    """In Stripe's API versions before 2025; since then it is on the items."""


class _Data(msgspec.Struct):
    object: _Subscription


class _Event(msgspec.Struct):
    created: _Moment
    data: _Data


class _Kind(msgspec.Struct):
    type: str


_kind = msgspec.json.Decoder(_Kind)
_event = msgspec.json.Decoder(_Event)


def read_event(body: bytes, prices: Prices) -> SubscriptionEvent | Ignored:
    """Raises MalformedRequest for what is no event of Stripe's."""
    try:
        kind = _kind.decode(body).type
        if kind not in EVENT_TYPES:
            return Ignored("other_event")
        event = _event.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedRequest(
            "malformed_event", "The body is no event of Stripe's.", internal=str(error)
        ) from error
    subscription = event.data.object
    ended = kind.endswith(".deleted") or subscription.status in _ENDED
    if not ended and subscription.status not in _PAID:
        return Ignored("not_paid_yet")
    plan = None if ended else _best_plan(subscription.items.data, prices)
    if plan is None and not ended:
        return Ignored("unknown_price")
    return SubscriptionEvent(
        at=event.created,
        customer_id=_id(subscription.customer),
        subscription_id=subscription.id,
        plan=plan,
        period_start=_period_start(subscription),
    )


def _best_plan(items: Sequence[_Item], prices: Prices) -> Plan | None:
    plans = [prices[item.price.id] for item in items if item.price.id in prices]
    return max(plans, key=_RANKS.__getitem__, default=None)


def _id(reference: str | _Reference) -> str:
    return reference if isinstance(reference, str) else reference.id


def _period_start(subscription: _Subscription) -> str | None:
    items = subscription.items.data
    starts = [subscription.current_period_start, *(item.current_period_start for item in items)]
    given = [start for start in starts if start is not None]
    return day_of(max(given) * 1000) if given else None


# --- deciding --------------------------------------------------------------------------------------


def decide(event: SubscriptionEvent, state: BillingState, today: str) -> PlanMove | Ignored:
    if state.customer_id != event.customer_id:
        return Ignored("unknown_customer")
    if state.event_at is not None and event.at < state.event_at:
        return Ignored("older_event")
    if event.plan is None:
        if state.subscription_id not in (None, event.subscription_id):
            return Ignored("other_subscription")
        return PlanMove(Plan.FREE, event.subscription_id, event.at, None)
    if event.at == state.event_at and state.plan is Plan.FREE:
        return Ignored("older_event")
    start = event.period_start
    begins = start is not None and state.period_start < start <= today
    return PlanMove(event.plan, event.subscription_id, event.at, start if begins else None)
