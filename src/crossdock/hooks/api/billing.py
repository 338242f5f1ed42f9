"""`/v1/hooks/usage`, and `/v1/hooks/billing/stripe` for Stripe's own webhooks."""

from __future__ import annotations

from typing import Any

from litestar import Request, get, post
from litestar.di import NamedDependency
from litestar.params import FromQuery

from crossdock.hooks.accounts_model import BillingOutcome, UsageSummary
from crossdock.hooks.service.billing import Billing, Usage
from crossdock.hooks.service.principals import READ, user_of
from crossdock.http.guards import requires
from crossdock.http.principals import Principal


@get("/v1/hooks/usage", guards=[requires(READ)], tags=["hooks"], summary="Show this month's usage")
async def show_usage(
    usage: NamedDependency[Usage],
    principal: NamedDependency[Principal],
    user_id: FromQuery[str | None] = None,
) -> UsageSummary:
    """A month counts from the day that the user was made, or its billing period began. The operator says
    whose, by `user_id`."""
    return await usage.show(user_of(principal, user_id))


@post(
    "/v1/hooks/billing/stripe",
    status_code=200,
    tags=["hooks"],
    security=[{}],
    summary="Take an event of Stripe's",
)
async def take_stripe_event(
    request: Request[Any, Any, Any], billing: NamedDependency[Billing]
) -> BillingOutcome:
    """`customer.subscription.created|updated|deleted` move the customer's plan. The signature is the
    credential."""
    return await billing.receive(list(request.headers.multi_items()), await request.body())
