"""`/v1/devices`, but for the readings that devices send (lane.py)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, TypeAlias

import msgspec
from litestar import Controller, MediaType, Request, Response, Router, delete, get, patch, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from litestar.response import Stream
from msgspec import UNSET, Meta, UnsetType

from crossdock.devices import DevicesServices
from crossdock.devices.exports import ExportFormat, export
from crossdock.devices.model import (
    MAC_PATTERN,
    CreatedDeviceKey,
    Device,
    DeviceKey,
    DeviceStatus,
    FirmwareVersion,
    FriendlyName,
    Gap,
    HardwareId,
    OfflineAfterSeconds,
    Uuid4,
)
from crossdock.devices.rules.series import Aggregate, BucketSize
from crossdock.devices.service.history import History, Range
from crossdock.devices.service.keys import INGEST, DeviceKeys, check_speaks_for
from crossdock.devices.service.registration import Devices
from crossdock.http.bodies import RequestBody
from crossdock.http.guards import Authenticator, requires
from crossdock.http.idempotency import REPLAYED_HEADER, IdempotentRequest, created
from crossdock.http.management import guarded_router
from crossdock.http.negotiation import accepted
from crossdock.http.pages import Page, PageRequest, page_json
from crossdock.http.principals import Principal
from crossdock.kit.errors import FieldProblem, InvalidInput

MANAGE = "devices:manage"
TIME_MS_MAX = 9_999_999_999_999
# Litestar drops the bounds of a msgspec.Meta that is inside FromQuery.
TIME_MS = QueryParameter(ge=0, le=TIME_MS_MAX)

Description: TypeAlias = Annotated[str, Meta(min_length=1, max_length=256)]


class Order(StrEnum):
    ASCENDING = "asc"
    DESCENDING = "desc"


class Registration(RequestBody):
    hardware_id: HardwareId
    boot_id: Uuid4
    firmware_version: FirmwareVersion
    capabilities: dict[str, Any]
    friendly_name: FriendlyName | None = None


class DeviceChange(RequestBody):
    friendly_name: FriendlyName | UnsetType | None = UNSET
    offline_after_seconds: OfflineAfterSeconds | UnsetType | None = UNSET


class NewKey(RequestBody):
    description: Description | None = None
    hardware_id: HardwareId | None = None


class Registrations(Controller):
    path = "/v1/devices/register"
    tags = ("devices",)

    @post(guards=[requires(INGEST)], summary="Register a device, or register it again")
    async def register(
        self,
        data: JSONBody[Registration],
        devices: NamedDependency[Devices],
        principal: NamedDependency[Principal],
        idempotency: NamedDependency[IdempotentRequest | None],
    ) -> Response[Device]:
        """201 the first time, 200 after. A device keeps its `confirmation_id` and its first registration."""
        check_speaks_for(principal, data.hardware_id)
        check_capabilities(data.capabilities)
        sent = msgspec.structs.asdict(data)
        once = await devices.register(data.hardware_id, sent, principal, idempotency)
        headers = {REPLAYED_HEADER: "true"} if once.replayed else {}
        return Response(once.value.device, status_code=201 if once.value.is_new else 200, headers=headers)


class Fleet(Controller):
    path = "/v1/devices"
    tags = ("devices",)
    guards = (requires(MANAGE),)

    @get(summary="List devices, newest activity first")
    async def list(
        self,
        devices: NamedDependency[Devices],
        page: NamedDependency[PageRequest],
        status: FromQuery[DeviceStatus | None] = None,
    ) -> Page[Device]:
        """`silent`: nothing for the device's `offline_after_seconds`."""
        return await devices.list(status, page)

    @get("/{hardware_id:str}", summary="Show a device")
    async def show(self, hardware_id: FromPath[str], devices: NamedDependency[Devices]) -> Device:
        return await devices.get(checked_hardware_id(hardware_id))

    @patch("/{hardware_id:str}", summary="Name a device, or change when it counts as silent")
    async def change(
        self,
        hardware_id: FromPath[str],
        data: JSONBody[DeviceChange],
        devices: NamedDependency[Devices],
    ) -> Device:
        """Only the fields given change; null puts one back to its default."""
        fields = {name: value for name, value in msgspec.structs.asdict(data).items() if value is not UNSET}
        return await devices.change(checked_hardware_id(hardware_id), fields)

    @delete("/{hardware_id:str}", summary="Delete a device and its readings")
    async def remove(self, hardware_id: FromPath[str], devices: NamedDependency[Devices]) -> None:
        """It is gone at once; many readings may take a while longer to leave the disk."""
        await devices.delete(checked_hardware_id(hardware_id))


class Readings(Controller):
    path = "/v1/devices/{hardware_id:str}"
    tags = ("devices",)
    guards = (requires(MANAGE),)

    @get("/readings", summary="Read a device's readings: a page, a downsampled series, or a file")
    async def range(
        self,
        request: Request[Any, Any, Any],
        hardware_id: FromPath[str],
        history: NamedDependency[History],
        page: NamedDependency[PageRequest],
        from_ms: Annotated[int, TIME_MS] = 0,
        to_ms: Annotated[int, TIME_MS] = TIME_MS_MAX,
        order: FromQuery[Order] = Order.ASCENDING,
        bucket: FromQuery[BucketSize | None] = None,
        agg: FromQuery[str | None] = None,
    ) -> Response[Any] | Stream:
        """Times are inclusive. With `Accept` text/csv, application/vnd.apache.parquet or application/x-ndjson
        the whole range comes as a file. With `bucket` (5m, 1h, 1d) and `agg` (of min, max, avg, count) it is
        downsampled per sensor; buckets without readings are left out."""
        range_ = checked_range(hardware_id, from_ms, to_ms, descending=order is Order.DESCENDING)
        accept = request.headers.get("accept")
        if bucket is not None:
            aggregates = parse_aggregates(agg)
            accepted(accept, [MediaType.JSON])
            return Response(await history.buckets(range_, bucket.ms, aggregates, page))
        if agg is not None:
            raise _wrong("agg", "required", "agg goes with bucket=5m, 1h or 1d.")
        kind = accepted(accept, [MediaType.JSON, *ExportFormat])
        if kind == MediaType.JSON:
            items, cursor = await history.readings(range_, page)
            return Response(page_json(items, cursor), media_type="application/json")
        await history.check_device(range_.hardware_id)
        return _file(history, range_, ExportFormat(kind))

    @get("/readings/latest", summary="Show the reading with the newest time")
    async def latest(self, hardware_id: FromPath[str], history: NamedDependency[History]) -> Response[bytes]:
        encoded = await history.latest(checked_hardware_id(hardware_id))
        return Response(encoded, media_type="application/json")

    @get("/gaps", summary="List the periods in which a device was silent")
    async def gaps(
        self,
        hardware_id: FromPath[str],
        history: NamedDependency[History],
        page: NamedDependency[PageRequest],
        expected_seconds: Annotated[float, QueryParameter(gt=0, le=366 * 86_400)],
        from_ms: Annotated[int | None, TIME_MS] = None,
        to_ms: Annotated[int | None, TIME_MS] = None,
    ) -> Page[Gap]:
        """Periods of over `expected_seconds` without a reading, in the last day unless told otherwise."""
        since_ms, until_ms = history.period(from_ms, to_ms)
        range_ = checked_range(hardware_id, since_ms, until_ms)
        return await history.gaps(range_, expected_seconds, page)


class Keys(Controller):
    path = "/v1/devices/keys"
    tags = ("devices",)
    guards = (requires(MANAGE),)

    @post(summary="Create a device key")
    async def create(
        self,
        data: JSONBody[NewKey],
        keys: NamedDependency[DeviceKeys],
        idempotency: NamedDependency[IdempotentRequest | None],
    ) -> Response[CreatedDeviceKey]:
        """`api_key` is in this answer only. With `hardware_id` the key speaks for that device alone."""
        return created(await keys.create(data.description, data.hardware_id, idempotency))

    @get(summary="List device keys, newest first")
    async def list(
        self, keys: NamedDependency[DeviceKeys], page: NamedDependency[PageRequest]
    ) -> Page[DeviceKey]:
        return await keys.list(page)

    @get("/{key_id:str}", summary="Show a device key")
    async def show(self, key_id: FromPath[str], keys: NamedDependency[DeviceKeys]) -> DeviceKey:
        return await keys.get(key_id)

    @post("/{key_id:str}/revoke", status_code=200, summary="Revoke a device key")
    async def revoke(self, key_id: FromPath[str], keys: NamedDependency[DeviceKeys]) -> DeviceKey:
        """For good, on every node within 5 s."""
        return await keys.revoke(key_id)


def router(services: DevicesServices, authenticator: Authenticator) -> Router:
    shared = {
        "devices": services.devices,
        "history": services.history,
        "keys": services.keys,
    }
    return guarded_router(authenticator, [Registrations, Keys, Fleet, Readings], shared)


# --- checks that parameters' types can't say -------------------------------------------------------

_MAC = re.compile(MAC_PATTERN)
_CAPABILITIES_BYTES_MAX = 8 * 1024


def checked_hardware_id(hardware_id: str) -> str:
    if _MAC.match(hardware_id) is None:
        detail = "A hardware id is a MAC address in upper case: AA:BB:CC:DD:EE:FF."
        raise _wrong("hardware_id", "wrong_format", detail)
    return hardware_id


def checked_range(hardware_id: str, from_ms: int, to_ms: int, *, descending: bool = False) -> Range:
    if from_ms > to_ms:
        raise _wrong("from_ms", "out_of_range", "from_ms is after to_ms.")
    return Range(checked_hardware_id(hardware_id), from_ms, to_ms, descending)


def check_capabilities(capabilities: dict[str, Any]) -> None:
    if len(msgspec.json.encode(capabilities)) > _CAPABILITIES_BYTES_MAX:
        detail = f"Capabilities may have at most {_CAPABILITIES_BYTES_MAX} bytes."
        raise _wrong("capabilities", "too_large", detail)


def parse_aggregates(text: str | None) -> Sequence[Aggregate]:
    """None: all of them."""
    if text is None:
        return list(Aggregate)
    try:
        return list(dict.fromkeys(Aggregate(name.strip()) for name in text.split(",")))
    except ValueError:
        raise _wrong("agg", "not_a_choice", "agg is a list of min, max, avg and count.") from None


def _wrong(field: str, code: str, detail: str) -> InvalidInput:
    return InvalidInput("The request's parameters are not valid.", FieldProblem(field, code, detail))


def _file(history: History, range_: Range, kind: ExportFormat) -> Stream:
    name = f"{range_.hardware_id.replace(':', '')}.{kind.suffix}"
    return Stream(
        export(history, range_, kind),
        media_type=kind.value,
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
