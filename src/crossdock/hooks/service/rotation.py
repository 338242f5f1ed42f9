"""One secret in place of another, which stays good for a while. Pure."""

from __future__ import annotations

from crossdock.hooks.model import HeldSecret
from crossdock.kit.clock import rfc3339

PREVIOUS_MAX = 5
GRACE_SECONDS_DEFAULT = 86_400
GRACE_SECONDS_MAX = 7 * 86_400


def rotated(
    secrets: tuple[HeldSecret, ...], new: HeldSecret, grace_seconds: int, now_ms: int
) -> tuple[HeldSecret, ...]:
    """Newest first. Of more than five earlier ones the oldest ends before its time."""
    replaced = [HeldSecret(held.sealed, now_ms + grace_seconds * 1000) for held in secrets[:1]]
    earlier = [held for held in (*replaced, *secrets[1:]) if _is_valid(held, now_ms)]
    return (new, *earlier[:PREVIOUS_MAX])


def ends_of_previous(secrets: tuple[HeldSecret, ...], now_ms: int) -> list[str]:
    """Until when the earlier ones that are still good are so."""
    return [
        rfc3339(held.valid_until_ms) for held in secrets if held.valid_until_ms and _is_valid(held, now_ms)
    ]


def _is_valid(held: HeldSecret, now_ms: int) -> bool:
    return held.valid_until_ms is None or now_ms < held.valid_until_ms
