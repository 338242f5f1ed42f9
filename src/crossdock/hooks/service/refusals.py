"""Requests that were refused, kept for their source's owner: the last hundred of a source.

Whoever floods us gets ten a second written down in each process; the rest is only counted.
"""

from __future__ import annotations

import logging

from crossdock.delivery.limits import RateLimit, RateLimiter
from crossdock.engines.items.port import Items
from crossdock.hooks.model import Source
from crossdock.hooks.service.acceptance import EVENTS_TOTAL
from crossdock.hooks.store.duplicates import RefusedRequest, refused_request
from crossdock.http.asgi import Scope, header
from crossdock.kit.clock import Clock
from crossdock.kit.errors import CrossdockError, TooLarge, Unavailable
from crossdock.kit.ids import Random

log = logging.getLogger("crossdock.hooks")

WRITTEN = RateLimit(requests=10, per_seconds=1)
KEPT_SECONDS = 7 * 86_400
TEXT_CHARACTERS_MAX = 512


class RefusedHere(Exception):
    """A request is answered with `error`, and noted under `reason`."""

    def __init__(self, reason: str, error: CrossdockError) -> None:
        super().__init__(reason)
        self.reason = reason
        self.error = error


class HeadTooLarge(TooLarge):
    def __init__(self, bytes_max: int) -> None:
        super().__init__(
            "head_too_large", f"Headers, path and query may have at most {bytes_max} bytes together."
        )


class Refusals:
    def __init__(self, items: Items, clock: Clock, random: Random) -> None:
        self._items = items
        self._clock = clock
        self._written: RateLimiter[str] = RateLimiter(clock)
        self._slot = random(1)[0]

    async def note(
        self, source: Source, scope: Scope, source_ip: str, reason: str, error: CrossdockError
    ) -> None:
        EVENTS_TOTAL.inc("refused")
        if not self._written.try_acquire("", WRITTEN):
            return
        self._slot += 1
        now_ms = self._clock.now_ms()
        content_type, length = header(scope, b"content-type"), header(scope, b"content-length")
        request = RefusedRequest(
            refused_at=now_ms,
            reason=reason,
            detail=error.message,
            method=_short(scope["method"]),
            path=_short(scope["path"]),
            source_ip=source_ip,
            content_type=_short((content_type or b"").decode("latin-1")),
            content_length=int(length)
            if length is not None and length.isdigit() and len(length) < 16
            else None,
        )
        put = refused_request(source.source_id, self._slot, request, now_ms // 1000 + KEPT_SECONDS)
        try:
            await self._items.put(put.table, put.item)
        except Unavailable as unavailable:
            log.warning("a refusal could not be kept: %s", unavailable)


def _short(text: str) -> str:
    return text[:TEXT_CHARACTERS_MAX].replace("\0", "")
