"""One delivery, from its lease to its verdict: prepare, call, decide, write down.

Whoever hands over a job holds its lease and its slot. A job that dies with its process is taken over when
the lease ends. What goes wrong inside is logged and left to that, too: a lease that ends is tried again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TypeAlias

from crossdock.delivery.calling import Caller
from crossdock.delivery.decide import decide
from crossdock.delivery.limits import Slots
from crossdock.delivery.model import CallResult, GaveUp, GaveUpReason, Outbound
from crossdock.hooks.model import Delivery, DeliveryState
from crossdock.hooks.rules.outbound import outbound_message
from crossdock.hooks.rules.outcomes import after_call, attempt_of_call, not_after_ms, without_call
from crossdock.hooks.rules.providers.recipe import ALWAYS_CREDENTIALS
from crossdock.hooks.rules.transforms import TransformFailed
from crossdock.hooks.service.fan_out import Job
from crossdock.hooks.service.finishing import Finisher, Kept
from crossdock.hooks.service.health import ConnectionHealth
from crossdock.kit.backoff import Uniform
from crossdock.kit.clock import Clock
from crossdock.kit.logging import fields
from crossdock.kit.metrics import counter

log = logging.getLogger("crossdock.hooks")

DELIVERIES = counter(
    "hooks_deliveries_total", "Calls made to destinations, by what became of them.", ("outcome",)
)


OnFinished: TypeAlias = Callable[[Delivery, "int | None"], None]
"""A delivery as it is now, and the status that its destination answered, if it did."""


class Deliverer:
    def __init__(
        self,
        caller: Caller,
        *,
        finisher: Finisher,
        health: ConnectionHealth,
        slots: Slots[str],
        clock: Clock,
        uniform: Uniform,
        on_finished: OnFinished,
    ) -> None:
        self._caller = caller
        self._finisher = finisher
        self._health = health
        self._slots = slots
        self._clock = clock
        self._uniform = uniform
        self._on_finished = on_finished

    async def deliver(self, job: Job) -> Delivery | None:
        """The delivery as it is now; None if that is somebody else's to say, or unknown."""
        try:
            return await self._deliver(job)
        except Exception as error:
            said = fields(event_id=job.delivery.event_id, connection_id=job.delivery.connection_id)
            log.warning("a delivery is left to be taken over: %s", error, extra=said, exc_info=error)
            return None
        finally:
            self._slots.release(job.connection.connection_id)

    async def _deliver(self, job: Job) -> Delivery | None:
        now_ms, last_ms = self._clock.now_ms(), not_after_ms(job.delivery.expires_at)
        if now_ms >= last_ms:
            reason = GaveUpReason.RETENTION.value
            return await self._finish(job, without_call(job.delivery, DeliveryState.EXHAUSTED, reason), None)
        try:
            outbound = outbound_of(job, now_ms)
        except TransformFailed as failed:
            return await self._finish(
                job, without_call(job.delivery, DeliveryState.FAILED, failed.message), None
            )
        result = await self._caller.call(outbound, now_ms)
        decision = decide(
            result,
            job.delivery.attempts + 1,
            job.connection.policy,
            self._clock.now_ms(),
            self._uniform,
            not_after_ms=last_ms,
        )
        attempt, mark = attempt_of_call(job.delivery, outbound.url, result, now_ms)
        in_order = job.connection.connection.ordered and not job.delivery.generation
        after = await self._finish(
            job, after_call(job.delivery, decision, in_order=in_order), Kept(attempt, mark)
        )
        DELIVERIES.inc("succeeded" if result.succeeded else "failed")
        await self._note_health(
            job, result, pause=isinstance(decision, GaveUp) and decision.pauses_destination
        )
        return after

    async def _finish(self, job: Job, after: Delivery, kept: Kept | None) -> Delivery | None:
        finishing = (
            self._finisher.finish_direct(job.opened, after, kept)
            if job.direct
            else self._finisher.finish(job.opened, job.delivery, after, kept)
        )
        # A call that was made must be written down, even if whoever waits for us has gone.
        if not await asyncio.shield(finishing):
            return None
        status_code = None if kept is None else kept.attempt.status_code
        self._on_finished(after, status_code or None)
        return after

    async def _note_health(self, job: Job, result: CallResult, *, pause: bool) -> None:
        if pause:
            await self._health.pause(job.connection.connection, "The destination answered 410: it is gone.")
        elif not result.own_fault:
            await self._health.note(job.connection, ok=result.succeeded)


def outbound_of(job: Job, now_ms: int) -> Outbound:
    """Raises TransformFailed."""
    return outbound_message(
        job.opened.event,
        job.connection.connection,
        job.delivery.generation,
        transform=job.connection.transform,
        own_headers=job.connection.headers,
        secrets=job.connection.valid_secrets(now_ms),
        credentials=ALWAYS_CREDENTIALS | job.source.recipe.credential_headers,
    )
