"""The deliveries and fan-outs that this process holds: a fixed crew works them off.

What is handed over has a slot or a place already, so the queue is bounded by those. On stopping, what is held
is finished within a time; what is not then will be taken over by its lease's end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias

from crossdock.hooks.model import Event
from crossdock.hooks.service.deliverer import Deliverer
from crossdock.hooks.service.fan_out import FanOut, Job
from crossdock.hooks.service.in_use import SourceInUse

log = logging.getLogger("crossdock.hooks")

FAN_OUTS_WAITING_MAX = 256
STOP_SECONDS_MAX = 15.0
FAN_OUTS_AT_ONCE = 8

_Held: TypeAlias = "tuple[Event, SourceInUse]"


class Crew:
    def __init__(self, deliverer: Deliverer, fan_out: FanOut, size: int) -> None:
        self._deliverer = deliverer
        self._fanning_out = fan_out
        self._size = size
        self._jobs: asyncio.Queue[Job] = asyncio.Queue()
        self._events: asyncio.Queue[_Held] = asyncio.Queue()
        self._changed = asyncio.Event()

    # --- handing over -------------------------------------------------------------------------------

    def deliver(self, job: Job) -> None:
        """Its slot is taken, and will be given back."""
        self._jobs.put_nowait(job)

    def fan_out(self, event: Event, source: SourceInUse) -> None:
        self._events.put_nowait((event, source))

    def has_room(self) -> bool:
        """For another event to fan out."""
        return self._events.qsize() < FAN_OUTS_WAITING_MAX

    async def delivered(self) -> None:
        """Returns after a delivery has ended."""
        self._changed.clear()
        await self._changed.wait()

    async def idle(self) -> None:
        """Returns when nothing is held any more."""
        await self._events.join()
        await self._jobs.join()

    # --- working ------------------------------------------------------------------------------------

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(self._deliver()) for _ in range(self._size)]
        tasks += [asyncio.create_task(self._fan_out_events()) for _ in range(FAN_OUTS_AT_ONCE)]
        try:
            yield
        finally:
            with suppress(TimeoutError):
                async with asyncio.timeout(STOP_SECONDS_MAX):
                    await self.idle()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _deliver(self) -> None:
        while True:
            job = await self._jobs.get()
            try:
                await self._deliverer.deliver(job)
            finally:
                self._jobs.task_done()
                self._changed.set()

    async def _fan_out_events(self) -> None:
        while True:
            event, source = await self._events.get()
            try:
                for job in await self._fanning_out.run(event, source):
                    self.deliver(job)
            except Exception as error:
                log.warning("an event is left to be taken over: %s", error, exc_info=error)
            finally:
                self._events.task_done()
