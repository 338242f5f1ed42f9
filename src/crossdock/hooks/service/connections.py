"""Connections: made, listed, shown, changed, their secrets rotated, paused and resumed, deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from crossdock.engines.items.port import Items, Refused, Written
from crossdock.hooks.model import Connection, HeldSecret, Status
from crossdock.hooks.service.connection_checks import check_connection, kept_headers, with_defaults
from crossdock.hooks.service.finding import (
    CHANGES_TRIED_MAX,
    changed_meanwhile,
    connection_not_found,
    find_by_index,
    is_connection_id,
    live_page,
    source_not_found,
)
from crossdock.hooks.service.rotation import rotated
from crossdock.hooks.service.shown import (
    ChangedConnection,
    CreatedConnection,
    RotatedConnection,
    Shown,
    ShownConnection,
    show_connection,
)
from crossdock.hooks.service.sources import Sources
from crossdock.hooks.store import connections as store
from crossdock.hooks.store import sources as source_store
from crossdock.http.client import CallFailed, GuardedClient
from crossdock.http.idempotency import IdempotentRequest, Once, Stored
from crossdock.http.idempotency_items import Effect, ItemsIdempotency
from crossdock.http.pages import Page, PageRequest
from crossdock.http.principals import Principal
from crossdock.kit.clock import Clock, rfc3339
from crossdock.kit.egress import EgressRefused
from crossdock.kit.errors import Conflict, FieldProblem, InvalidInput
from crossdock.kit.ids import Random, nanoid
from crossdock.kit.sealing import Sealer
from crossdock.kit.signing import make_secret

VET_SECONDS_MAX = 5.0
"""A name server that answers late is no reason to keep the user waiting."""


CREATED = Stored(CreatedConnection, secrets=("signing_secret",))
ROTATED = Stored(RotatedConnection, secrets=("signing_secret",))

Edit = Callable[[Connection], Connection]


class Connections:
    def __init__(
        self,
        items: Items,
        idempotency: ItemsIdempotency,
        sources: Sources,
        client: GuardedClient,
        *,
        sealer: Sealer,
        clock: Clock,
        random: Random,
        vet_seconds_max: float = VET_SECONDS_MAX,
    ) -> None:
        self._items = items
        self._idempotency = idempotency
        self._sources = sources
        self._client = client
        self._sealer = sealer
        self._clock = clock
        self._random = random
        self._vet_seconds_max = vet_seconds_max

    async def create(
        self,
        principal: Principal,
        source_id: str,
        given: Mapping[str, Any],
        request: IdempotentRequest | None,
    ) -> Once[CreatedConnection]:
        """At most 50 live ones a source, however many are made at once."""

        async def prepare() -> Effect[CreatedConnection]:
            source = await self._sources.find(principal, source_id)
            await self._check(given, None)
            warnings = await self._vet(given["destination_url"])
            secret = make_secret(self._random)
            connection = self._new(source_id, source.user_id, given, secret)
            shown = self._shown(connection, CreatedConnection, warnings=warnings, signing_secret=secret)
            return Effect(shown, [source_store.connection_counted(source), store.new_connection(connection)])

        once = await self._idempotency.once(request, CREATED, prepare)
        if not isinstance(once, Refused):
            return once
        current = once.current
        if current is None or source_store.source_of(current).status is Status.DELETED:
            raise source_not_found(source_id)
        raise Conflict("too_many_connections", "A source has at most 50 connections. Delete one first.")

    async def list(self, principal: Principal, source_id: str, page: PageRequest) -> Page[ShownConnection]:
        source = await self._sources.find(principal, source_id)
        found = await live_page(
            self._items,
            page,
            lambda limit, after: store.connections_of_source(source.source_id, limit, after),
            store.connection_of,
        )
        return found.map(self.shown)

    async def get(self, principal: Principal, connection_id: str) -> ShownConnection:
        return self.shown(await self.find(principal, connection_id))

    async def find(self, principal: Principal, connection_id: str) -> Connection:
        """A live one that the principal may see. Raises NotFound."""
        if not is_connection_id(connection_id):
            raise connection_not_found(connection_id)
        item = await find_by_index(self._items, store.connection_by_id(connection_id))
        connection = _live(item, connection_id)
        if not principal.sees(connection.user_id):
            raise connection_not_found(connection_id)
        return connection

    async def change(
        self, principal: Principal, connection_id: str, given: Mapping[str, Any]
    ) -> ChangedConnection:
        """Only what is given changes; null puts a field back to its default."""
        connection = await self.find(principal, connection_id)
        await self._check(given, connection)
        warnings = await self._vet(given["destination_url"]) if "destination_url" in given else []

        def edit(before: Connection) -> Connection:
            check_connection({"headers": given.get("headers")}, before)
            return self._edited(before, given)

        changed = await self._change(connection, edit) if given else connection
        return self._shown(changed, ChangedConnection, warnings=warnings)

    async def rotate_secret(
        self,
        principal: Principal,
        connection_id: str,
        grace_seconds: int,
        request: IdempotentRequest | None,
    ) -> Once[RotatedConnection]:
        """Deliveries are signed with the secret in use until now, too, for `grace_seconds`."""

        async def prepare() -> Effect[RotatedConnection]:
            connection = await self.find(principal, connection_id)
            secret = make_secret(self._random)
            new = self._sealed(connection_id, secret)
            secrets = rotated(connection.secrets, new, grace_seconds, self._clock.now_ms())
            after = self._replaced(connection, secrets=secrets)
            shown = self._shown(after, RotatedConnection, signing_secret=secret)
            return Effect(shown, [store.connection_changed(connection, after)])

        for _ in range(CHANGES_TRIED_MAX):
            once = await self._idempotency.once(request, ROTATED, prepare)
            if not isinstance(once, Refused):
                return once
        raise changed_meanwhile()

    async def pause(self, principal: Principal, connection_id: str) -> ShownConnection:
        """Its deliveries wait."""

        def edit(before: Connection) -> Connection:
            return self._replaced(before, status=Status.PAUSED)

        return self.shown(await self._change(await self.find(principal, connection_id), edit))

    async def resume(self, principal: Principal, connection_id: str) -> ShownConnection:
        """What paused it, or opened its circuit, is forgotten."""

        def edit(before: Connection) -> Connection:
            return self._replaced(before, status=Status.ACTIVE, paused_reason=None, breaker=None)

        return self.shown(await self._change(await self.find(principal, connection_id), edit))

    async def delete(self, principal: Principal, connection_id: str) -> None:
        connection = await self.find(principal, connection_id)
        now = rfc3339(self._clock.now_ms())
        outcome = await self._items.transact(
            [
                store.connection_deleted(connection, now),
                source_store.connection_uncounted(connection.user_id, connection.source_id),
            ]
        )
        if isinstance(outcome, Refused):
            raise connection_not_found(connection_id)

    def shown(self, connection: Connection) -> ShownConnection:
        return self._shown(connection, ShownConnection)

    def _shown(self, connection: Connection, kind: type[Shown], **more: Any) -> Shown:
        return show_connection(connection, kind, self._clock.now_ms(), **more)

    # --- within ---

    def _new(self, source_id: str, user_id: str, given: Mapping[str, Any], secret: str) -> Connection:
        now, connection_id = rfc3339(self._clock.now_ms()), "conn_" + nanoid(self._random, 16)
        bare = Connection(
            connection_id=connection_id,
            source_id=source_id,
            user_id=user_id,
            name=given["name"],
            destination_url=given["destination_url"],
            status=Status.ACTIVE,
            created_at=now,
            updated_at=now,
            secrets=(self._sealed(connection_id, secret),),
        )
        return self._edited(bare, given)

    def _edited(self, before: Connection, given: Mapping[str, Any]) -> Connection:
        fields = with_defaults(given)
        if "headers" in given:
            kept = {name: before.headers[name] for name in kept_headers(given)}
            values = {name: value for name, value in fields["headers"].items() if name not in kept}
            fields["headers"] = kept | store.sealed_headers(before.connection_id, values, self._sealer)
        if fields.get("ordered", before.ordered) is not before.ordered:
            fields["ordered_cursor"] = self._ordered_from_now(before) if fields["ordered"] else None
        if fields.get("destination_url", before.destination_url) != before.destination_url:
            fields["breaker"] = None  # it was that of another destination
        return self._replaced(before, **fields)

    def _ordered_from_now(self, connection: Connection) -> str:
        return store.ordered_from(connection.source_id, self._clock.now_ms())

    def _replaced(self, before: Connection, **fields: Any) -> Connection:
        return msgspec.structs.replace(before, updated_at=rfc3339(self._clock.now_ms()), **fields)

    async def _change(self, connection: Connection, edit: Edit) -> Connection:
        for _ in range(CHANGES_TRIED_MAX):
            update = store.connection_changed(connection, edit(connection))
            if not update.changes:
                return connection
            outcome = await self._items.update(
                update.table, update.key, *update.changes, condition=update.condition
            )
            if isinstance(outcome, Written):
                return _live(outcome.item, connection.connection_id)
            connection = _live(outcome.current, connection.connection_id)
        raise changed_meanwhile()

    async def _check(self, given: Mapping[str, Any], before: Connection | None) -> None:
        """In a thread: to compile the largest transform takes a good part of a second."""
        await asyncio.to_thread(check_connection, given, before)

    async def _vet(self, destination_url: str) -> Sequence[FieldProblem]:
        """A warning for a name that is not known now: it may be later. Raises InvalidInput for an address
        that is never called."""
        try:
            async with asyncio.timeout(self._vet_seconds_max):
                await self._client.vet(destination_url)
        except EgressRefused as refused:
            problem = FieldProblem("destination_url", refused.code, refused.message)
            raise InvalidInput(refused.message, problem, code=refused.code) from refused
        except (CallFailed, TimeoutError) as failed:
            said = failed.message if isinstance(failed, CallFailed) else "The name server did not answer."
            detail = f"{said} The connection is kept, and deliveries look the name up again."
            return [FieldProblem("destination_url", "dns_failed", detail)]
        return []

    def _sealed(self, connection_id: str, secret: str) -> HeldSecret:
        return HeldSecret(self._sealer.seal(secret.encode(), store.secret_context(connection_id)))


def _live(item: Mapping[str, Any] | None, connection_id: str) -> Connection:
    connection = None if item is None else store.connection_of(item)
    if connection is None or connection.status is Status.DELETED:
        raise connection_not_found(connection_id)
    return connection
