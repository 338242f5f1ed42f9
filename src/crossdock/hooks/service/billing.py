"""Usage and plans: what a user has used of its plan this month, and what Stripe says that the plan is."""

from __future__ import annotations

from collections.abc import Sequence

from crossdock.engines.items.port import Items, Refused
from crossdock.hooks.accounts_model import BillingOutcome, UsageSummary
from crossdock.hooks.model import User
from crossdock.hooks.rules.billing import Ignored, SubscriptionEvent, decide, parse_prices, read_event
from crossdock.hooks.rules.providers.model import Arrival
from crossdock.hooks.rules.providers.recipes import recipe_of
from crossdock.hooks.rules.usage import day_of, period_of, summary_of
from crossdock.hooks.service.principals import checked_user_id, no_user
from crossdock.hooks.service.users import changed_meanwhile
from crossdock.hooks.settings import HooksSettings
from crossdock.hooks.store import accounts as store
from crossdock.hooks.store.guards import holder_of
from crossdock.hooks.store.tables import MAIN, guard_key, user_key
from crossdock.kit.clock import Clock
from crossdock.kit.errors import NotFound, Unauthenticated

_ATTEMPTS = 5


class Usage:
    def __init__(self, items: Items, settings: HooksSettings, clock: Clock) -> None:
        self._items = items
        self._settings = settings
        self._clock = clock

    async def show(self, user_id: str) -> UsageSummary:
        user = await self._read(user_id)
        return summary_of(user, self._settings.monthly_events(user.plan), self._clock.now_ms())

    async def roll_over(self, user_id: str) -> User:
        """The user in the period of now: whoever comes first in a new one begins it, with a count of 0."""
        for _ in range(_ATTEMPTS):
            user = await self._read(user_id)
            now_ms = self._clock.now_ms()
            start = period_of(user.usage_period_start, now_ms).start
            if start == user.usage_period_start:
                return user
            await self._items.transact([store.period_begun(user, start, now_ms)])
        raise changed_meanwhile()

    async def _read(self, user_id: str) -> User:
        item = await self._items.get(MAIN, user_key(checked_user_id(user_id)))
        if item is None:
            raise no_user()
        return store.user_of(item)


class Billing:
    """Takes Stripe's webhooks, verified by its signature, and nothing else says who they are from."""

    def __init__(self, items: Items, settings: HooksSettings, clock: Clock) -> None:
        self._items = items
        self._clock = clock
        self._secret = settings.stripe_webhook_secret
        self._prices = parse_prices(settings.stripe_prices)
        self._recipe = recipe_of("stripe", None)

    async def receive(self, headers: Sequence[tuple[str, str]], body: bytes) -> BillingOutcome:
        if self._secret is None:
            raise NotFound("billing_not_configured", "This server takes no events of Stripe's.")
        now_ms = self._clock.now_ms()
        arrival = Arrival("POST", "", "", "", tuple(headers), body, now_ms)
        refusal = self._recipe.verify(arrival, (self._secret,))
        if refusal is not None:
            raise Unauthenticated("invalid_signature", refusal.detail)
        event = read_event(body, self._prices)
        if isinstance(event, Ignored):
            return _nothing(event)
        return await self._apply(event)

    async def _apply(self, event: SubscriptionEvent) -> BillingOutcome:
        for _ in range(_ATTEMPTS):
            guard = await self._items.get(MAIN, guard_key("STRIPE", event.customer_id))
            if guard is None:
                return _nothing(Ignored("unknown_customer"))
            user_id = holder_of(guard)
            item = await self._items.get(MAIN, user_key(user_id))
            if item is None:
                return _nothing(Ignored("unknown_customer"))
            now_ms = self._clock.now_ms()
            state = store.billing_state_of(item)
            move = decide(event, state, day_of(now_ms))
            if isinstance(move, Ignored):
                return _nothing(move)
            outcome = await self._items.transact([store.plan_moved(user_id, state, move, now_ms)])
            if not isinstance(outcome, Refused):
                return BillingOutcome(applied=True, plan=move.plan)
        raise changed_meanwhile()


def _nothing(ignored: Ignored) -> BillingOutcome:
    return BillingOutcome(applied=False, reason=ignored.reason)
