"""API keys: made and shown once, listed, deleted. Kept are SHA-256 of a key and its first 8 characters."""

from __future__ import annotations

import re
from collections.abc import Mapping

from crossdock.engines.items.port import Items, Refused
from crossdock.hooks.accounts_model import KEY_ID_PATTERN, KEYS_MAX
from crossdock.hooks.model import ApiKey, CreatedApiKey, KeyPermission
from crossdock.hooks.service.principals import (
    KEY_PREFIX,
    PERMISSIONS,
    KeyResolver,
    new_token,
    no_user,
    token_hash,
)
from crossdock.hooks.store import credentials as store
from crossdock.hooks.store.tables import MAIN, api_key_key, user_key
from crossdock.http.idempotency import IdempotentRequest, Once, Stored
from crossdock.http.idempotency_items import Effect, ItemsIdempotency
from crossdock.http.pages import Page, PageRequest, page_of
from crossdock.http.principals import Principal, require
from crossdock.kit.clock import Clock, rfc3339
from crossdock.kit.errors import Conflict, NotFound
from crossdock.kit.ids import Random, nanoid

_CREATED = Stored(CreatedApiKey, secrets=("api_key",))
_POSITION = {"created_at": str, "key_id": str}
_KEY_ID = re.compile(KEY_ID_PATTERN)
_PREFIX_CHARACTERS = 8


class ApiKeys:
    def __init__(
        self,
        items: Items,
        idempotency: ItemsIdempotency,
        resolver: KeyResolver,
        *,
        clock: Clock,
        random: Random,
    ) -> None:
        self._items = items
        self._idempotency = idempotency
        self._resolver = resolver
        self._clock = clock
        self._random = random

    async def create(
        self,
        maker: Principal,
        user_id: str,
        name: str,
        permissions: KeyPermission,
        request: IdempotentRequest | None,
    ) -> Once[CreatedApiKey]:
        """No key may do more than its maker."""
        for permission in sorted(PERMISSIONS[permissions]):
            require(maker, permission)

        async def prepare() -> Effect[CreatedApiKey]:
            raw = new_token(KEY_PREFIX, self._random)
            created = CreatedApiKey(
                key_id=f"key_{nanoid(self._random, 16)}",
                user_id=user_id,
                name=name,
                key_prefix=raw[:_PREFIX_CHARACTERS],
                permissions=permissions,
                created_at=rfc3339(self._clock.now_ms()),
                api_key=raw,
            )
            return Effect(created, store.new_key(created, token_hash(raw)))

        once = await self._idempotency.once(request, _CREATED, prepare)
        if isinstance(once, Refused):
            if once.current is None:
                raise no_user()
            raise Conflict(
                "too_many_keys", f"A user has at most {KEYS_MAX} keys. Delete one that is not used."
            )
        return once

    async def list(self, user_id: str, page: PageRequest) -> Page[ApiKey]:
        """Newest first."""
        position = page.after(_POSITION)
        found = await self._items.query(store.keys_of_user(user_id))
        if not found.items and await self._items.get(MAIN, user_key(user_id)) is None:
            raise no_user()
        keys = sorted(map(store.key_of, found.items), key=_age, reverse=True)
        if position is not None:
            keys = [key for key in keys if _age(key) < (position["created_at"], position["key_id"])]
        return page_of(keys[: page.limit + 1], page.limit, _position)

    async def delete(self, user_id: str, key_id: str) -> None:
        if _KEY_ID.match(key_id) is None:
            raise _no_key()
        item = await self._items.get(MAIN, api_key_key(user_id, key_id))
        if item is None:
            raise _no_key()
        outcome = await self._items.transact(store.key_deleted(user_id, key_id))
        self._resolver.forget(store.hash_of(item))
        if isinstance(outcome, Refused):
            raise _no_key()


def _age(key: ApiKey) -> tuple[object, object]:
    return key.created_at, key.key_id


def _position(key: ApiKey) -> Mapping[str, str | int]:
    return {"created_at": key.created_at, "key_id": key.key_id}


def _no_key() -> NotFound:
    return NotFound("key_not_found", "There is no such key.")
