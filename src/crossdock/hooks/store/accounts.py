"""Users: `PK USER#{userId}, SK PROFILE`, with the guards of what only one of them may have.

Attributes beyond the contract's: `alertUrl`; `emailProven`, there if the operator or an identity provider
vouches for the address; `sessionEpoch`, raised to end every session; `keyCount`, so that the bound on keys
holds however many are made at once; `stripeEventAt`, the time of the last event of Stripe's that was applied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from crossdock.engines.items.conditions import Absent, Condition, Exists, all_of, equals
from crossdock.engines.items.port import Add, Change, Item, Put, Query, Remove, Set, Update, Value, Write
from crossdock.hooks.accounts_model import OAuthProvider
from crossdock.hooks.model import Plan, User
from crossdock.hooks.rules.billing import BillingState, PlanMove
from crossdock.hooks.rules.usage import day_of
from crossdock.hooks.store.attributes import integer_of, text_of, unchanged
from crossdock.hooks.store.guards import email_guard_key, guard, moved
from crossdock.hooks.store.tables import MAIN, USERS, guard_key, user_key
from crossdock.kit.clock import rfc3339

_LINKS: dict[OAuthProvider, str] = {OAuthProvider.GITHUB: "githubId", OAuthProvider.GOOGLE: "googleId"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewUser:
    user_id: str
    email: str
    name: str
    plan: Plan = Plan.FREE
    password_hash: str | None = None
    alert_url: str | None = None
    stripe_customer_id: str | None = None
    link: tuple[OAuthProvider, str] | None = None
    email_proven: bool = False


@dataclass(frozen=True, slots=True)
class Login:
    """What a login is decided by."""

    user_id: str
    email: str
    password_hash: str | None
    session_epoch: int


# --- the item --------------------------------------------------------------------------------------


def new_user(new: NewUser, now_ms: int) -> list[Write]:
    """The user and its guards; each is refused if it is there."""
    now = rfc3339(now_ms)
    item: Item = {
        **user_key(new.user_id),
        **_email_index(new.email),
        "GSI2PK": USERS,
        "GSI2SK": f"{now}#{new.user_id}",
        "userId": new.user_id,
        "email": new.email,
        "name": new.name,
        "passwordHash": new.password_hash,
        "plan": new.plan.value,
        "usageThisMonth": 0,
        "usagePeriodStart": day_of(now_ms),
        "createdAt": now,
        "updatedAt": now,
    }
    guards = [email_guard_key(new.email)]
    if new.email_proven:
        item["emailProven"] = True
    if new.alert_url is not None:
        item["alertUrl"] = new.alert_url
    if new.stripe_customer_id is not None:
        item["stripeCustomerId"] = new.stripe_customer_id
        guards.append(guard_key("STRIPE", new.stripe_customer_id))
    if new.link is not None:
        item[_LINKS[new.link[0]]] = new.link[1]
        guards.append(link_guard_key(*new.link))
    return [Put(MAIN, item, Absent("PK")), *(guard(key, new.user_id) for key in guards)]


def user_of(item: Mapping[str, Value]) -> User:
    return User(
        user_id=str(item["userId"]),
        email=str(item["email"]),
        name=str(item["name"]),
        plan=Plan(str(item["plan"])),
        created_at=str(item["createdAt"]),
        updated_at=str(item["updatedAt"]),
        usage_this_month=integer_of(item, "usageThisMonth"),
        usage_period_start=str(item["usagePeriodStart"]),
        alert_url=text_of(item, "alertUrl"),
        has_password=item.get("passwordHash") is not None,
        github_id=text_of(item, "githubId"),
        google_id=text_of(item, "googleId"),
        stripe_customer_id=text_of(item, "stripeCustomerId"),
    )


def login_of(item: Mapping[str, Value]) -> Login:
    return Login(
        user_id=str(item["userId"]),
        email=str(item["email"]),
        password_hash=text_of(item, "passwordHash"),
        session_epoch=integer_of(item, "sessionEpoch"),
    )


def _email_index(email: str) -> dict[str, str]:
    return {"GSI1PK": f"EMAIL#{email.lower()}", "GSI1SK": "USER"}


# --- listing ---------------------------------------------------------------------------------------


def users_by_age(limit: int, after: tuple[str, str] | None) -> Query:
    """`after`: when the user was made that the page before ended at, and its id."""
    cursor = None
    if after is not None:
        created_at, user_id = after
        cursor = {**user_key(user_id), "GSI2PK": USERS, "GSI2SK": f"{created_at}#{user_id}"}
    return Query(MAIN, USERS, index="GSI2", descending=True, limit=limit, after=cursor)


def age_position(indexed: Mapping[str, Value]) -> dict[str, str | int]:
    created_at, _, user_id = str(indexed["GSI2SK"]).partition("#")
    return {"created_at": created_at, "user_id": user_id}


# --- changing --------------------------------------------------------------------------------------

_PLAIN = {"name": "name", "plan": "plan", "alert_url": "alertUrl", "stripe_customer_id": "stripeCustomerId"}


def user_changed(
    user: User, fields: Mapping[str, str | None], now_ms: int, *, email_proven: bool
) -> list[Write]:
    """`fields`: those to change, named as in the API, with `password_hash` for a password; None removes.

    Holds if what is unique was not changed since `user` was read. Who changes its own e-mail address has not
    proven the new one (`email_proven`), and a new password ends every session.
    """
    changes: list[Change] = [Set("updatedAt", rfc3339(now_ms))]
    conditions: list[Condition] = [Exists("PK")]
    guards: list[Write] = []
    for field, attribute in _PLAIN.items():
        if field in fields:
            value = fields[field]
            changes.append(Remove(attribute) if value is None else Set(attribute, value))
    email = fields.get("email")
    if email is not None:
        is_other = email.lower() != user.email.lower()
        changes += [Set("email", email), *(Set(*each) for each in _email_index(email).items())]
        if email_proven:
            changes.append(Set("emailProven", True))
        elif is_other:
            changes.append(Remove("emailProven"))
        conditions.append(equals("email", user.email))
        guards += moved(email_guard_key(user.email), email_guard_key(email), user.user_id)
    if "stripe_customer_id" in fields:
        old, new = user.stripe_customer_id, fields["stripe_customer_id"]
        conditions.append(unchanged("stripeCustomerId", old))
        guards += moved(_stripe_key(old), _stripe_key(new), user.user_id)
    if "password_hash" in fields:
        changes += [Set("passwordHash", fields["password_hash"]), Add("sessionEpoch", 1)]
    return [Update(MAIN, user_key(user.user_id), tuple(changes), all_of(*conditions)), *guards]


def _stripe_key(customer_id: str | None) -> dict[str, str] | None:
    return None if customer_id is None else guard_key("STRIPE", customer_id)


# --- identity providers ----------------------------------------------------------------------------


def link_guard_key(provider: OAuthProvider, identity: str) -> dict[str, str]:
    return guard_key("GITHUB" if provider is OAuthProvider.GITHUB else "GOOGLE", identity)


def is_email_proven(item: Mapping[str, Value]) -> bool:
    return item.get("emailProven") is True


def link_of(item: Mapping[str, Value], provider: OAuthProvider) -> str | None:
    return text_of(item, _LINKS[provider])


def linked(user: User, provider: OAuthProvider, identity: str, now_ms: int) -> list[Write]:
    """Holds while the address is the one that was read, proven, and not linked to this provider yet."""
    attribute = _LINKS[provider]
    update = Update(
        MAIN,
        user_key(user.user_id),
        (Set(attribute, identity), Set("updatedAt", rfc3339(now_ms))),
        all_of(equals("email", user.email), Exists("emailProven"), Absent(attribute)),
    )
    return [update, guard(link_guard_key(provider, identity), user.user_id)]


# --- usage and billing -----------------------------------------------------------------------------


def period_begun(user: User, start: str, now_ms: int) -> Update:
    """The count begins anew, on condition that nobody has begun another period since `user` was read."""
    changes = (Set("usageThisMonth", 0), Set("usagePeriodStart", start), Set("updatedAt", rfc3339(now_ms)))
    same = equals("usagePeriodStart", user.usage_period_start)
    return Update(MAIN, user_key(user.user_id), changes, same)


def billing_state_of(item: Mapping[str, Value]) -> BillingState:
    event_at = item.get("stripeEventAt")
    return BillingState(
        plan=Plan(str(item["plan"])),
        customer_id=text_of(item, "stripeCustomerId"),
        subscription_id=text_of(item, "stripeSubId"),
        event_at=None if event_at is None else integer_of(item, "stripeEventAt"),
        period_start=str(item["usagePeriodStart"]),
    )


def plan_moved(user_id: str, state: BillingState, move: PlanMove, now_ms: int) -> Update:
    """Holds if all that the move was decided by is as it was read."""
    changes: list[Change] = [
        Set("plan", move.plan.value),
        Set("stripeSubId", move.subscription_id),
        Set("stripeEventAt", move.event_at),
        Set("updatedAt", rfc3339(now_ms)),
    ]
    if move.period_start is not None:
        changes += [Set("usagePeriodStart", move.period_start), Set("usageThisMonth", 0)]
    condition = all_of(
        equals("plan", state.plan.value),
        unchanged("stripeCustomerId", state.customer_id),
        unchanged("stripeSubId", state.subscription_id),
        unchanged("stripeEventAt", state.event_at),
        equals("usagePeriodStart", state.period_start),
    )
    return Update(MAIN, user_key(user_id), tuple(changes), condition)
