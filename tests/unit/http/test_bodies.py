from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from crossdock.http.bodies import Body, RequestBody
from crossdock.kit.errors import InvalidInput, MalformedRequest


class Reading(RequestBody):
    timestamp_ms: int
    sensors: dict[str, float] | None = None
    status: Literal["ok", "error"] = "ok"
    name: Annotated[str, Meta(min_length=1, max_length=3, pattern="^[a-z]*$")] = "a"
    count: Annotated[int, Meta(ge=1, le=5)] = 1
    at: datetime | None = None
    device: UUID | None = None
    tags: Annotated[list[str], Meta(max_length=2)] | None = None
    nested: dict[str, dict[str, list[int]]] | None = None


class Request(RequestBody):
    readings: list[Reading]


REQUEST: Body[Request] = Body(Request)
READING: Body[Reading] = Body(Reading)


def refusal(raw: bytes, body: Body[Request] | Body[Reading] = REQUEST) -> InvalidInput | MalformedRequest:
    with pytest.raises((InvalidInput, MalformedRequest)) as raised:
        body.decode(raw)
    assert isinstance(raised.value, InvalidInput | MalformedRequest)
    return raised.value


def field_of(raw: bytes, body: Body[Request] | Body[Reading] = READING) -> tuple[str, str]:
    error = refusal(raw, body)
    assert isinstance(error, InvalidInput), error
    assert error.code == "invalid_input"
    [problem] = error.fields
    assert problem.detail.endswith(".")
    return problem.field, problem.code


def test_a_good_body_is_decoded() -> None:
    decoded = REQUEST.decode(b'{"readings": [{"timestamp_ms": 1, "sensors": {"t": 2}}]}')
    assert decoded.readings[0].sensors == {"t": 2.0}


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"", "body_required"),
        (b" \n\t", "body_required"),
        (b"{", "malformed_json"),
        (b'{"readings": [{"timestamp_ms": "1"}', "malformed_json"),  # wrong type before the break
        (b'{"readings": []} x', "malformed_json"),
        (b"\xef\xbb\xbf{}", "malformed_json"),
        (b'{"readings": [{"timestamp_ms": NaN}]}', "malformed_json"),
        (b'{"readings": "\xff"}', "malformed_json"),
        (b'{"\xff": 1}', "malformed_json"),
        (b'{"readings": [{"timestamp_ms": 1, "name": "\\ud800"}]}', "malformed_json"),
        (b"[" * 100_000, "malformed_json"),
        (b'{"readings":' * 50_000, "malformed_json"),
    ],
)
def test_what_is_no_json_is_malformed(raw: bytes, code: str) -> None:
    error = refusal(raw)
    assert isinstance(error, MalformedRequest)
    assert error.code == code


def test_nesting_without_end_is_malformed_for_a_body_of_any_shape_too() -> None:
    anything: Body[object] = Body(object)
    for raw in (b"[" * 100_000, b'{"a":' * 100_000, b"[" * 900 + b'"\\u0000"' + b"]" * 900):
        with pytest.raises((MalformedRequest, InvalidInput)):
            anything.decode(raw)


@pytest.mark.parametrize(
    ("raw", "field", "code"),
    [
        (b"[]", "", "wrong_type"),
        (b"null", "", "wrong_type"),
        (b"{}", "timestamp_ms", "required"),
        (b'{"timestamp_ms": "1"}', "timestamp_ms", "wrong_type"),
        (b'{"timestamp_ms": 1.5}', "timestamp_ms", "wrong_type"),
        (b'{"timestamp_ms": true}', "timestamp_ms", "wrong_type"),
        (b'{"timestamp_ms": null}', "timestamp_ms", "wrong_type"),
        (b'{"timestamp_ms": 1' + b"0" * 5000 + b"}", "timestamp_ms", "out_of_range"),
        (b'{"timestamp_ms": 1, "colour": 1}', "colour", "unknown_field"),
        (b'{"timestamp_ms": 1, "a.b`c": 1}', "a.b`c", "unknown_field"),
        (b'{"timestamp_ms": 1, "name": ""}', "name", "wrong_length"),
        (b'{"timestamp_ms": 1, "name": "aaaa"}', "name", "wrong_length"),
        (b'{"timestamp_ms": 1, "name": "A"}', "name", "wrong_format"),
        (b'{"timestamp_ms": 1, "count": 0}', "count", "out_of_range"),
        (b'{"timestamp_ms": 1, "count": 6}', "count", "out_of_range"),
        (b'{"timestamp_ms": 1, "status": "bad"}', "status", "not_a_choice"),
        (b'{"timestamp_ms": 1, "at": "yesterday"}', "at", "wrong_format"),
        (b'{"timestamp_ms": 1, "device": "x"}', "device", "wrong_format"),
        (b'{"timestamp_ms": 1, "tags": ["", "", ""]}', "tags", "wrong_length"),
        (b'{"timestamp_ms": 1, "tags": ["", 1]}', "tags[1]", "wrong_type"),
        (b'{"timestamp_ms": 1, "sensors": {"a": 1e999}}', "sensors[...]", "out_of_range"),
        (b'{"timestamp_ms": 1, "sensors": {"a": 1, "temp_c": "5", "z": 1}}', "sensors.temp_c", "wrong_type"),
        (b'{"timestamp_ms": 1, "nested": {"a": {"b": [1], "c": [1, "x"]}}}', "nested.a.c[1]", "wrong_type"),
        (b'{"timestamp_ms": 1, "sensors": {"\\u0000": 1}}', "sensors", "nul_character"),
        (b'{"timestamp_ms": 1, "tags": ["", "\\u0000"]}', "tags[1]", "nul_character"),
    ],
)
def test_a_wrong_field_is_named_with_a_stable_code(raw: bytes, field: str, code: str) -> None:
    assert field_of(raw) == (field, code)


def test_the_place_of_a_wrong_value_is_readable() -> None:
    raw = b'{"readings": [{"timestamp_ms": 1}, {"timestamp_ms": 1, "sensors": {"a": 1, "temp_c": null}}]}'
    assert field_of(raw, REQUEST) == ("readings[1].sensors.temp_c", "wrong_type")


def test_an_escaped_backslash_before_u0000_is_no_nul() -> None:
    raw = b'{"timestamp_ms": 1, "tags": ["\\\\u0000"]}'
    assert READING.decode(raw).tags == ["\\u0000"]


def test_a_large_body_is_not_searched_for_the_name_of_a_wrong_value() -> None:
    raw = msgspec.json.encode({"timestamp_ms": 1, "sensors": {f"s{n}": "x" for n in range(50_000)}})
    assert field_of(raw) == ("sensors[...]", "wrong_type")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
SHAPED = st.dictionaries(
    st.sampled_from(["timestamp_ms", "sensors", "status", "name", "count", "at", "device", "tags", "nested"]),
    JSON,
)


@given(JSON | SHAPED | SHAPED.map(lambda each: {"timestamp_ms": 1} | each))
def test_any_json_is_a_value_or_a_named_mistake(document: object) -> None:
    try:
        READING.decode(msgspec.json.encode(document))
    except InvalidInput as error:
        assert len(error.fields) == 1


@given(st.binary(max_size=40) | st.binary(max_size=10).map(lambda raw: b'{"timestamp_ms":' + raw + b"}"))
def test_any_bytes_are_a_value_or_a_refusal(raw: bytes) -> None:
    with suppress(InvalidInput, MalformedRequest):
        READING.decode(raw)
