"""What is sent, how the call went, and what follows from that."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

BODY_TEXT_CHARACTERS_MAX = 1000


@dataclass(frozen=True, slots=True)
class Outbound:
    """One message for one destination. Only its timestamp and signatures are made at each attempt."""

    message_id: str
    url: str
    body: bytes = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    """As `prepare.forwarded_headers` or `prepare.check_headers` gave them."""
    secrets: tuple[str, ...] = field(repr=False)
    """All that are valid now; without one the message goes unsigned."""
    timeout_seconds: float


@dataclass(frozen=True, slots=True)
class CallResult:
    status: int
    """0 without a complete answer."""
    body_text: str
    """The first characters of the answer; what is not UTF-8, and U+0000, as U+FFFD."""
    latency_ms: int
    error: str | None = None
    """`code: sentence` when there was no complete answer; both may be shown to users."""
    own_fault: bool = False
    """Nothing that the destination should be charged with: no attempt used up, nothing for its breaker."""
    retry_after_seconds: float | None = None
    """What the destination asked for along with 429 or 503."""

    @property
    def succeeded(self) -> bool:
        return self.error is None and 200 <= self.status < 300

    @property
    def error_code(self) -> str | None:
        return None if self.error is None else self.error.partition(":")[0]


INTERRUPTED = CallResult(
    0, "", 0, "interrupted: The server stopped during the call; it may have arrived.", own_fault=True
)
"""What whoever takes over records for a call whose process died."""


class GaveUpReason(StrEnum):
    ATTEMPTS_EXHAUSTED = "attempts_exhausted"
    RETENTION = "retention"
    """The next attempt would come after the message is gone."""
    GONE = "gone"
    """410: the destination wants nothing more."""


@dataclass(frozen=True, slots=True)
class Succeeded:
    pass


@dataclass(frozen=True, slots=True)
class RetryAt:
    at_ms: int
    charged: bool
    """False: the next attempt has the same number."""


@dataclass(frozen=True, slots=True)
class GaveUp:
    reason: GaveUpReason
    pauses_destination: bool = False


Decision: TypeAlias = Succeeded | RetryAt | GaveUp
