"""Workspaces, keys, sessions and settings: who may ask, and for what."""

from __future__ import annotations

from dataclasses import dataclass

from crossdock.access.resolvers import KeyResolver, SessionResolver
from crossdock.access.rules import KEY_PREFIX, check_operator_key, make_key
from crossdock.access.service import AccessService
from crossdock.access.sessions import SessionService
from crossdock.access.settings import AccessSettings
from crossdock.engines.sql.migrations import Migrations
from crossdock.engines.sql.target import Pool
from crossdock.http.idempotency_sql import SqlIdempotency
from crossdock.http.principals import Principal, Resolver
from crossdock.kit.clock import Clock
from crossdock.kit.ids import Random

SCHEMA = "derrick"
MIGRATIONS = Migrations(SCHEMA, "crossdock.access.migrations")


@dataclass(frozen=True, slots=True)
class AccessServices:
    """The use cases of access and its resolvers, wired to one pool."""

    access: AccessService
    sessions: SessionService
    keys: KeyResolver
    cookies: SessionResolver


def build(
    pool: Pool, idempotency: SqlIdempotency, settings: AccessSettings, *, clock: Clock, random: Random
) -> AccessServices:
    """`pool` sees the schema `derrick` first."""
    keys, cookies = KeyResolver(pool, clock), SessionResolver(pool, clock)
    return AccessServices(
        access=AccessService(pool, idempotency, keys=keys, sessions=cookies, clock=clock, random=random),
        sessions=SessionService(
            pool,
            idempotency,
            keys=keys,
            sessions=cookies,
            settings=settings,
            clock=clock,
            random=random,
        ),
        keys=keys,
        cookies=cookies,
    )


__all__ = [
    "KEY_PREFIX",
    "MIGRATIONS",
    "SCHEMA",
    "AccessService",
    "AccessServices",
    "AccessSettings",
    "KeyResolver",
    "Principal",
    "Resolver",
    "SessionResolver",
    "SessionService",
    "build",
    "check_operator_key",
    "make_key",
]
