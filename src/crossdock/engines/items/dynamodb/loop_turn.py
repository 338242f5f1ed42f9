"""Puts and gets that wait in the same turn of the event loop travel together.

A call costs the CPU of marshalling some twenty items, so that 25 puts in one BatchWriteItem, or 100 gets in
one BatchGetItem, are several times cheaper than one by one. Nobody waits for company: what one turn of the
loop collected leaves when the turn ends, and a lone put or get is sent as what it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Generic, TypeVar

Entry = TypeVar("Entry")


class LoopTurn(Generic[Entry]):
    """Hands what one turn added to `send`, at most `size` at a time. `send` answers each entry itself."""

    def __init__(self, size: int, send: Callable[[list[Entry]], Coroutine[Any, Any, None]]) -> None:
        self._size = size
        self._send = send
        self._waiting: list[Entry] = []
        self._sending: set[asyncio.Task[None]] = set()

    def add(self, entry: Entry) -> None:
        self._waiting.append(entry)
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_soon(self._end_turn)

    def _end_turn(self) -> None:
        entries, self._waiting = self._waiting, []
        for chunk in chunks(entries, self._size):
            task = asyncio.create_task(self._send(chunk))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def drain(self) -> None:
        """Returns when all that was added has been sent and answered."""
        while self._waiting or self._sending:
            if self._sending:
                await asyncio.wait(self._sending)
            else:
                await asyncio.sleep(0)


def chunks(entries: Sequence[Entry], size: int) -> Iterable[list[Entry]]:
    return (list(entries[start : start + size]) for start in range(0, len(entries), size))


def settle_all(waiting: Iterable[asyncio.Future[None]], error: Exception | None) -> None:
    """Whoever gave up waiting is passed over."""
    for done in waiting:
        if not done.done():
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)
