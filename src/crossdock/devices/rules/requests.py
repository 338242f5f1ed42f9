"""Reading a request of readings, so that a bad reading never spoils its neighbours.

The whole body is decoded into typed readings at once; that is the common case. When anything is wrong in it,
it is read again piece by piece, to reject the bad readings alone and to say why. A body that is no JSON, or
not of the outer form, is refused as a whole. One exception: NaN and Infinity, which JSON does not have but
firmware sends, are read as bad values of their reading.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

import msgspec

from crossdock.devices.model import READINGS_MAX, HardwareId, RejectionCode, SentReading
from crossdock.devices.rules.batches import SentItem, canonical_json, rejected_item, sent_item
from crossdock.http.bodies import Body, RequestBody, field_problem
from crossdock.kit.errors import FieldProblem, InvalidInput


class SentReadings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `POST /v1/devices/readings`."""

    hardware_id: HardwareId
    readings: Annotated[list[SentReading], msgspec.Meta(min_length=1, max_length=READINGS_MAX)]


class _Envelope(RequestBody):
    hardware_id: HardwareId
    readings: Annotated[list[Any], msgspec.Meta(min_length=1, max_length=READINGS_MAX)]


_typed = msgspec.json.Decoder(SentReadings)
_envelope = msgspec.json.Decoder(_Envelope)
_explained: Body[_Envelope] = Body(_Envelope)


def parse_readings(body: bytes) -> tuple[str, list[SentItem]]:
    """The hardware id and an item per entry. Raises MalformedRequest or InvalidInput for the whole."""
    try:
        sent = _typed.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _parse_piece_by_piece(body)
    items = [
        sent_item(index, reading, canonical_json(reading)) for index, reading in enumerate(sent.readings)
    ]
    return sent.hardware_id, items


def _parse_piece_by_piece(body: bytes) -> tuple[str, list[SentItem]]:
    try:
        envelope = _envelope.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        envelope = _with_odd_numbers(body)
    return envelope.hardware_id, [_item(index, entry) for index, entry in enumerate(envelope.readings)]


def _with_odd_numbers(body: bytes) -> _Envelope:
    """The body if only NaN, Infinity or numbers out of a float's range kept it from being JSON."""
    try:
        document = json.loads(body.decode(), parse_int=_whole_number)
        msgspec.json.encode(document)  # a lone surrogate is no text either
        return msgspec.convert(document, _Envelope)
    except msgspec.ValidationError as error:
        raise InvalidInput("The request body is not valid.", field_problem(str(error), _Envelope)) from error
    except (ValueError, RecursionError):
        return _explained.decode(body)


def _whole_number(digits: str) -> float:
    """No store holds more than 126 digits, and Python refuses to read some thousands of them."""
    return int(digits) if len(digits) <= 200 else float(digits)


def _item(index: int, entry: Any) -> SentItem:
    batch_id = entry.get("batch_id") if isinstance(entry, dict) else None
    if not isinstance(batch_id, str):
        batch_id = None
    try:
        reading = msgspec.convert(entry, SentReading)
    except msgspec.ValidationError as error:
        detail = _detail(field_problem(str(error)))
        code = RejectionCode.INVALID_READING
        return rejected_item(index, batch_id, canonical_json(entry), code, detail)
    return sent_item(index, reading, canonical_json(reading))


_FORMS = {
    "batch_id": "1 to 256 characters of A-Z a-z 0-9 _ - :",
    "boot_id": "a UUID of version 4",
    "timestamp_ms": "milliseconds since 1970, a whole number",
    "firmware_version": "1 to 64 characters",
    "sensors": "at most 64 names of a-z 0-9 _ (1 to 64 characters), each with a finite number",
    "sensor_status": "at most 64 names of a-z 0-9 _ (1 to 64 characters), each ok or error",
}


def _detail(problem: FieldProblem) -> str:
    if not problem.field:
        return f"A reading is an object: {problem.detail}"
    name = problem.field.split("[")[0].split(".")[0]
    if problem.code in ("required", "unknown_field") or name not in _FORMS:
        return f"{problem.field}: {problem.detail}"
    return f"{name} must be {_FORMS[name]}."
