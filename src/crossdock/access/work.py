"""Background work of access: hourly, what nobody may use any more is deleted."""

from __future__ import annotations

import asyncio
import logging

from crossdock.access.sessions import SessionService
from crossdock.http.idempotency_sql import SqlIdempotency

log = logging.getLogger("crossdock.access")

INTERVAL_SECONDS = 3600.0


async def clean(sessions: SessionService, idempotency: SqlIdempotency) -> None:
    """Expired sessions and idempotency records. They count for nothing already; this frees their room."""
    ended = await sessions.delete_expired()
    forgotten = await idempotency.delete_expired()
    if ended or forgotten:
        log.info("deleted %d expired sessions and %d idempotency records", ended, forgotten)


async def clean_hourly(sessions: SessionService, idempotency: SqlIdempotency) -> None:
    """Runs until cancelled; for a leased role."""
    while True:
        await clean(sessions, idempotency)
        await asyncio.sleep(INTERVAL_SECONDS)
