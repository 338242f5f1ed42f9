"""Use cases of workspaces, keys and settings. Each method is one unit of work, decided by its principal.

A workspace's key sees its own workspace and its keys, and nothing of another: that is 404, as if it weren't
there. Operator keys see everything. What changes who may do what is forgotten from the caches at once here,
and within 5 s in other processes.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import msgspec

from crossdock.access import store
from crossdock.access.model import ApiKey, CreatedKey, Setting, Workspace
from crossdock.access.resolvers import KeyResolver, SessionResolver
from crossdock.access.rules import (
    OPERATOR_LABEL,
    check_operator_key,
    fingerprint,
    is_setting_key,
    make_key,
    moment,
)
from crossdock.engines.sql.target import Connection, Pool
from crossdock.http.idempotency import IdempotentRequest, Once, Stored
from crossdock.http.idempotency_sql import SqlIdempotency
from crossdock.http.pages import Page, PageRequest, page_of
from crossdock.http.principals import Principal, require_sight
from crossdock.kit.clock import Clock
from crossdock.kit.errors import Conflict, FieldProblem, InvalidInput, MalformedRequest, NotFound
from crossdock.kit.ids import Random, uuid7

_WORKSPACE = Stored(Workspace)
_CREATED_KEY = Stored(CreatedKey, secrets=("key",))

# Every node of an installation has the same key in its configuration: one at a time writes it.
_OPERATOR_KEY_LOCK = 0x6F706B6579


class AccessService:
    def __init__(
        self,
        pool: Pool,
        idempotency: SqlIdempotency,
        *,
        keys: KeyResolver,
        sessions: SessionResolver,
        clock: Clock,
        random: Random,
    ) -> None:
        """`pool` sees the schema `derrick` first."""
        self._pool = pool
        self._idempotency = idempotency
        self._keys = keys
        self._sessions = sessions
        self._clock = clock
        self._random = random

    async def ensure_operator_key(self, raw: str) -> bool:
        """Make the key of the configuration the operator's, and the one it replaces worthless.

        True if anything changed. Raises ValueError for a key that doesn't look like one.
        """
        check_operator_key(raw)
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock($1)", _OPERATOR_KEY_LOCK)
            changed = await store.put_operator_key(connection, self._new_id(), fingerprint(raw), self._now())
        self._forget()
        return changed

    # --- workspaces ---------------------------------------------------------------------------------

    async def create_workspace(self, name: str, request: IdempotentRequest | None) -> Once[Workspace]:
        async def insert(connection: Connection) -> Workspace:
            return await store.insert_workspace(connection, self._new_id(), name, self._now())

        return await self._idempotency.once(request, _WORKSPACE, insert)

    async def workspace(self, principal: Principal, workspace_id: UUID) -> Workspace:
        require_sight(principal, str(workspace_id), _no_workspace())
        found = await store.workspace(self._pool, workspace_id)
        if found is None:
            raise _no_workspace()
        return found

    async def workspaces(self, principal: Principal, page: PageRequest) -> Page[Workspace]:
        rows = await store.workspaces(self._pool, _own(principal), _before(page), page.limit + 1)
        return page_of(rows, page.limit, lambda row: {"id": str(row.id)})

    async def rename_workspace(self, workspace_id: UUID, name: str) -> Workspace:
        renamed = await store.rename_workspace(self._pool, workspace_id, name, self._now())
        if renamed is None:
            raise _no_workspace()
        return renamed

    async def delete_workspace(self, workspace_id: UUID) -> None:
        """Its keys stop working; its rows stay."""
        if not await store.delete_workspace(self._pool, workspace_id, self._now()):
            raise _no_workspace()
        self._forget()

    # --- keys ---------------------------------------------------------------------------------------

    async def create_key(
        self,
        principal: Principal,
        label: str,
        workspace_id: UUID | None,
        request: IdempotentRequest | None,
    ) -> Once[CreatedKey]:
        """A workspace's key makes keys of its workspace; an operator's, by default, operator's keys."""
        _refuse_reserved(label)
        scope = workspace_id or _own(principal)
        if scope is not None:
            require_sight(principal, str(scope), _no_workspace())

        async def insert(connection: Connection) -> CreatedKey:
            if scope is not None and not await store.hold_workspace(connection, scope):
                raise _no_workspace()
            raw = make_key(self._random)
            row = await store.insert_key(
                connection,
                self._new_id(),
                fingerprint(raw),
                label=label,
                workspace_id=scope,
                now=self._now(),
            )
            return CreatedKey(**msgspec.structs.asdict(row), key=raw)

        return await self._idempotency.once(request, _CREATED_KEY, insert)

    async def key(self, principal: Principal, key_id: UUID) -> ApiKey:
        found = await store.key(self._pool, key_id)
        if found is None:
            raise _no_key()
        require_sight(principal, _tenant_of(found), _no_key())
        return found

    async def keys(self, principal: Principal, workspace_id: UUID | None, page: PageRequest) -> Page[ApiKey]:
        """All that the principal sees, or those of one workspace."""
        if workspace_id is not None:
            require_sight(principal, str(workspace_id), _no_workspace())
        scope = workspace_id or _own(principal)
        rows = await store.keys(self._pool, scope, _before(page), page.limit + 1)
        return page_of(rows, page.limit, lambda row: {"id": str(row.id)})

    async def relabel_key(self, principal: Principal, key_id: UUID, label: str) -> ApiKey:
        _refuse_reserved(label)
        _refuse_configured(await self.key(principal, key_id))
        changed = await store.relabel_key(self._pool, key_id, label, self._now())
        if changed is None:
            raise _no_key()
        return changed

    async def revoke_key(self, principal: Principal, key_id: UUID) -> ApiKey:
        """For good. Revoking again is no error."""
        _refuse_configured(await self.key(principal, key_id))
        revoked = await store.revoke_key(self._pool, key_id, self._now())
        if revoked is None:
            raise _no_key()
        self._forget()
        return revoked

    # --- settings -----------------------------------------------------------------------------------

    async def setting(self, key: str) -> Setting:
        found = await store.setting(self._pool, key) if is_setting_key(key) else None
        if found is None:
            raise _no_setting()
        return found

    async def settings(self, page: PageRequest) -> Page[Setting]:
        after = page.after({"key": str})
        rows = await store.settings(self._pool, None if after is None else str(after["key"]), page.limit + 1)
        return page_of(rows, page.limit, lambda row: {"key": row.key})

    async def put_setting(self, key: str, value: str) -> Setting:
        if not is_setting_key(key):
            problem = FieldProblem(
                "key", "wrong_format", "A lower-case letter, then up to 63 of a-z, 0-9, '_' and '.'."
            )
            raise InvalidInput("The setting's key is not valid.", problem)
        return await store.put_setting(self._pool, key, value, self._now())

    async def delete_setting(self, key: str) -> None:
        if not is_setting_key(key) or not await store.delete_setting(self._pool, key):
            raise _no_setting()

    def _new_id(self) -> UUID:
        return uuid7(self._clock.now_ms(), self._random)

    def _now(self) -> datetime:
        return moment(self._clock.now_ms())

    def _forget(self) -> None:
        self._keys.forget()
        self._sessions.forget()


def _own(principal: Principal) -> UUID | None:
    return None if principal.tenant is None else UUID(principal.tenant)


def _before(page: PageRequest) -> UUID | None:
    after = page.after({"id": str})
    if after is None:
        return None
    try:
        return UUID(str(after["id"]))
    except ValueError:
        raise MalformedRequest("invalid_cursor", "The cursor is not one this list gave out.") from None


def _tenant_of(key: ApiKey) -> str | None:
    return None if key.workspace_id is None else str(key.workspace_id)


def _refuse_reserved(label: str) -> None:
    if label == OPERATOR_LABEL:
        problem = FieldProblem("label", "reserved", f"{label!r} is the label of the configured operator key.")
        raise InvalidInput("The label is reserved.", problem)


def _refuse_configured(key: ApiKey) -> None:
    if key.label == OPERATOR_LABEL and key.workspace_id is None and key.is_active:
        raise Conflict(
            "operator_key_configured",
            "This key comes from the configuration: change it there, and the old one stops working.",
        )


def _no_workspace() -> NotFound:
    return NotFound("workspace_not_found", "There is no such workspace.")


def _no_key() -> NotFound:
    return NotFound("key_not_found", "There is no such key.")


def _no_setting() -> NotFound:
    return NotFound("setting_not_found", "There is no such setting.")
