"""Where lists go on. A cursor comes back from the client: what no list of ours gave out is refused here,
before a store is asked to begin at a place that can't exist.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from crossdock.devices.model import BATCH_ID_PATTERN, MAC_PATTERN
from crossdock.kit.clock import ms_from_rfc3339
from crossdock.kit.errors import MalformedRequest
from crossdock.kit.ids import is_uuid4

DEVICE_POSITION = {"hardware_id": str, "gsi1sk": str}
KEY_POSITION = {"key_id": str, "gsi1sk": str}
READING_POSITION = {"ts_batch": str}
SERIES_POSITION = {"from_ms": int}

_MAC = re.compile(MAC_PATTERN)
_TIME_DIGITS = re.compile(r"[0-9]{13}\Z")
_BATCH_ID = re.compile(BATCH_ID_PATTERN)

Position = Mapping[str, str | int]


def checked_device_position(position: Position) -> dict[str, str]:
    hardware_id, seen_at = str(position["hardware_id"]), str(position["gsi1sk"])
    if _MAC.match(hardware_id) is None or not _is_time(seen_at):
        raise _not_ours()
    return {"hardware_id": hardware_id, "gsi1sk": seen_at}


def checked_key_position(position: Position) -> dict[str, str]:
    key_id, created_at = str(position["key_id"]), str(position["gsi1sk"])
    if not is_uuid4(key_id) or not _is_time(created_at):
        raise _not_ours()
    return {"key_id": key_id, "gsi1sk": created_at}


def checked_reading_position(position: Position, from_ms: int, to_ms: int) -> str:
    """A `ts_batch` in the range: no store begins outside of what it is asked for."""
    ts_batch = str(position["ts_batch"])
    time, _, batch_id = ts_batch.partition("#")
    if _TIME_DIGITS.match(time) is None or _BATCH_ID.match(batch_id) is None:
        raise _not_ours()
    if not from_ms <= int(time) <= to_ms:
        raise _not_ours()
    return ts_batch


def _is_time(text: str) -> bool:
    try:
        ms_from_rfc3339(text)
    except ValueError:
        return False
    return True


def _not_ours() -> MalformedRequest:
    return MalformedRequest(
        "invalid_cursor", "The cursor is not one this list gave out. Start again without a cursor."
    )
