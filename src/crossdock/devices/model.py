"""The values of the devices slice. Frozen, and without I/O.

Field names are those of the stored attributes, so a stored item and an answer are the same JSON.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

READINGS_MAX = 100
"""Readings in one request."""
BATCH_READINGS_MAX = 99
"""Readings in one batch: they and the batch's marker are one transaction of at most 100 writes."""
READING_BYTES_MAX = 16 * 1024
REQUEST_BYTES_MAX = 1024 * 1024
OFFLINE_AFTER_SECONDS_DEFAULT = 900

MAC_PATTERN = r"^[0-9A-F]{2}(:[0-9A-F]{2}){5}\Z"
UUID4_PATTERN = r"^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-4[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}\Z"
BATCH_ID_PATTERN = r"^[A-Za-z0-9_:-]{1,256}\Z"
SENSOR_PATTERN = r"^[a-z0-9_]{1,64}\Z"
SENSORS_MAX = 64

# A description goes into the API's own, and into the answer to a text of another form: "Expected …".
HardwareId: TypeAlias = Annotated[
    str, msgspec.Meta(pattern=MAC_PATTERN, description="a MAC address in upper case, like AA:BB:CC:DD:EE:FF")
]
Uuid4: TypeAlias = Annotated[str, msgspec.Meta(pattern=UUID4_PATTERN, description="a UUID of version 4")]
BatchId: TypeAlias = Annotated[str, msgspec.Meta(pattern=BATCH_ID_PATTERN)]
SensorName: TypeAlias = Annotated[str, msgspec.Meta(pattern=SENSOR_PATTERN)]
FirmwareVersion: TypeAlias = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[^\x00-\x1f\x7f]{1,64}\Z", description="1 to 64 characters, without control characters"
    ),
]
FriendlyName: TypeAlias = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[^\x00-\x1f\x7f]{1,128}\Z", description="1 to 128 characters, without control characters"
    ),
]
OfflineAfterSeconds: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=366 * 86_400)]
SensorStatus: TypeAlias = Literal["ok", "error"]


class SentReading(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A reading as a device sends it."""

    batch_id: BatchId
    timestamp_ms: Annotated[int, msgspec.Meta(ge=0)]
    boot_id: Uuid4
    firmware_version: FirmwareVersion
    sensors: Annotated[dict[SensorName, int | float], msgspec.Meta(max_length=SENSORS_MAX)]
    sensor_status: Annotated[dict[SensorName, SensorStatus], msgspec.Meta(max_length=SENSORS_MAX)]


class ReadingPoint(msgspec.Struct, frozen=True, gc=False):
    """What charts and gaps need of a stored reading."""

    timestamp_ms: int
    sensors: dict[str, float]


class RejectionCode(StrEnum):
    """Why one reading was not taken. Stable: devices act on them."""

    INVALID_READING = "invalid_reading"
    """A field is missing, unknown, of a wrong type or form; the detail names it."""
    INVALID_VALUE = "invalid_value"
    """A sensor value is not a finite number that can be stored."""
    READING_TOO_LARGE = "reading_too_large"
    TIMESTAMP_OUT_OF_RANGE = "timestamp_out_of_range"
    EXPIRED = "expired"
    DUPLICATE_TIMESTAMP = "duplicate_timestamp"
    BATCH_TOO_LARGE = "batch_too_large"
    BATCH_CONFLICT = "batch_conflict"
    """This batch_id was stored before with other content."""


class Rejection(msgspec.Struct, frozen=True):
    batch_id: str | None
    """As sent; null where it was missing or not a text."""
    index: int
    code: RejectionCode
    detail: str


class Verdict(msgspec.Struct, frozen=True):
    """The answer to a request of readings: batches acknowledged or known already, readings rejected."""

    acknowledged: list[str]
    duplicates: list[str]
    rejected: list[Rejection]


class DeviceStatus(StrEnum):
    REPORTING = "reporting"
    SILENT = "silent"


class Device(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """A registered device, as stored (without index keys) and with its status worked out."""

    hardware_id: str
    confirmation_id: str
    capabilities: dict[str, Any]
    first_registered_at: str
    last_seen_at: str
    last_boot_id: str
    firmware_version: str
    friendly_name: str | None = None
    offline_after_seconds: int = OFFLINE_AFTER_SECONDS_DEFAULT
    status: DeviceStatus


class DeviceKey(msgspec.Struct, frozen=True, kw_only=True):
    """A device key without its secret."""

    key_id: str
    created_at: str
    is_active: bool
    description: str | None = None
    hardware_id: str | None = None
    """The one device it may speak for; null: any."""
    last_used_at: str | None = None


class CreatedDeviceKey(DeviceKey, frozen=True, kw_only=True):
    """A new key; `api_key` is shown this once."""

    api_key: str


class Bucket(msgspec.Struct, frozen=True):
    """One interval of a downsampled series; sensors without a value in it are not there."""

    start_ms: int
    sensors: dict[str, dict[str, float]]


class Gap(msgspec.Struct, frozen=True):
    """A period in which no reading fell, between two readings or at the edge of the range asked about."""

    from_ms: int
    to_ms: int
    seconds: float
