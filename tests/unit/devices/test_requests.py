from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.devices import BOOT_ID, reading

from crossdock.devices.model import READINGS_MAX
from crossdock.devices.rules.batches import AcceptanceWindow, SentItem, batches_of
from crossdock.devices.rules.requests import parse_readings
from crossdock.kit.errors import InvalidInput, MalformedRequest

DEVICE = "AA:BB:CC:DD:EE:FF"
NOW_MS = 1_735_732_800_000
WINDOW = AcceptanceWindow.at(NOW_MS, 0)


def body(*readings: object, hardware_id: object = DEVICE, **more: object) -> bytes:
    # Python's own encoder writes NaN and Infinity, as firmware does.
    return json.dumps({"hardware_id": hardware_id, "readings": list(readings), **more}).encode()


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in reading(NOW_MS, "x").items() if key != name}


def changed(**fields: object) -> dict[str, Any]:
    return reading(NOW_MS, "x") | fields


WRONG_READINGS: list[tuple[object, str, str]] = [
    (without("batch_id"), "invalid_reading", "batch_id"),
    (without("timestamp_ms"), "invalid_reading", "timestamp_ms"),
    (without("boot_id"), "invalid_reading", "boot_id"),
    (without("firmware_version"), "invalid_reading", "firmware_version"),
    (without("sensors"), "invalid_reading", "sensors"),
    (without("sensor_status"), "invalid_reading", "sensor_status"),
    (changed(colour="red"), "invalid_reading", "colour"),
    (changed(batch_id="x" * 257), "invalid_reading", "batch_id"),
    (changed(batch_id=""), "invalid_reading", "batch_id"),
    (changed(batch_id="a b"), "invalid_reading", "batch_id"),
    (changed(batch_id="a#b"), "invalid_reading", "batch_id"),
    (changed(batch_id="ä"), "invalid_reading", "batch_id"),
    (changed(batch_id="a\n"), "invalid_reading", "batch_id"),
    (changed(batch_id="a\0"), "invalid_reading", "batch_id"),
    (changed(batch_id=7), "invalid_reading", "batch_id"),
    (changed(batch_id=None), "invalid_reading", "batch_id"),
    (changed(timestamp_ms="1"), "invalid_reading", "timestamp_ms"),
    (changed(timestamp_ms=-1), "invalid_reading", "timestamp_ms"),
    (changed(timestamp_ms=1.5), "invalid_reading", "timestamp_ms"),
    (changed(timestamp_ms=True), "invalid_reading", "timestamp_ms"),
    (changed(timestamp_ms=float("nan")), "invalid_reading", "timestamp_ms"),
    (changed(boot_id="7c9e6679-7425-10de-944b-e07fc1f90ae7"), "invalid_reading", "boot_id"),
    (changed(boot_id="7c9e6679-7425-40de-744b-e07fc1f90ae7"), "invalid_reading", "boot_id"),
    (changed(boot_id="7c9e66797425-40de-944b-e07fc1f90ae7"), "invalid_reading", "boot_id"),
    (changed(boot_id=BOOT_ID + "\n"), "invalid_reading", "boot_id"),
    (changed(firmware_version=""), "invalid_reading", "firmware_version"),
    (changed(firmware_version="x" * 65), "invalid_reading", "firmware_version"),
    (changed(firmware_version="1.0\0"), "invalid_reading", "firmware_version"),
    (changed(sensors={"temp": True}), "invalid_reading", "sensors"),
    (changed(sensors={"temp": "1"}), "invalid_reading", "sensors"),
    (changed(sensors={"temp": None}), "invalid_reading", "sensors"),
    (changed(sensors={"Temp": 1}), "invalid_reading", "sensors"),
    (changed(sensors={"": 1}), "invalid_reading", "sensors"),
    (changed(sensors={"t" * 65: 1}), "invalid_reading", "sensors"),
    (changed(sensors={"a\0": 1}), "invalid_reading", "sensors"),
    (changed(sensors={f"s{n}": 1 for n in range(65)}), "invalid_reading", "sensors"),
    (changed(sensors=[]), "invalid_reading", "sensors"),
    (changed(sensors={"temp": float("nan")}), "invalid_value", "sensors.temp"),
    (changed(sensors={"temp": float("inf")}), "invalid_value", "sensors.temp"),
    (changed(sensors={"temp": float("-inf")}), "invalid_value", "sensors.temp"),
    (changed(sensors={"temp": 1e300}), "invalid_value", "sensors.temp"),
    (changed(sensors={"temp": int("1" * 39)}), "invalid_value", "sensors.temp"),
    (changed(sensor_status={"temp": "great"}), "invalid_reading", "sensor_status"),
    (changed(sensor_status={"temp": 1}), "invalid_reading", "sensor_status"),
    (changed(sensor_status={"Temp": "ok"}), "invalid_reading", "sensor_status"),
    (changed(sensor_status={f"s{n}": "ok" for n in range(65)}), "invalid_reading", "sensor_status"),
    (None, "invalid_reading", ""),
    (7, "invalid_reading", ""),
    ([], "invalid_reading", ""),
    ("reading", "invalid_reading", ""),
]


@pytest.mark.parametrize(("wrong", "code", "named"), WRONG_READINGS)
def test_a_wrong_reading_is_rejected_alone_and_its_reason_names_the_field(
    wrong: object, code: str, named: str
) -> None:
    good, other = reading(NOW_MS, "good"), reading(NOW_MS + 1, "other")
    hardware_id, items = parse_readings(body(good, wrong, other))
    assert hardware_id == DEVICE
    batches, [rejection] = batches_of(DEVICE, items, WINDOW)
    assert [(batch.batch_id, batch.indexes) for batch in batches] == [("good", (0,)), ("other", (2,))]
    assert (rejection.index, rejection.code.value) == (1, code)
    assert named in rejection.detail
    sent_id = wrong.get("batch_id") if isinstance(wrong, dict) else None
    assert rejection.batch_id == (sent_id if isinstance(sent_id, str) else None)


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" * 5000])
def test_a_number_that_json_or_a_float_does_not_have_spoils_its_own_reading_only(literal: str) -> None:
    text = body(reading(NOW_MS, "good"), changed(sensors={"temp": 123456789})).decode()
    _, items = parse_readings(text.replace("123456789", literal).encode())
    batches, [rejection] = batches_of(DEVICE, items, WINDOW)
    assert [batch.batch_id for batch in batches] == ["good"]
    assert (rejection.index, rejection.code.value) == (1, "invalid_value")


GOOD_READINGS: list[dict[str, Any]] = [
    changed(sensors={}, sensor_status={}),
    changed(sensors={f"s{n}": n for n in range(64)}),
    changed(sensors={"x": 0, "y": -1.5, "z": 1e20, "w": 10**37, "_0": 0.1}),
    changed(batch_id="x" * 256),
    changed(batch_id="AZaz09_-:"),
    changed(boot_id=BOOT_ID.upper()),
    changed(firmware_version="v1 β/2 #3"),
    changed(sensor_status={"a": "ok", "b": "error"}),
]


@pytest.mark.parametrize("good", GOOD_READINGS)
@pytest.mark.parametrize("neighbours", [[], ["no reading"], [changed(sensors={"temp": float("nan")})]])
def test_a_good_reading_is_read_as_it_was_sent_whatever_its_neighbours_are(
    good: dict[str, Any], neighbours: list[object]
) -> None:
    _, items = parse_readings(body(good, *neighbours))
    assert items[0].reading is not None
    assert msgspec.to_builtins(items[0].reading) == good


# --- the whole -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"", "body_required"),
        (b"  ", "body_required"),
        (b"{", "malformed_json"),
        (b"not json", "malformed_json"),
        (body(reading(NOW_MS))[:-2], "malformed_json"),
        (body(reading(NOW_MS)) + b"x", "malformed_json"),
        (b'{"hardware_id": "AA:BB:CC:DD:EE:FF", "readings": [{"batch_id": "\xff"}]}', "malformed_json"),
        (b'{"hardware_id": "AA:BB:CC:DD:EE:FF", "readings": [{"batch_id": "\\ud800"}]}', "malformed_json"),
        (b'{"hardware_id": "AA:BB:CC:DD:EE:FF", "readings": [{"\\udfff": NaN}]}', "malformed_json"),
        (b"[" * 100_000, "malformed_json"),
        (b'{"hardware_id": "AA:BB:CC:DD:EE:FF", "readings": ' + b"[" * 100_000, "malformed_json"),
    ],
)
def test_what_is_no_json_is_refused_as_a_whole(raw: bytes, code: str) -> None:
    with pytest.raises(MalformedRequest) as refused:
        parse_readings(raw)
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        (body(reading(NOW_MS), hardware_id="aa:bb:cc:dd:ee:ff"), "hardware_id"),
        (body(reading(NOW_MS), hardware_id="AA:BB:CC:DD:EE"), "hardware_id"),
        (body(reading(NOW_MS), hardware_id="AA-BB-CC-DD-EE-FF"), "hardware_id"),
        (body(reading(NOW_MS), hardware_id=DEVICE + "\n"), "hardware_id"),
        (body(reading(NOW_MS), hardware_id=DEVICE + "\0"), "hardware_id"),
        (body(reading(NOW_MS), hardware_id=None), "hardware_id"),
        (body(changed(sensors={"x": float("nan")}), hardware_id="nonsense"), "hardware_id"),
        (body(reading(NOW_MS), colour="red"), "colour"),
        (body(), "readings"),
        (body(*[reading(NOW_MS)] * (READINGS_MAX + 1)), "readings"),
        (b'{"hardware_id": "AA:BB:CC:DD:EE:FF"}', "readings"),
        (b'{"hardware_id": "AA:BB:CC:DD:EE:FF", "readings": {}}', "readings"),
        (b"[]", ""),
        (b"null", ""),
        (b"NaN", ""),
    ],
)
def test_a_body_of_another_outer_form_is_refused_as_a_whole(raw: bytes, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_readings(raw)
    assert [each.field for each in refused.value.fields] == [field]


# --- content, whichever way the body was read --------------------------------------------------------

values = st.one_of(
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=False, allow_infinity=False, min_value=-1e100, max_value=1e100).filter(
        lambda value: value == 0 or abs(value) > 1e-100
    ),
)
sensor_names = st.text("abc_9", min_size=1, max_size=4)
readings = st.builds(
    lambda shift, sensors, status, firmware: reading(
        NOW_MS + shift, "x", sensors=sensors, sensor_status=status, firmware_version=firmware
    ),
    st.integers(0, 5),
    st.dictionaries(sensor_names, values, max_size=4),
    st.dictionaries(sensor_names, st.sampled_from(["ok", "error"]), max_size=3),
    st.text(
        st.characters(min_codepoint=0x20, exclude_characters="\x7f", codec="utf-8"), min_size=1, max_size=5
    ),
)


def contents(*texts: str) -> list[str]:
    """The content of batch "x" in the body that each text is the readings of."""
    return [content_of(f'{{"hardware_id": "{DEVICE}", "readings": {text}}}'.encode()) for text in texts]


def content_of(raw: bytes) -> str:
    _, items = parse_readings(raw)
    batches, _ = batches_of(DEVICE, items, WINDOW)
    return next(batch.content_sha256 for batch in batches if batch.batch_id == "x")


def shuffled(document: Any) -> Any:
    if isinstance(document, dict):
        return {name: shuffled(document[name]) for name in reversed(document)}
    return document


@given(st.lists(readings, min_size=1, max_size=3))
def test_the_content_does_not_depend_on_the_order_of_keys_or_on_white_space(sent: list[Any]) -> None:
    plain = json.dumps(sent)
    other = json.dumps([shuffled(each) for each in sent], indent=3, ensure_ascii=False)
    assert len(set(contents(plain, other))) == 1


@given(st.lists(readings, min_size=1, max_size=3))
def test_a_batch_has_the_same_content_alone_and_beside_broken_readings(sent: list[Any]) -> None:
    """Which of three ways a body is read depends on the neighbours: a repeat may come with others."""
    nan = changed(batch_id="other", sensors={"x": float("nan")})
    alone, beside_wrong, beside_odd = contents(
        json.dumps(sent), json.dumps([*sent, "wrong"]), json.dumps([*sent, nan])
    )
    assert alone == beside_wrong == beside_odd


@given(readings, readings)
def test_other_values_make_other_content(one: dict[str, Any], other: dict[str, Any]) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    left, right = contents(json.dumps([one]), json.dumps([other]))
    assert (left == right) is same


@given(st.lists(readings, min_size=2, max_size=3, unique_by=lambda sent: sent["timestamp_ms"]))
def test_the_order_of_readings_is_part_of_the_content(sent: list[Any]) -> None:
    left, right = contents(json.dumps(sent), json.dumps(sent[::-1]))
    assert left != right


def test_every_reading_of_a_large_request_keeps_its_index() -> None:
    _, items = parse_readings(body(*([reading(NOW_MS), "wrong"] * 50)))
    assert [item.index for item in items] == list(range(100))
    assert [isinstance(item, SentItem) and item.reading is not None for item in items] == [True, False] * 50
