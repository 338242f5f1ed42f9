"""When a device counts as reporting, and when its last activity is worth a write."""

from __future__ import annotations

from crossdock.devices.model import DeviceStatus

LAST_SEEN_EVERY_MS = 60_000
LAST_USED_EVERY_MS = 300_000


def status_of(last_seen_ms: int, offline_after_seconds: int, now_ms: int) -> DeviceStatus:
    if now_ms - last_seen_ms > offline_after_seconds * 1000:
        return DeviceStatus.SILENT
    return DeviceStatus.REPORTING


def is_due(last_written_ms: int | None, now_ms: int, every_ms: int) -> bool:
    """A time that is copied into an index is written at most once a while."""
    return last_written_ms is None or now_ms - last_written_ms >= every_ms
