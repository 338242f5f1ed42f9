"""PostgreSQL's LISTEN and NOTIFY over one connection of its own, made anew whenever it is lost.

- A notification reaches every process that listens when it is sent, the sender's own too, about in the order
  of the commits. What is sent while a process is not connected never reaches it.
- After each connection that is made, the first one too, every listener's `missed` is called: before this it
  may not have heard all, from here on it does.
- A connection that breaks is noticed at once; one that falls silent, within twice `CHECK_SECONDS`.
- `notify` never waits for a connection: without one it raises `Unavailable`, and nothing was sent.

Handlers are called in the event loop and must not block; one that raises is logged, and harms no other.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain

import asyncpg

from crossdock.engines.sql.failures import database_unavailable
from crossdock.engines.sql.target import CONNECTION_ERRORS, Connection, PostgresTarget, connect
from crossdock.kit.backoff import Backoff, Uniform
from crossdock.kit.errors import Unavailable
from crossdock.kit.logging import fields

log = logging.getLogger("crossdock.notifications")

PAYLOAD_BYTES_MAX = 7_999
"""PostgreSQL's own limit."""
CHECK_SECONDS = 5.0
RECONNECT = Backoff(base_seconds=0.2, cap_seconds=5.0)

# Of the server's own errors one is that the queue of notifications is full.
_ERRORS: tuple[type[Exception], ...] = (*CONNECTION_ERRORS, asyncpg.PostgresError, Unavailable)
# One statement for all, so that they are one commit and one round trip.
_NOTIFY = "SELECT pg_notify($1, payload) FROM unnest($2::text[]) AS payload"


@dataclass(frozen=True, slots=True)
class _Listener:
    handle: Callable[[str], None]
    missed: Callable[[], None]


class Notifications:
    """`listen` first, then `run`; `notify` works while it runs."""

    def __init__(
        self,
        target: PostgresTarget,
        *,
        check_seconds: float = CHECK_SECONDS,
        uniform: Uniform = random.random,
    ) -> None:
        self._target = target
        self._check_seconds = check_seconds
        self._uniform = uniform
        self._listeners: dict[str, list[_Listener]] = {}
        self._connection: Connection | None = None
        self._failures = 0
        self._turn = asyncio.Lock()
        """A connection does one thing at a time."""

    @property
    def listening(self) -> bool:
        """Is what is sent now heard, as far as is known?"""
        return self._connection is not None

    def listen(
        self, channel: str, handle: Callable[[str], None], missed: Callable[[], None] = lambda: None
    ) -> None:
        """`handle` gets each payload."""
        if self._connection is not None:
            raise RuntimeError("listeners come before the connection")
        self._listeners.setdefault(channel, []).append(_Listener(handle, missed))

    async def notify(self, channel: str, payloads: Sequence[str]) -> None:
        """All of them or, where Unavailable is raised, most likely none. ValueError: one is too long."""
        if any(len(payload.encode()) > PAYLOAD_BYTES_MAX for payload in payloads):
            raise ValueError(f"a payload has at most {PAYLOAD_BYTES_MAX} bytes")
        connection = self._connection
        if connection is None:
            raise Unavailable("notifications_unavailable", "Processes can't be notified now.")
        try:
            await self._ask(connection, _NOTIFY, channel, list(payloads))
        except _ERRORS as error:
            raise database_unavailable(error) from error

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self._hear(await connect(self._target))
            except _ERRORS as error:
                log.warning("notifications are not heard; connecting", extra=fields(reason=str(error)))
            self._failures += 1
            await asyncio.sleep(RECONNECT.delay_seconds(self._failures, self._uniform))

    async def _hear(self, connection: Connection) -> None:
        """Until the connection is lost: raises what says so."""
        lost = asyncio.Event()
        connection.add_termination_listener(lambda _: lost.set())
        try:
            async with asyncio.timeout(self._check_seconds):
                for channel in self._listeners:
                    await connection.add_listener(channel, self._heard)
            self._connection, self._failures = connection, 0
            for listener in chain.from_iterable(self._listeners.values()):
                _call(listener.missed)
            while True:
                with suppress(TimeoutError):
                    await asyncio.wait_for(lost.wait(), self._check_seconds)
                await self._ask(connection, "SELECT 1")
        finally:
            self._connection = None
            connection.terminate()

    async def _ask(self, connection: Connection, statement: str, *arguments: object) -> None:
        async with asyncio.timeout(self._check_seconds), self._turn:
            await connection.execute(statement, *arguments)

    def _heard(self, _connection: object, _pid: int, channel: str, payload: object) -> None:
        for listener in self._listeners[channel]:
            _call(listener.handle, str(payload))


def _call(handler: Callable[..., None], *arguments: str) -> None:
    try:
        handler(*arguments)
    except Exception:
        log.exception("a handler of notifications failed")
