from __future__ import annotations

import pytest

from crossdock.devices.rules.activity import LAST_SEEN_EVERY_MS, LAST_USED_EVERY_MS, is_due, status_of


@pytest.mark.parametrize(
    ("silence_ms", "status"),
    [
        (0, "reporting"),
        (900_000, "reporting"),
        (900_001, "silent"),
        (10**12, "silent"),
        (-5_000, "reporting"),
    ],
)
def test_a_device_is_silent_after_its_seconds(silence_ms: int, status: str) -> None:
    last_seen_ms = 1_700_000_000_000
    assert status_of(last_seen_ms, 900, last_seen_ms + silence_ms).value == status


@pytest.mark.parametrize(
    ("last_written_ms", "due"),
    [(None, True), (1_000_000, False), (940_001, False), (940_000, True), (0, True), (1_000_001, False)],
)
def test_a_time_is_written_once_in_its_interval_and_not_by_a_clock_gone_back(
    last_written_ms: int | None, due: bool
) -> None:
    assert is_due(last_written_ms, 1_000_000, 60_000) is due


def test_activity_is_noted_every_minute_and_use_of_keys_every_five() -> None:
    assert (LAST_SEEN_EVERY_MS, LAST_USED_EVERY_MS) == (60_000, 300_000)
