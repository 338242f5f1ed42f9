"""The call itself: one POST, no redirects, a bounded look at the answer, and a result whatever happens.

An answer that breaks off counts as none, be its status what it may: twice delivered is better than not at
all.
"""

from __future__ import annotations

import logging

from crossdock.delivery.decide import RETRY_AFTER_STATUSES
from crossdock.delivery.model import BODY_TEXT_CHARACTERS_MAX, CallResult, Outbound
from crossdock.delivery.prepare import signed_headers
from crossdock.delivery.schedule import parse_retry_after
from crossdock.http.client import Answer, CallFailed, GuardedClient
from crossdock.kit.clock import Clock
from crossdock.kit.errors import InvalidInput

log = logging.getLogger("crossdock.delivery")

_UTF8_BYTES_MAX = 4
_BYTES_MAX = BODY_TEXT_CHARACTERS_MAX * _UTF8_BYTES_MAX
_OWN_FAULT = "own_network_failed"
_SHORTER = {"call_timeout": "timeout"}


class Caller:
    def __init__(self, client: GuardedClient, clock: Clock) -> None:
        """The client should allow more connections than there are calls at once (`limits.Slots`): waiting for
        a connection counts as time that the destination took."""
        self._client = client
        self._clock = clock

    async def call(self, outbound: Outbound, now_ms: int) -> CallResult:
        """Sends the message, signed as of now. Raises nothing but CancelledError."""
        began_at = self._clock.monotonic()
        try:
            answer = await self._client.send(
                "POST",
                outbound.url,
                headers=signed_headers(outbound, now_ms // 1000),
                body=outbound.body,
                timeout_seconds=outbound.timeout_seconds,
                bytes_max=_BYTES_MAX,
            )
        except (CallFailed, InvalidInput) as error:
            code = _SHORTER.get(error.code, error.code)
            return self._failed(f"{code}: {error.message}", began_at, own_fault=error.code == _OWN_FAULT)
        except Exception:
            # Charged all the same: what fails here would fail for ever, and must come to an end.
            log.exception("a call failed unforeseen", extra={"message_id": outbound.message_id})
            return self._failed("internal_error: The call failed inside the server.", began_at)
        return self._answered(answer, began_at)

    def _answered(self, answer: Answer, began_at: float) -> CallResult:
        asked = answer.headers.get("Retry-After") if answer.status in RETRY_AFTER_STATUSES else None
        return CallResult(
            answer.status,
            body_text(answer.body),
            self._latency_ms(began_at),
            retry_after_seconds=parse_retry_after(asked, self._clock.now_ms()),
        )

    def _failed(self, error: str, began_at: float, *, own_fault: bool = False) -> CallResult:
        return CallResult(0, "", self._latency_ms(began_at), error, own_fault)

    def _latency_ms(self, began_at: float) -> int:
        return round((self._clock.monotonic() - began_at) * 1000)


def body_text(body: bytes) -> str:
    """The first characters of an answer, fit to be stored as text anywhere."""
    text = body[:_BYTES_MAX].decode("utf-8", "replace")[:BODY_TEXT_CHARACTERS_MAX]
    return text.replace("\0", "\ufffd")
