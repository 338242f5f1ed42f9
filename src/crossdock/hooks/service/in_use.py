"""A source with all that its events need: verified, filtered, reshaped and sent by it. Read once a second.

What is read is kept for a second at most (an unknown source, too), on every node: so long may it take until a
change is followed. Secrets are unsealed here, and live in memory only.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from crossdock.delivery import breaker
from crossdock.delivery.schedule import RetryPolicy, parse_retry_policy
from crossdock.engines.items.port import Item, Items, Query, SortPrefix
from crossdock.hooks.model import RETENTION_SECONDS, Connection, HeldSecret, Source, Status, User
from crossdock.hooks.rules.filters import Filters, parse_filters
from crossdock.hooks.rules.providers.dedup import Dedup, parse_dedup
from crossdock.hooks.rules.providers.model import Reply
from crossdock.hooks.rules.providers.recipe import Recipe
from crossdock.hooks.rules.providers.recipes import recipe_of
from crossdock.hooks.rules.transforms import Transform, parse_transform
from crossdock.hooks.rules.usage import Period, period_of
from crossdock.hooks.settings import HooksSettings
from crossdock.hooks.store import accounts as account_store
from crossdock.hooks.store import connections as connection_store
from crossdock.hooks.store import sources as source_store
from crossdock.hooks.store.tables import MAIN, user_key
from crossdock.kit.clock import Clock
from crossdock.kit.sealing import Sealer
from crossdock.kit.ttl_cache import TtlCache

KEPT_SECONDS = 1.0
SOURCES_MAX = 10_000
INDEX_POLL_SECONDS = 0.1
INDEX_POLLS = 5
"""After the first look: an index lags half a second at most."""


@dataclass(frozen=True, slots=True)
class ConnectionInUse:
    connection: Connection
    filters: Filters | None
    transform: Transform | None
    policy: RetryPolicy
    secrets: tuple[tuple[str, int | None], ...]
    headers: tuple[tuple[str, str], ...]
    breaker: breaker.BreakerState

    @property
    def connection_id(self) -> str:
        return self.connection.connection_id

    def valid_secrets(self, now_ms: int) -> tuple[str, ...]:
        return _valid(self.secrets, now_ms)


@dataclass(frozen=True, slots=True)
class SourceInUse:
    source: Source
    recipe: Recipe
    secrets: tuple[tuple[str, int | None], ...]
    dedup: Dedup | None
    reply: Reply | None
    """What the provider is answered; None: the event's id."""
    period: Period
    over_limit: bool
    retention_seconds: int
    connections: tuple[ConnectionInUse, ...]

    def valid_secrets(self, now_ms: int) -> tuple[str, ...]:
        return _valid(self.secrets, now_ms)

    def connection(self, connection_id: str) -> ConnectionInUse | None:
        return next((each for each in self.connections if each.connection_id == connection_id), None)


def _valid(secrets: tuple[tuple[str, int | None], ...], now_ms: int) -> tuple[str, ...]:
    return tuple(secret for secret, until_ms in secrets if until_ms is None or now_ms < until_ms)


class SourcesInUse:
    def __init__(self, items: Items, sealer: Sealer, settings: HooksSettings, clock: Clock) -> None:
        self._items = items
        self._sealer = sealer
        self._settings = settings
        self._clock = clock
        self._known: TtlCache[str, SourceInUse] = TtlCache(
            clock, capacity=SOURCES_MAX, ttl_seconds=KEPT_SECONDS
        )

    async def find(self, source_id: str) -> SourceInUse | None:
        """None for one that is not there, or deleted."""
        hit = self._known.get(source_id)
        if hit is not None:
            return hit.value
        return await self._known.get_or_fill(source_id, self._read)

    def forget(self, source_id: str) -> None:
        """It was changed here."""
        self._known.invalidate(source_id)

    async def _read(self, source_id: str) -> SourceInUse | None:
        item = await self._source_item(source_id)
        source = None if item is None else source_store.source_of(item)
        if source is None or source.status is Status.DELETED:
            return None
        user_item = await self._items.get(MAIN, user_key(source.user_id))
        if user_item is None:
            return None
        user, period = await self._user_in_period(account_store.user_of(user_item))
        connections = await self._connections(source_id)
        return SourceInUse(
            source=source,
            recipe=recipe_of(source.provider, source.signing),
            secrets=self._unsealed(source.secrets, source_store.secret_context(source_id)),
            dedup=parse_dedup(source.dedup),
            reply=_reply(source.response),
            period=period,
            over_limit=user.usage_this_month >= self._settings.monthly_events(user.plan),
            retention_seconds=RETENTION_SECONDS[user.plan],
            connections=connections,
        )

    async def _source_item(self, source_id: str) -> Item | None:
        """The index says whose it is, the table says what it is now. A new one may not be in it yet."""
        page = await self._items.query(source_store.source_by_id(source_id))
        for _ in range(INDEX_POLLS):
            if page.items:
                break
            await asyncio.sleep(INDEX_POLL_SECONDS)
            page = await self._items.query(source_store.source_by_id(source_id))
        return await self._items.get(MAIN, MAIN.key_of(page.items[0])) if page.items else None

    async def _user_in_period(self, user: User) -> tuple[User, Period]:
        """Events count into the period of now: whoever comes first in a new one begins it."""
        now_ms = self._clock.now_ms()
        period = period_of(user.usage_period_start, now_ms)
        if period.start == user.usage_period_start:
            return user, period
        await self._items.transact([account_store.period_begun(user, period.start, now_ms)])
        item = await self._items.get(MAIN, user_key(user.user_id))
        return (user, period) if item is None else (account_store.user_of(item), period)

    async def _connections(self, source_id: str) -> tuple[ConnectionInUse, ...]:
        found: list[ConnectionInUse] = []
        query = Query(MAIN, f"SRC#{source_id}", SortPrefix("CONN#"), limit=200)
        while True:
            page = await self._items.query(query)
            connections = map(connection_store.connection_of, page.items)
            found += [self._in_use(each) for each in connections if each.status is not Status.DELETED]
            if page.cursor is None:
                return tuple(found)
            query = Query(MAIN, f"SRC#{source_id}", SortPrefix("CONN#"), limit=200, after=page.cursor)

    def _in_use(self, connection: Connection) -> ConnectionInUse:
        context = connection_store.secret_context(connection.connection_id)
        return ConnectionInUse(
            connection=connection,
            filters=None if connection.filters is None else _filters(_text(connection.filters)),
            transform=None if connection.transform is None else _transform(_text(connection.transform)),
            policy=parse_retry_policy(connection.retry_config),
            secrets=self._unsealed(connection.secrets, context),
            headers=connection_store.unsealed_headers(connection, self._sealer),
            breaker=msgspec.convert(connection.breaker or {}, breaker.BreakerState),
        )

    def _unsealed(self, secrets: tuple[HeldSecret, ...], context: str) -> tuple[tuple[str, int | None], ...]:
        return tuple(
            (self._sealer.unseal(held.sealed, context).decode(), held.valid_until_ms) for held in secrets
        )


def _text(configured: Any) -> bytes:
    return msgspec.json.encode(configured)


# Compiled once, however often they are read.
@lru_cache(maxsize=2_000)
def _filters(text: bytes) -> Filters:
    return parse_filters(msgspec.json.decode(text))


@lru_cache(maxsize=2_000)
def _transform(text: bytes) -> Transform:
    return parse_transform(msgspec.json.decode(text))


def _reply(response: dict[str, Any] | None) -> Reply | None:
    if not response:
        return None
    content_type = str(response.get("content_type") or "text/plain; charset=utf-8")
    return Reply(int(response.get("status", 200)), content_type, str(response.get("body", "")).encode())
