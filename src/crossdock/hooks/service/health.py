"""What calls say of their connections: the circuit breaker's state, kept on the connection's item.

Nodes share it by reading it there. A healthy connection's success writes nothing. A change is conditional on
the state that it was worked out from; who lost the race works it out anew.
"""

from __future__ import annotations

import logging

import msgspec

from crossdock.delivery import breaker
from crossdock.engines.items.port import Items, Refused
from crossdock.hooks.model import Connection, Status
from crossdock.hooks.service.in_use import ConnectionInUse, SourcesInUse
from crossdock.hooks.store import connections as store
from crossdock.hooks.store.tables import MAIN, connection_key
from crossdock.kit.backoff import Uniform
from crossdock.kit.clock import Clock, rfc3339
from crossdock.kit.logging import fields

log = logging.getLogger("crossdock.hooks")

TRIES = 5
GAVE_UP = "Every call has failed for five days."


class ConnectionHealth:
    def __init__(self, items: Items, sources: SourcesInUse, clock: Clock, uniform: Uniform) -> None:
        self._items = items
        self._sources = sources
        self._clock = clock
        self._uniform = uniform

    async def note(self, used: ConnectionInUse, *, ok: bool) -> None:
        if ok and used.breaker == breaker.HEALTHY:
            return
        for _ in range(TRIES):
            connection = await self._read(used.connection)
            if connection is None or connection.status is not Status.ACTIVE:
                return
            state = breaker_of(connection)
            after = breaker.after(state, ok, self._clock.now_ms(), self._uniform)
            if after == state:
                return
            if breaker.gives_up(after, self._clock.now_ms()):
                await self.pause(connection, GAVE_UP)
                return
            if await self._write(connection, after):
                self._tell(connection, state, after)
                return

    async def claim_probe(self, used: ConnectionInUse) -> bool:
        """May this process make the one call that finds out whether it is better?"""
        connection = await self._read(used.connection)
        if connection is None or connection.status is not Status.ACTIVE:
            return False
        permission = breaker.allow(breaker_of(connection), self._clock.now_ms())
        if not isinstance(permission, breaker.Allowed):
            return False
        return permission.claim is None or await self._write(connection, permission.claim)

    async def pause(self, connection: Connection, reason: str) -> None:
        outcome = await self._items.transact(
            [store.connection_paused(connection, reason, rfc3339(self._clock.now_ms()))]
        )
        self._sources.forget(connection.source_id)
        if not isinstance(outcome, Refused):
            said = fields(connection_id=connection.connection_id, reason=reason)
            log.warning("a connection was paused", extra=said)

    async def _read(self, connection: Connection) -> Connection | None:
        key = connection_key(connection.source_id, connection.connection_id)
        item = await self._items.get(MAIN, key)
        return None if item is None else store.connection_of(item)

    async def _write(self, connection: Connection, after: breaker.BreakerState) -> bool:
        outcome = await self._items.transact([store.breaker_changed(connection, msgspec.to_builtins(after))])
        self._sources.forget(connection.source_id)
        return not isinstance(outcome, Refused)

    def _tell(
        self, connection: Connection, before: breaker.BreakerState, after: breaker.BreakerState
    ) -> None:
        if before.open_until_ms is None and after.open_until_ms is not None:
            log.warning("a destination keeps failing", extra=fields(connection_id=connection.connection_id))
        elif before.open_until_ms is not None and after.open_until_ms is None:
            log.info("a destination is back", extra=fields(connection_id=connection.connection_id))


def breaker_of(connection: Connection) -> breaker.BreakerState:
    return msgspec.convert(connection.breaker or {}, breaker.BreakerState)
