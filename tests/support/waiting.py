"""Waiting for what happens in its own time: as short as it takes, and never for ever."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


async def eventually(condition: Callable[[], bool], *, patience_seconds: float = 10) -> None:
    """Returns once the condition holds. Raises TimeoutError if it never does."""
    async with asyncio.timeout(patience_seconds):
        while not condition():  # noqa: ASYNC110 -- what is watched sets no event
            await asyncio.sleep(0.01)


def wait_until(condition: Callable[[], bool], *, patience_seconds: float = 10) -> None:
    """`eventually`, for tests without an event loop."""
    deadline = time.monotonic() + patience_seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"the condition did not come to hold within {patience_seconds} s")
        time.sleep(0.01)
