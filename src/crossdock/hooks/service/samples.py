"""A sample sent to a connection at once, by hand: what its destination says, and nothing is kept of it."""

from __future__ import annotations

import msgspec

from crossdock.delivery.calling import Caller
from crossdock.hooks.model import Event, EventStatus
from crossdock.hooks.rules.outbound import outbound_message
from crossdock.hooks.rules.providers.recipe import ALWAYS_CREDENTIALS
from crossdock.hooks.service.connections import Connections
from crossdock.hooks.service.finding import connection_not_found
from crossdock.hooks.service.in_use import SourcesInUse
from crossdock.http.principals import Principal
from crossdock.kit.clock import Clock
from crossdock.kit.ids import Random, nanoid

_BODY = b'{"type":"crossdock.test","message":"A sample, sent by hand to see whether it arrives."}'


class SampleResult(msgspec.Struct, frozen=True, kw_only=True):
    message_id: str
    succeeded: bool
    status_code: int
    """0 without an answer."""
    response_body: str
    latency_ms: int
    error: str | None


class SampleSender:
    def __init__(
        self, connections: Connections, sources: SourcesInUse, caller: Caller, clock: Clock, random: Random
    ) -> None:
        self._connections = connections
        self._sources = sources
        self._caller = caller
        self._clock = clock
        self._random = random

    async def send(self, principal: Principal, connection_id: str) -> SampleResult:
        """Signed as a delivery is, also to a paused connection; not transformed, and counted nowhere."""
        connection = await self._connections.find(principal, connection_id)
        self._sources.forget(connection.source_id)  # what was changed a moment ago is what is to be tried
        source = await self._sources.find(connection.source_id)
        used = None if source is None else source.connection(connection_id)
        if used is None:
            raise connection_not_found(connection_id)
        now_ms = self._clock.now_ms()
        sample = self._sample(connection.source_id, connection.user_id, now_ms)
        outbound = outbound_message(
            sample,
            used.connection,
            "",
            transform=None,
            own_headers=used.headers,
            secrets=used.valid_secrets(now_ms),
            credentials=ALWAYS_CREDENTIALS,
        )
        result = await self._caller.call(outbound, now_ms)
        return SampleResult(
            message_id=sample.event_id,
            succeeded=result.succeeded,
            status_code=result.status,
            response_body=result.body_text,
            latency_ms=result.latency_ms,
            error=result.error,
        )

    def _sample(self, source_id: str, user_id: str, now_ms: int) -> Event:
        return Event(
            event_id="test_" + nanoid(self._random, 16),
            source_id=source_id,
            user_id=user_id,
            status=EventStatus.RECEIVED,
            method="POST",
            path="",
            query="",
            headers=(("content-type", "application/json"),),
            body=_BODY,
            content_type="application/json",
            source_ip="",
            verified=False,
            received_at=now_ms,
            expires_at=now_ms // 1000,
        )
