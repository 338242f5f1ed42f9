"""How far a load has come, and how far it may go: so that a kill always hits it while it runs.

Those who work ask `allowed` before each piece and tell `advance` after it; who disturbs them waits for
`reached`, and holds them at a point with `hold_at` until the harm is done.
"""

from __future__ import annotations

import asyncio


class Pace:
    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        self._held_at = total
        self._changed = asyncio.Condition()

    async def allowed(self) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self.done < self._held_at)

    async def advance(self, by: int) -> None:
        async with self._changed:
            self.done += by
            self._changed.notify_all()

    async def hold_at(self, point: int) -> None:
        async with self._changed:
            self._held_at = point
            self._changed.notify_all()

    async def reached(self, point: int) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self.done >= point)
