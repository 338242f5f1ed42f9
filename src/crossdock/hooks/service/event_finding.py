"""Events and sources as whoever asks may see them; what is somebody else's is not there."""

from __future__ import annotations

import asyncio
import re

from crossdock.engines.items.port import Items, Key
from crossdock.hooks.model import Event
from crossdock.hooks.service.finding import INDEX_POLL_SECONDS, INDEX_POLLS, is_source_id, source_not_found
from crossdock.hooks.service.in_use import SourceInUse, SourcesInUse
from crossdock.hooks.store.deliveries import delivery_of
from crossdock.hooks.store.events import event_by_id, event_of, records_of_event
from crossdock.hooks.store.tables import EVENTS, event_key
from crossdock.http.principals import Principal
from crossdock.kit.errors import NotFound

_EVENT_ID = re.compile(r"evt_[0-9A-Za-z_-]{16}")


class EventFinder:
    def __init__(self, items: Items, sources: SourcesInUse) -> None:
        self._items = items
        self._sources = sources

    async def event(self, principal: Principal, event_id: str) -> Event:
        """Raises NotFound."""
        key = await self._key(event_id) if _EVENT_ID.fullmatch(event_id) else None
        item = None if key is None else await self._items.get(EVENTS, key)
        if item is None:
            raise event_not_found(event_id)
        event = event_of(item)
        if not principal.sees(event.user_id):
            raise event_not_found(event_id)
        return event

    async def source(self, principal: Principal, source_id: str) -> SourceInUse:
        """A live one. Raises NotFound."""
        source = await self._sources.find(source_id) if is_source_id(source_id) else None
        if source is None or not principal.sees(source.source.user_id):
            raise source_not_found(source_id)
        return source

    async def _key(self, event_id: str) -> Key | None:
        """An event accepted a moment ago may not be in the index yet. Its deliveries, which are found without
        one, know where it is."""
        for poll in range(INDEX_POLLS + 1):
            if poll:
                await asyncio.sleep(INDEX_POLL_SECONDS)
            page = await self._items.query(event_by_id(event_id))
            if page.items:
                return EVENTS.key_of(page.items[0])
            records = await self._items.query(records_of_event(event_id, "DLV#", 1))
            if records.items:
                delivery = delivery_of(records.items[0])
                return event_key(delivery.source_id, delivery.received_at, event_id)
        return None


def event_not_found(event_id: str) -> NotFound:
    return NotFound("event_not_found", f"There is no event {event_id}.")
