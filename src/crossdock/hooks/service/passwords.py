"""Hashing passwords beside the event loop, a few at a time.

Two threads hash at once and a few requests wait their turn; whoever comes then is told to come back. So a
flood of logins takes neither all processors nor memory without end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from crossdock.hooks.rules import passwords
from crossdock.http.idempotency import IdempotentRequest
from crossdock.kit.errors import Unavailable
from crossdock.kit.ids import Random

AT_ONCE = 2
WAITING_MAX = 16

T = TypeVar("T")


class PasswordHasher:
    def __init__(self, random: Random, cost: int = passwords.COST) -> None:
        self._random = random
        self._cost = cost
        self._nobodys_hash = passwords.nobodys_hash(cost)
        self._threads = asyncio.Semaphore(AT_ONCE)
        self._present = 0

    async def hash(self, password: str) -> str:
        return await self._run(lambda: passwords.hash_password(password, self._cost, self._random))

    async def matches(self, password: str, password_hash: str | None) -> bool:
        """Without a hash the answer is no, and takes as long."""
        compared = password_hash or self._nobodys_hash
        fits = await self._run(lambda: passwords.is_password(password, compared))
        return fits and password_hash is not None

    async def guarded(self, request: IdempotentRequest | None) -> IdempotentRequest | None:
        """A request whose body has a password: what is kept of it, too, must be slow to search."""
        if request is None:
            return None
        scope, digest = request.scope, request.request_sha256
        slow = await self._run(lambda: passwords.stretched(digest, self._cost, scope))
        return replace(request, request_sha256=slow)

    async def _run(self, work: Callable[[], T]) -> T:
        if self._present >= AT_ONCE + WAITING_MAX:
            raise Unavailable(
                "logins_busy", "Too many passwords are being checked. Try again.", retry_after_seconds=1
            )
        self._present += 1
        # Shielded: a caller that gives up does not free the processor that its thread goes on using.
        return await asyncio.shield(asyncio.ensure_future(self._work(work)))

    async def _work(self, work: Callable[[], T]) -> T:
        try:
            async with self._threads:
                return await asyncio.to_thread(work)
        finally:
            self._present -= 1
