"""Devices: registered, listed, changed, deleted.

Registration is a put if absent, so it may be repeated: the record keeps its `confirmation_id`,
`first_registered_at` and the operator's `friendly_name`, and takes the rest from the newest.

Deleting marks the record first; from then on the device is gone for everyone. Its readings are purged after,
a part of them at once and the rest by the role, which takes the record away last, when no process can still
know the device from its cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from crossdock.devices import store
from crossdock.devices.model import Device, DeviceStatus
from crossdock.devices.rules.positions import DEVICE_POSITION, checked_device_position
from crossdock.devices.service.directory import TTL_SECONDS, DeviceDirectory
from crossdock.devices.service.keys import KeyUse
from crossdock.devices.service.purge import Purge
from crossdock.engines.items.port import Change, Item, Items, Refused, Remove, Set, Written
from crossdock.http.idempotency import IdempotentRequest, Once, Stored
from crossdock.http.idempotency_items import Effect, ItemsIdempotency
from crossdock.http.pages import Page, PageRequest
from crossdock.http.principals import Principal
from crossdock.kit.clock import Clock
from crossdock.kit.errors import Conflict, NotFound, Unavailable
from crossdock.kit.ids import Random, uuid4_text
from crossdock.kit.pagination import encode_cursor

EXAMINED_TOGETHER = 200
EXAMINED_MAX = 5_000
PURGED_AT_ONCE_MAX = 1_000
FINISHED_TOGETHER = 500
GONE_AFTER_MS = int(TTL_SECONDS * 1000) + 15_000
"""When no cache entry can be left that lets readings of a deleted device in."""


class Registered(msgspec.Struct, frozen=True):
    device: Device
    is_new: bool


REGISTERED = Stored(Registered)


class Devices:
    def __init__(
        self,
        items: Items,
        clock: Clock,
        random: Random,
        directory: DeviceDirectory,
        *,
        key_use: KeyUse,
        idempotency: ItemsIdempotency,
    ) -> None:
        self._items = items
        self._clock = clock
        self._random = random
        self._directory = directory
        self._key_use = key_use
        self._idempotency = idempotency
        self._purge = Purge(items)

    async def register(
        self,
        hardware_id: str,
        sent: Mapping[str, Any],
        principal: Principal,
        request: IdempotentRequest | None,
    ) -> Once[Registered]:
        async def prepare() -> Effect[Registered]:
            now_ms = self._clock.now_ms()
            put = store.new_device(hardware_id, sent, uuid4_text(self._random), now_ms)
            return Effect(Registered(store.device_of(put.item, now_ms), is_new=True), [put])

        once = await self._idempotency.once(request, REGISTERED, prepare)
        if isinstance(once, Refused):
            once = Once(Registered(await self._register_again(hardware_id, sent), is_new=False))
        # Somebody may be waiting for a look that was taken before.
        self._directory.forget(hardware_id)
        used = self._key_use.used_now(principal)
        if used is not None:
            with suppress(Unavailable):  # the registration stands; the next request notes the use
                await self._items.transact([used])
        return once

    async def _register_again(self, hardware_id: str, sent: Mapping[str, Any]) -> Device:
        now_ms = self._clock.now_ms()
        for seen in (True, False):  # a clock behind another node's may not move last_seen_at back
            update = store.registered_again(hardware_id, sent, now_ms, seen=seen)
            outcome = await self._items.update(
                update.table, update.key, *update.changes, condition=update.condition
            )
            if isinstance(outcome, Written) and outcome.item is not None:
                return store.device_of(outcome.item, now_ms)
        raise Conflict(
            "device_being_deleted",
            f"{hardware_id} is being deleted; register it again in a minute.",
            retry_after_seconds=GONE_AFTER_MS / 1000,
        )

    async def get(self, hardware_id: str) -> Device:
        item = await self._items.get(store.DEVICES, store.device_key(hardware_id))
        if item is None or store.is_deleted(item):
            raise device_not_found(hardware_id)
        return store.device_of(item, self._clock.now_ms())

    async def list(self, status: DeviceStatus | None, page: PageRequest) -> Page[Device]:
        """Newest activity first. With a status, a page may end early when much had to be passed over."""
        after = page.after(DEVICE_POSITION)
        position = None if after is None else checked_device_position(after)
        found: list[Device] = []
        for _ in range(EXAMINED_MAX // EXAMINED_TOGETHER):
            limit = page.limit if status is None else EXAMINED_TOGETHER
            part = await self._items.query(store.devices_by_activity(limit, position))
            for indexed, device in zip(part.items, await self._current(part.items), strict=True):
                if len(found) == page.limit:
                    return Page(found, _encoded(position))
                position = store.device_position(indexed)
                if device is not None and (status is None or device.status is status):
                    found.append(device)
            if part.cursor is None:
                return Page(found, None)
            if len(found) == page.limit:
                break
        return Page(found, _encoded(position))

    async def _current(self, indexed: Sequence[Item]) -> Sequence[Device | None]:
        """The index may be late, and does not know yet what was deleted: the table does."""
        now_ms = self._clock.now_ms()
        keys = [store.DEVICES.key_of(item) for item in indexed]
        return [
            None if item is None or store.is_deleted(item) else store.device_of(item, now_ms)
            for item in await self._items.get_many(store.DEVICES, keys)
        ]

    async def change(self, hardware_id: str, fields: Mapping[str, Any]) -> Device:
        """`fields`: friendly_name (None removes it), offline_after_seconds; only those given change."""
        if not fields:
            return await self.get(hardware_id)
        changes: tuple[Change, ...] = tuple(
            Remove(name) if value is None else Set(name, value) for name, value in fields.items()
        )
        update = store.device_changed(hardware_id, changes)
        outcome = await self._items.update(update.table, update.key, *changes, condition=update.condition)
        if isinstance(outcome, Refused) or outcome.item is None:
            raise device_not_found(hardware_id)
        self._directory.forget(hardware_id)
        return store.device_of(outcome.item, self._clock.now_ms())

    async def delete(self, hardware_id: str) -> None:
        outcome = await self._items.transact([store.device_deleted(hardware_id, self._clock.now_ms())])
        if isinstance(outcome, Refused):
            raise device_not_found(hardware_id)
        self._directory.forget(hardware_id)
        with suppress(Unavailable):  # it is deleted; what is left of its readings is the role's business
            await self._purge.run(hardware_id, PURGED_AT_ONCE_MAX)

    async def finish_deletions(self) -> int:
        """What the role does: purge what is left of deleted devices. How many are gone for good now."""
        gone = 0
        page = await self._items.query(store.devices_being_deleted(FINISHED_TOGETHER))
        for indexed in page.items:
            device = await self._items.get(store.DEVICES, store.DEVICES.key_of(indexed))
            if device is None or not store.is_deleted(device):
                continue
            # Told before the purge: what comes in while it runs is left to the next round.
            is_last_round = self._clock.now_ms() - store.deleted_ms(device) >= GONE_AFTER_MS
            await self._purge.run(str(device["hardware_id"]))
            if is_last_round:
                await self._items.transact([store.device_gone(device)])
                gone += 1
        return gone


def _encoded(position: Mapping[str, str] | None) -> str | None:
    return None if position is None else encode_cursor(position)


def device_not_found(hardware_id: str) -> NotFound:
    return NotFound("device_not_found", f"There is no device {hardware_id}.")
