"""Background roles: work that goes on as long as the process, most of it on one node at a time.

A leased role runs where its lease is held. When the lease is lost the role is cancelled before another node
can start it; when its node dies, another starts it within two ttls. A role that fails or returns is started
again after a pause that doubles up to a minute; its neighbours don't notice. While the database is away,
leased roles stop and are tried again in the same way.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from crossdock.engines.leases import Lease, Leases
from crossdock.kit.backoff import Backoff, Uniform
from crossdock.kit.errors import Unavailable
from crossdock.kit.logging import fields
from crossdock.kit.metrics import counter, gauge

log = logging.getLogger("crossdock.roles")

ROLE_ENDS = counter("role_ends_total", "Background roles that ended, by how.", ("role", "how"))
ROLES_RUNNING = gauge("role_running", "Whether a background role runs, over all processes.", ("role",))

LEASE_TTL_SECONDS = 15.0
BACKOFF = Backoff(base_seconds=1.0, cap_seconds=60.0)
# A role that ran this long was well: its next failure counts as the first.
WELL_AFTER_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Role:
    """`run` goes on until it is cancelled, and lets go of everything then."""

    name: str
    run: Callable[[], Coroutine[Any, Any, None]]
    leased: bool = True


async def run_roles(
    roles: Sequence[Role],
    leases: Leases,
    *,
    ttl_seconds: float = LEASE_TTL_SECONDS,
    backoff: Backoff = BACKOFF,
    uniform: Uniform = random.random,
) -> None:
    """Runs until cancelled; then every role has ended and every lease is released."""
    async with asyncio.TaskGroup() as group:
        for role in roles:
            keeper = _Keeper(role, leases, ttl_seconds, backoff, uniform)
            group.create_task(keeper.run_forever(), name=f"role {role.name}")


class _Keeper:
    def __init__(
        self, role: Role, leases: Leases, ttl_seconds: float, backoff: Backoff, uniform: Uniform
    ) -> None:
        self._role = role
        self._leases = leases
        self._ttl_seconds = ttl_seconds
        self._backoff = backoff
        self._uniform = uniform

    async def run_forever(self) -> None:
        failures = 0
        while True:
            started_at = self._leases.clock.monotonic()
            try:
                ended = await self._run_once()
            except Unavailable as error:
                ended = "failed"
                log.warning(
                    "a background role can't work", extra=fields(role=self._role.name, reason=str(error))
                )
            except Exception:
                ended = "failed"
                log.exception("a background role failed", extra=fields(role=self._role.name))
            if ended == "waiting":
                # Half to one and a half thirds of the ttl, so that many nodes don't ask in step.
                await asyncio.sleep(self._ttl_seconds / 3 * (0.5 + self._uniform()))
                continue
            ROLE_ENDS.inc(self._role.name, ended)
            if self._leases.clock.monotonic() - started_at >= WELL_AFTER_SECONDS:
                failures = 0
            failures += 1
            await asyncio.sleep(self._backoff.delay_seconds(failures, self._uniform))

    async def _run_once(self) -> str:
        if not self._role.leased:
            return await self._run(None)
        lease = await self._leases.acquire(f"role:{self._role.name}", self._ttl_seconds)
        if lease is None:
            return "waiting"
        async with lease:
            return await self._run(lease)

    async def _run(self, lease: Lease | None) -> str:
        """Until the role ends ("returned", or its exception) or the lease is lost ("lost")."""
        log.info("a background role starts", extra=fields(role=self._role.name))
        work = asyncio.create_task(self._role.run(), name=f"role {self._role.name} at work")
        loss = asyncio.create_task((lease.lost if lease else asyncio.Event()).wait())
        ROLES_RUNNING.inc(self._role.name)
        try:
            await asyncio.wait((work, loss), return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
                log.warning("a background role returned", extra=fields(role=self._role.name))
                return "returned"
            return "lost"
        finally:
            ROLES_RUNNING.dec(self._role.name)
            loss.cancel()
            if not work.done():
                await _stop(work)


async def _stop(work: asyncio.Task[None]) -> None:
    """Waits for the role to let go. What it raises on its way out is told, not passed on."""
    work.cancel()
    await asyncio.wait((work,))
    if not work.cancelled() and (error := work.exception()) is not None:
        log.error("a background role failed while it was stopped", exc_info=error)
