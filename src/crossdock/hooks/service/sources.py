"""Sources: made, listed, shown, changed, paused, their secrets rotated; deleted with their connections."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from crossdock.engines.items.port import Items, Refused, Written
from crossdock.hooks.model import Connection, HeldSecret, Source, Status
from crossdock.hooks.service.finding import (
    CHANGES_TRIED_MAX,
    changed_meanwhile,
    find_by_index,
    is_source_id,
    live_page,
    source_not_found,
)
from crossdock.hooks.service.principals import no_user, user_of
from crossdock.hooks.service.rotation import rotated
from crossdock.hooks.service.shown import ShownSource, show_source
from crossdock.hooks.service.source_checks import SIGNING_FIELDS, SigningSettings, check_source
from crossdock.hooks.store import connections as connection_store
from crossdock.hooks.store import sources as store
from crossdock.hooks.store.tables import MAIN, source_key
from crossdock.http.idempotency import IdempotentRequest, Once, Stored
from crossdock.http.idempotency_items import Effect, ItemsIdempotency
from crossdock.http.pages import Page, PageRequest
from crossdock.http.principals import Principal
from crossdock.kit.clock import Clock, rfc3339
from crossdock.kit.ids import Random, nanoid
from crossdock.kit.sealing import Sealer

OWNER = 1
"""The position of the owner's check in the transaction that makes a source."""


SHOWN = Stored(ShownSource)

Edit = Callable[[Source], tuple[Source, str | None]]
"""The source as it shall be, and the algorithm it is then signed with, if that may be another."""


class Sources:
    def __init__(
        self,
        items: Items,
        idempotency: ItemsIdempotency,
        *,
        sealer: Sealer,
        public_url: str,
        clock: Clock,
        random: Random,
    ) -> None:
        self._items = items
        self._idempotency = idempotency
        self._sealer = sealer
        self._ingest_url = public_url.rstrip("/") + "/in/"
        self._clock = clock
        self._random = random

    async def create(
        self,
        principal: Principal,
        user_id: str | None,
        given: Mapping[str, Any],
        request: IdempotentRequest | None,
    ) -> Once[ShownSource]:
        """`given`: name, provider, and of signing_secret, signing, dedup, response those that were."""
        owner = user_of(principal, user_id)

        async def prepare() -> Effect[ShownSource]:
            settings = check_source(given, SigningSettings(given["provider"], None, None))
            source_id = "src_" + nanoid(self._random, 16)
            source = Source(
                source_id=source_id,
                user_id=owner,
                name=given["name"],
                provider=settings.provider,
                status=Status.ACTIVE,
                created_at=rfc3339(self._clock.now_ms()),
                secrets=self._sealed(source_id, settings.secret),
                signing=settings.signing,
                dedup=given.get("dedup"),
                response=given.get("response"),
            )
            put = store.new_source(source, settings.algorithm)
            return Effect(self.shown(source), [put, store.owner_exists(owner)])

        once = await self._idempotency.once(request, SHOWN, prepare)
        if isinstance(once, Refused):
            assert once.failures[0].position == OWNER, "a fresh id was taken"
            raise no_user()
        return once

    async def list(self, principal: Principal, user_id: str | None, page: PageRequest) -> Page[ShownSource]:
        owner = user_of(principal, user_id)
        found = await live_page(
            self._items,
            page,
            lambda limit, after: store.sources_of_user(owner, limit, after),
            store.source_of,
        )
        return found.map(self.shown)

    async def get(self, principal: Principal, source_id: str) -> ShownSource:
        return self.shown(await self.find(principal, source_id))

    async def find(self, principal: Principal, source_id: str) -> Source:
        """A live one that the principal may see. Raises NotFound."""
        if not is_source_id(source_id):
            raise source_not_found(source_id)
        if principal.tenant is not None:
            item = await self._items.get(MAIN, source_key(principal.tenant, source_id))
        else:
            item = await find_by_index(self._items, store.source_by_id(source_id))
        return _live(item, source_id)

    async def change(self, principal: Principal, source_id: str, given: Mapping[str, Any]) -> ShownSource:
        """Only what is given changes. A new secret is the only one from now on: rotation has the grace."""

        def edit(source: Source) -> tuple[Source, str | None]:
            settings = check_source(given, self._settings(source, given))
            fields = {name: value for name, value in given.items() if name != "signing_secret"}
            if "signing" in fields:
                fields["signing"] = settings.signing
            if "signing_secret" in given:
                fields["secrets"] = self._sealed(source_id, settings.secret)
            return msgspec.structs.replace(source, **fields), settings.algorithm

        return self.shown(await self._change(principal, source_id, edit))

    async def rotate_secret(
        self,
        principal: Principal,
        source_id: str,
        secret: str,
        grace_seconds: int,
        request: IdempotentRequest | None,
    ) -> Once[ShownSource]:
        """The one in use until now stays good for `grace_seconds`."""

        async def prepare() -> Effect[ShownSource]:
            source = await self.find(principal, source_id)
            given = {"signing_secret": secret}
            settings = check_source(given, self._settings(source, given))
            [new] = self._sealed(source_id, secret)
            secrets = rotated(source.secrets, new, grace_seconds, self._clock.now_ms())
            after = msgspec.structs.replace(source, secrets=secrets)
            return Effect(self.shown(after), [store.source_changed(source, after, settings.algorithm)])

        for _ in range(CHANGES_TRIED_MAX):
            once = await self._idempotency.once(request, SHOWN, prepare)
            if not isinstance(once, Refused):
                return once
        raise changed_meanwhile()

    async def set_status(self, principal: Principal, source_id: str, status: Status) -> ShownSource:
        def edit(source: Source) -> tuple[Source, str | None]:
            return msgspec.structs.replace(source, status=status), None

        return self.shown(await self._change(principal, source_id, edit))

    async def delete(self, principal: Principal, source_id: str) -> None:
        """Its connections end with it, those too that are being made just now."""
        for _ in range(CHANGES_TRIED_MAX):
            source = await self.find(principal, source_id)
            made = await self._connections_made(source)
            connections = await self._live_connections(source_id)
            now = rfc3339(self._clock.now_ms())
            ended = [connection_store.connection_deleted(each, now) for each in connections]
            outcome = await self._items.transact([store.source_deleted(source, made), *ended])
            if isinstance(outcome, Written):
                return
        raise changed_meanwhile()

    def shown(self, source: Source) -> ShownSource:
        return show_source(source, self._ingest_url + source.source_id, self._clock.now_ms())

    # --- within ---

    async def _change(self, principal: Principal, source_id: str, edit: Edit) -> Source:
        source = await self.find(principal, source_id)
        for _ in range(CHANGES_TRIED_MAX):
            update = store.source_changed(source, *edit(source))
            if not update.changes:
                return source
            outcome = await self._items.update(
                update.table, update.key, *update.changes, condition=update.condition
            )
            if isinstance(outcome, Written):
                return _live(outcome.item, source_id)
            source = _live(outcome.current, source_id)
        raise changed_meanwhile()

    async def _connections_made(self, source: Source) -> int:
        item = await self._items.get(MAIN, source_key(source.user_id, source.source_id))
        return 0 if item is None else store.connections_made(item)

    async def _live_connections(self, source_id: str) -> Sequence[Connection]:
        found: list[Connection] = []
        after: str | None = None
        while True:
            page = await self._items.query(connection_store.connections_of_source(source_id, 200, after))
            connections = [connection_store.connection_of(item) for item in page.items]
            found += [each for each in connections if each.status is not Status.DELETED]
            if page.cursor is None:
                return found
            after = connections[-1].connection_id

    def _settings(self, source: Source, given: Mapping[str, Any]) -> SigningSettings:
        """The secret is there only if what is given must go with it."""
        secret: str | None = None
        if source.secrets and not SIGNING_FIELDS.isdisjoint(given):
            context = store.secret_context(source.source_id)
            secret = self._sealer.unseal(source.secrets[0].sealed, context).decode()
        return SigningSettings(source.provider, source.signing, secret)

    def _sealed(self, source_id: str, secret: str | None) -> tuple[HeldSecret, ...]:
        if secret is None:
            return ()
        return (HeldSecret(self._sealer.seal(secret.encode(), store.secret_context(source_id))),)


def _live(item: Mapping[str, Any] | None, source_id: str) -> Source:
    source = None if item is None else store.source_of(item)
    if source is None or source.status is Status.DELETED:
        raise source_not_found(source_id)
    return source
