"""Device keys: made, listed, revoked, and turned into principals.

A raw key is 64 hexadecimal characters; stored is SHA-256(pepper + raw key). What a key was resolved to is
kept for four seconds, so a revoked one stops working within five on every node.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import OrderedDict

from crossdock.devices import store
from crossdock.devices.model import CreatedDeviceKey, DeviceKey
from crossdock.devices.rules.activity import LAST_USED_EVERY_MS, is_due
from crossdock.devices.rules.positions import KEY_POSITION, checked_key_position
from crossdock.engines.items.port import Item, Items, Refused, Update
from crossdock.http.idempotency import IdempotentRequest, Once, Stored
from crossdock.http.idempotency_items import Effect, ItemsIdempotency
from crossdock.http.pages import Page, PageRequest
from crossdock.http.principals import Principal
from crossdock.kit.clock import Clock, rfc3339
from crossdock.kit.errors import Forbidden, NotFound
from crossdock.kit.ids import Random, is_uuid4, token_hex, uuid4_text
from crossdock.kit.pagination import encode_cursor
from crossdock.kit.ttl_cache import TtlCache

INGEST = "devices:ingest"
DEVICE_PRINCIPAL = "device"

RAW_KEY = re.compile(r"[0-9a-f]{64}")
CACHED_SECONDS = 4.0
UNKNOWN_CACHED_SECONDS = 1.0
CACHE_CAPACITY = 10_000
INDEX_POLL_SECONDS = 0.1
INDEX_POLLS = 5
"""After the first look: an index lags half a second at most."""

CREATED = Stored(CreatedDeviceKey, secrets=("api_key",))


class DeviceKeys:
    def __init__(
        self, items: Items, clock: Clock, random: Random, pepper: str, idempotency: ItemsIdempotency
    ) -> None:
        self._items = items
        self._clock = clock
        self._random = random
        self._pepper = pepper
        self._idempotency = idempotency
        self._resolved: TtlCache[str, Principal] = TtlCache(
            clock,
            capacity=CACHE_CAPACITY,
            ttl_seconds=CACHED_SECONDS,
            negative_ttl_seconds=UNKNOWN_CACHED_SECONDS,
        )

    async def create(
        self, description: str | None, hardware_id: str | None, request: IdempotentRequest | None
    ) -> Once[CreatedDeviceKey]:
        async def prepare() -> Effect[CreatedDeviceKey]:
            raw, key_id, now_ms = token_hex(32, self._random), uuid4_text(self._random), self._clock.now_ms()
            put = store.new_key(key_id, self.hash_of(raw), description, hardware_id, now_ms)
            created = CreatedDeviceKey(
                key_id=key_id,
                created_at=rfc3339(now_ms),
                is_active=True,
                description=description,
                hardware_id=hardware_id,
                api_key=raw,
            )
            return Effect(created, [put])

        once = await self._idempotency.once(request, CREATED, prepare)
        assert not isinstance(once, Refused), "a fresh UUID was taken"
        return once

    async def list(self, page: PageRequest) -> Page[DeviceKey]:
        after = page.after(KEY_POSITION)
        position = None if after is None else checked_key_position(after)
        found = await self._items.query(store.keys_by_age(page.limit, position))
        current = await self._items.get_many(store.KEYS, [store.KEYS.key_of(item) for item in found.items])
        keys = [store.device_key_of(item) for item in current if item is not None]
        if found.cursor is None:
            return Page(keys, None)
        return Page(keys, encode_cursor(store.key_position(found.items[-1])))

    async def get(self, key_id: str) -> DeviceKey:
        _check_key_id(key_id)
        item = await self._items.get(store.KEYS, store.key_key(key_id))
        if item is None:
            raise _no_key(key_id)
        return store.device_key_of(item)

    async def revoke(self, key_id: str) -> DeviceKey:
        """Revoking twice is no error."""
        _check_key_id(key_id)
        outcome = await self._items.transact([store.key_revoked(key_id)])
        if isinstance(outcome, Refused):
            raise _no_key(key_id)
        # In this process it ends now; in the others when their entries are too old.
        self._resolved.invalidate_all()
        return await self.get(key_id)

    # --- resolving ---

    async def resolve(self, credential: str) -> Principal | None:
        if RAW_KEY.fullmatch(credential) is None:
            return None
        return await self._resolved.get_or_fill(self.hash_of(credential), self._find)

    def hash_of(self, raw_key: str) -> str:
        return hashlib.sha256((self._pepper + raw_key).encode()).hexdigest()

    async def _find(self, api_key_hash: str) -> Principal | None:
        item = await self._by_hash(api_key_hash)
        if item is None or item.get("is_active") is not True:
            return None
        key = store.device_key_of(item)
        return Principal(DEVICE_PRINCIPAL, key.key_id, key.hardware_id, frozenset({INGEST}))

    async def _by_hash(self, api_key_hash: str) -> Item | None:
        """The index says which key it is, the table says what it is now. A new key may not be in it yet."""
        page = await self._items.query(store.key_by_hash(api_key_hash))
        for _ in range(INDEX_POLLS):
            if page.items:
                break
            await asyncio.sleep(INDEX_POLL_SECONDS)
            page = await self._items.query(store.key_by_hash(api_key_hash))
        if not page.items:
            return None
        return await self._items.get(store.KEYS, store.KEYS.key_of(page.items[0]))


class KeyUse:
    """Says when a key's last use is worth a write: at most every five minutes, decided in memory first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._written_ms: OrderedDict[str, int] = OrderedDict()

    def used_now(self, principal: Principal) -> Update | None:
        if principal.kind != DEVICE_PRINCIPAL:
            return None
        now_ms = self._clock.now_ms()
        if not is_due(self._written_ms.get(principal.id), now_ms, LAST_USED_EVERY_MS):
            return None
        self._written_ms[principal.id] = now_ms
        if len(self._written_ms) > CACHE_CAPACITY:
            self._written_ms.popitem(last=False)
        return store.key_used(principal.id, now_ms)


def check_speaks_for(principal: Principal, hardware_id: str) -> None:
    """A key that is bound to one device speaks for no other."""
    if principal.kind == DEVICE_PRINCIPAL and principal.tenant not in (None, hardware_id):
        raise Forbidden("key_bound_to_other_device", f"This key may speak for {principal.tenant} only.")


def _check_key_id(key_id: str) -> None:
    """What can't be one is not there; a store need not be asked."""
    if not is_uuid4(key_id):
        raise _no_key(key_id)


def _no_key(key_id: str) -> NotFound:
    return NotFound("device_key_not_found", f"There is no device key {key_id}.")
