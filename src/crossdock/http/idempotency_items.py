"""Idempotency records beside an effect on the Items port. The guarantees are those of `idempotency`.

The record is one more put-if-absent in the transaction of the effect. Of two requests at once, one commits;
the other is refused by the record, reads it, and gives the same answer: nobody waits and nothing is locked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from crossdock.engines.items.conditions import Absent
from crossdock.engines.items.port import Item, Items, Put, Refused, Table, Write
from crossdock.http.idempotency import KEPT_MS, IdempotentRequest, Once, Stored, in_progress, replay
from crossdock.kit.clock import Clock
from crossdock.kit.errors import CrossdockError
from crossdock.kit.sealing import Sealer

IDEMPOTENCY = Table("crossdock-idempotency", partition="scope", ttl="expires_at")

T = TypeVar("T", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Effect(Generic[T]):
    """What a use case wants written, at most 99 writes, and what it answers once they are."""

    value: T
    writes: Sequence[Write]


class ItemsIdempotency:
    def __init__(self, items: Items, sealer: Sealer, clock: Clock) -> None:
        self._items = items
        self._sealer = sealer
        self._clock = clock

    async def once(
        self,
        request: IdempotentRequest | None,
        stored: Stored[T],
        prepare: Callable[[], Awaitable[Effect[T]]],
    ) -> Once[T] | Refused:
        """Commit what `prepare` wants, unless this request was carried out already.

        `Refused`: a condition of the effect's own writes did not hold (positions are those of its `writes`).
        `prepare` may read and may raise; it may be called although the effect is not committed.
        """
        if request is None:
            effect = await prepare()
            outcome = await self._items.transact(effect.writes)
            return outcome if isinstance(outcome, Refused) else Once(effect.value)
        earlier = await self._recall(request, stored)
        if earlier is not None:
            return earlier
        try:
            effect = await prepare()
        except CrossdockError:
            # It may be a twin's effect that is in the way: the name was taken a moment ago, by ourselves.
            twin = await self._recall(request, stored)
            if twin is None:
                raise
            return twin
        record = self._record(request, stored.seal(effect.value, request, self._sealer))
        outcome = await self._items.transact([*effect.writes, Put(IDEMPOTENCY, record, Absent("scope"))])
        if isinstance(outcome, Refused):
            return await self._after_refusal(request, stored, outcome, len(effect.writes))
        return Once(effect.value)

    async def _after_refusal(
        self, request: IdempotentRequest, stored: Stored[T], refused: Refused, own_count: int
    ) -> Once[T] | Refused:
        twin = await self._recall(request, stored)
        if twin is not None:
            return twin
        own = tuple(failure for failure in refused.failures if failure.position < own_count)
        if not own:
            raise in_progress()
        return Refused(own)

    async def _recall(self, request: IdempotentRequest, stored: Stored[T]) -> Once[T] | None:
        item = await self._items.get(IDEMPOTENCY, {"scope": request.scope})
        if item is None:
            return None
        created_at_ms = item["created_at_ms"]
        assert isinstance(created_at_ms, int)
        return replay(
            stored,
            request,
            self._sealer,
            request_sha256=str(item["request_sha256"]),
            response=str(item["response"]),
            age_ms=self._clock.now_ms() - created_at_ms,
        )

    def _record(self, request: IdempotentRequest, response: str) -> Item:
        now_ms = self._clock.now_ms()
        return {
            "scope": request.scope,
            "request_sha256": request.request_sha256,
            "response": response,
            "created_at_ms": now_ms,
            "expires_at": (now_ms + KEPT_MS) // 1000,
        }
