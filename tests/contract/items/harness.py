"""What a backend brings to be held to the contract: nothing else in the suite knows which one it is."""

from __future__ import annotations

import time
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from tests.contract.items.tables import Tables

from crossdock.engines.items.port import ExpiryHandler, Items, Table


class ShiftedClock:
    """The real time, plus what a test has moved it by."""

    def __init__(self) -> None:
        self._shift_ms = 0

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self._shift_ms

    def monotonic(self) -> float:
        return time.monotonic() + self._shift_ms / 1000

    def now_seconds(self) -> int:
        return self.now_ms() // 1000

    def advance(self, seconds: float) -> None:
        self._shift_ms += int(seconds * 1000)

    def reset(self) -> None:
        self._shift_ms = 0


class Harness(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def tables(self) -> Tables: ...

    @property
    def items(self) -> Items: ...

    @property
    def clock(self) -> ShiftedClock: ...

    @property
    def expiry_patience_seconds(self) -> float:
        """How long to wait for an expiry to be told: backends look for them every few seconds."""

    async def another(self) -> Items:
        """A second instance with connections of its own, as another process would have."""

    def telling(self, table: Table, handler: ExpiryHandler) -> AbstractAsyncContextManager[None]:
        """While entered, the backend's background role runs and tells `handler` what expired."""

    async def settle(self) -> None:
        """Counts the tallies that wait, where the backend has any waiting, without its background role."""

    def counting(self) -> AbstractAsyncContextManager[None]:
        """While entered, the backend's background role runs and counts tallies."""
