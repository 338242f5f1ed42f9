"""Work that goes on only while a lease is held."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from crossdock.engines.leases import Lease

Result = TypeVar("Result")


async def while_held(lease: Lease, work: Coroutine[Any, Any, Result]) -> Result | None:
    """What `work` returns; None if the lease was lost, and it has been cancelled."""
    task = asyncio.create_task(work)
    lost = asyncio.create_task(lease.lost.wait())
    try:
        await asyncio.wait({task, lost}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        for each in (task, lost):
            each.cancel()
        await asyncio.gather(task, lost, return_exceptions=True)
