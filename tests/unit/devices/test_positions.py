from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests.support.devices import BOOT_ID

from crossdock.devices.rules.positions import (
    checked_device_position,
    checked_key_position,
    checked_reading_position,
)
from crossdock.kit.errors import MalformedRequest

DEVICE = "AA:BB:CC:DD:EE:FF"
TIME = "2024-01-15T14:22:00Z"


def checked_reading(position: Mapping[str, Any]) -> str:
    return checked_reading_position(position, 1_000, 2_000)


@pytest.mark.parametrize(
    ("check", "position"),
    [
        (checked_device_position, {"hardware_id": DEVICE, "gsi1sk": TIME}),
        (checked_key_position, {"key_id": BOOT_ID, "gsi1sk": TIME}),
    ],
)
def test_a_position_of_ours_is_taken(check: Callable[[Any], Any], position: dict[str, str]) -> None:
    assert check(position) == position


@pytest.mark.parametrize("ts_batch", ["0000000001000#a", "0000000002000#" + "b" * 256])
def test_a_reading_of_the_range_is_taken(ts_batch: str) -> None:
    assert checked_reading({"ts_batch": ts_batch}) == ts_batch


@pytest.mark.parametrize(
    ("check", "position"),
    [
        (checked_device_position, {"hardware_id": "", "gsi1sk": TIME}),
        (checked_device_position, {"hardware_id": DEVICE.lower(), "gsi1sk": TIME}),
        (checked_device_position, {"hardware_id": DEVICE, "gsi1sk": ""}),
        (checked_device_position, {"hardware_id": DEVICE, "gsi1sk": "x" * 2000}),
        (checked_key_position, {"key_id": "", "gsi1sk": TIME}),
        (checked_key_position, {"key_id": "x", "gsi1sk": TIME}),
        (checked_key_position, {"key_id": BOOT_ID, "gsi1sk": "yesterday"}),
        (checked_reading, {"ts_batch": ""}),
        (checked_reading, {"ts_batch": "0000000001500"}),
        (checked_reading, {"ts_batch": "0000000001500#"}),
        (checked_reading, {"ts_batch": "0000000001500#" + "b" * 257}),
        (checked_reading, {"ts_batch": "1500#a"}),
        (checked_reading, {"ts_batch": "٠٠٠٠٠٠٠٠٠١٥٠٠#a"}),
        (checked_reading, {"ts_batch": "0000000000999#a"}),
        (checked_reading, {"ts_batch": "0000000002001#a"}),
    ],
)
def test_a_position_that_no_list_of_ours_ended_at_is_refused(
    check: Callable[[Any], Any], position: dict[str, str]
) -> None:
    with pytest.raises(MalformedRequest) as refused:
        check(position)
    assert refused.value.code == "invalid_cursor"
