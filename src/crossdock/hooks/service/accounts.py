"""The accounts part, wired to one store: users, keys, logins, OAuth, usage, billing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from crossdock.engines.items.port import Items
from crossdock.hooks.rules.passwords import COST
from crossdock.hooks.service.billing import Billing, Usage
from crossdock.hooks.service.keys import ApiKeys
from crossdock.hooks.service.logins import Logins
from crossdock.hooks.service.oauth import OAuth
from crossdock.hooks.service.oauth_providers import OAuthProviders
from crossdock.hooks.service.passwords import PasswordHasher
from crossdock.hooks.service.principals import KEY_PREFIX, SESSION_PREFIX, KeyResolver, SessionResolver
from crossdock.hooks.service.users import Users
from crossdock.hooks.settings import HooksSettings
from crossdock.http.client import GuardedClient
from crossdock.http.idempotency_items import ItemsIdempotency
from crossdock.http.principals import Resolver
from crossdock.kit.clock import Clock
from crossdock.kit.ids import Random
from crossdock.kit.sealing import Sealer


@dataclass(frozen=True, slots=True)
class AccountServices:
    users: Users
    keys: ApiKeys
    logins: Logins
    oauth: OAuth
    usage: Usage
    billing: Billing
    resolvers: Mapping[str, Resolver]
    """For the authenticator: credential prefix -> resolver."""
    may_sign_up: bool
    has_https: bool


def build_accounts(
    items: Items,
    idempotency: ItemsIdempotency,
    settings: HooksSettings,
    *,
    sealer: Sealer,
    client: GuardedClient,
    public_url: str,
    clock: Clock,
    random: Random,
    password_cost: int = COST,
) -> AccountServices:
    """`public_url`: as browsers reach us; identity providers send them back there. Raises SettingsError."""
    keys, sessions = KeyResolver(items, clock), SessionResolver(items, clock)
    hasher = PasswordHasher(random, password_cost)
    users = Users(items, idempotency, hasher, sessions, clock=clock, random=random)
    logins = Logins(items, idempotency, users, hasher, sessions, clock=clock, random=random)
    may_sign_up = settings.signup == "open"
    oauth = OAuth(
        items,
        OAuthProviders(client, settings, public_url, clock),
        logins,
        sealer,
        may_sign_up=may_sign_up,
        clock=clock,
        random=random,
    )
    return AccountServices(
        users=users,
        keys=ApiKeys(items, idempotency, keys, clock=clock, random=random),
        logins=logins,
        oauth=oauth,
        usage=Usage(items, settings, clock),
        billing=Billing(items, settings, clock),
        resolvers={KEY_PREFIX: keys, SESSION_PREFIX: sessions},
        may_sign_up=may_sign_up,
        has_https=public_url.startswith("https://"),
    )
