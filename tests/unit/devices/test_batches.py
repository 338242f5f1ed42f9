from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.devices import BOOT_ID, reading

from crossdock.devices.model import READING_BYTES_MAX, RejectionCode, SentReading
from crossdock.devices.rules.batches import (
    DAY_MS,
    EARLIEST_MS,
    AcceptanceWindow,
    SentItem,
    ahead_of,
    batches_of,
    canonical_json,
    conflicts,
    content_sha256,
    is_same_reading,
    not_stored,
    rejected_item,
    sent_item,
    unstorable,
)

NOW_MS = 1_735_732_800_500
RETENTION_SECONDS = 90 * 86_400
WINDOW = AcceptanceWindow.at(NOW_MS, RETENTION_SECONDS)
DEVICE = "AA:BB:CC:DD:EE:FF"


def item(index: int, sent: dict[str, Any]) -> SentItem:
    found = msgspec.convert(sent, SentReading)
    return sent_item(index, found, canonical_json(found))


def bad_item(index: int, batch_id: str | None) -> SentItem:
    return rejected_item(index, batch_id, b'{"bad":true}', RejectionCode.INVALID_READING, "bad")


def items_of(*sent: dict[str, Any]) -> list[SentItem]:
    return [item(index, each) for index, each in enumerate(sent)]


def codes(rejections: list[Any]) -> list[tuple[int, str]]:
    return [(each.index, each.code.value) for each in rejections]


# --- which times are taken -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("timestamp_ms", "code"),
    [
        (NOW_MS, None),
        (NOW_MS + DAY_MS, None),
        (NOW_MS + DAY_MS + 1, "timestamp_out_of_range"),
        (NOW_MS + DAY_MS + 60_000, "timestamp_out_of_range"),
        (9_999_999_999_999, "timestamp_out_of_range"),
        (10**30, "timestamp_out_of_range"),
        (EARLIEST_MS - 1, "timestamp_out_of_range"),
        (0, "timestamp_out_of_range"),
        (EARLIEST_MS, "expired"),
        (NOW_MS - RETENTION_SECONDS * 1000, "expired"),
        (NOW_MS - NOW_MS % 1000 - RETENTION_SECONDS * 1000 + 999, "expired"),
        (NOW_MS - NOW_MS % 1000 - RETENTION_SECONDS * 1000 + 1000, None),
    ],
)
def test_a_reading_is_taken_by_its_time(timestamp_ms: int, code: str | None) -> None:
    batches, rejections = batches_of(DEVICE, items_of(reading(timestamp_ms)), WINDOW)
    assert (len(batches), codes(rejections)) == ((1, []) if code is None else (0, [(0, code)]))


def test_without_retention_only_the_year_2000_is_too_old() -> None:
    window = AcceptanceWindow.at(NOW_MS, 0)
    assert codes(batches_of(DEVICE, items_of(reading(EARLIEST_MS)), window)[1]) == []
    assert codes(batches_of(DEVICE, items_of(reading(EARLIEST_MS - 1)), window)[1]) == [
        (0, "timestamp_out_of_range")
    ]


@given(
    now_ms=st.integers(10**12, 4 * 10**12),
    retention_seconds=st.integers(1, 10**9),
    age_ms=st.integers(-10_000, 10_000),
)
def test_a_reading_is_expired_exactly_when_its_row_would_be(
    now_ms: int, retention_seconds: int, age_ms: int
) -> None:
    timestamp_ms = now_ms - retention_seconds * 1000 + age_ms
    row_is_expired = timestamp_ms // 1000 + retention_seconds <= now_ms // 1000
    window = AcceptanceWindow.at(now_ms, retention_seconds)
    assert (timestamp_ms < window.expired_before_ms) is row_is_expired


# --- batches ---------------------------------------------------------------------------------------


def test_readings_that_share_a_batch_id_form_a_batch_in_the_order_they_first_appear() -> None:
    sent = items_of(
        reading(NOW_MS, "b"), reading(NOW_MS, "a"), reading(NOW_MS + 1, "b"), reading(NOW_MS + 1, "a")
    )
    batches, rejections = batches_of(DEVICE, sent, WINDOW)
    assert [(batch.batch_id, batch.indexes) for batch in batches] == [("b", (0, 2)), ("a", (1, 3))]
    assert [[r.timestamp_ms for r in batch.readings] for batch in batches] == [[NOW_MS, NOW_MS + 1]] * 2
    assert rejections == []


def test_of_two_readings_of_a_batch_with_the_same_time_the_later_is_rejected() -> None:
    sent = items_of(reading(NOW_MS, "a"), reading(NOW_MS, "a"), reading(NOW_MS, "b"))
    batches, rejections = batches_of(DEVICE, sent, WINDOW)
    assert [batch.indexes for batch in batches] == [(0,), (2,)]
    assert codes(rejections) == [(1, "duplicate_timestamp")]


def test_a_rejected_reading_does_not_take_its_time_from_a_good_one() -> None:
    sent = items_of(reading(NOW_MS, "a", sensors={"x": 10**300}), reading(NOW_MS, "a"))
    batches, rejections = batches_of(DEVICE, sent, WINDOW)
    assert [batch.indexes for batch in batches] == [(1,)]
    assert codes(rejections) == [(0, "invalid_value")]


@pytest.mark.parametrize(("count", "stored"), [(1, True), (99, True), (100, False)])
def test_a_batch_has_at_most_99_readings(count: int, stored: bool) -> None:
    sent = items_of(*(reading(NOW_MS + n, "a") for n in range(count)))
    batches, rejections = batches_of(DEVICE, sent, WINDOW)
    assert [len(batch.readings) for batch in batches] == ([count] if stored else [])
    assert codes(rejections) == ([] if stored else [(n, "batch_too_large") for n in range(count)])


def test_100_readings_without_a_batch_id_are_each_rejected_for_that() -> None:
    _, rejections = batches_of(DEVICE, [bad_item(n, None) for n in range(100)], WINDOW)
    assert codes(rejections) == [(n, "invalid_reading") for n in range(100)]


@pytest.mark.parametrize(("excess", "code"), [(0, None), (1, "reading_too_large")])
def test_a_reading_has_at_most_16_kb(excess: int, code: str | None) -> None:
    good = msgspec.convert(reading(NOW_MS), SentReading)
    sized = sent_item(0, good, b" " * (READING_BYTES_MAX + excess))
    assert codes(batches_of(DEVICE, [sized], WINDOW)[1]) == ([] if code is None else [(0, code)])


@pytest.mark.parametrize(
    ("value", "is_good"),
    [
        (0, True),
        (-0.0, True),
        (10**37, True),
        (10**125, True),
        (1e-130, True),
        (9.99e125, True),
        (float("nan"), False),
        (float("inf"), False),
        (float("-inf"), False),
        (1e126, False),
        (1e-131, False),
        (int("1" * 39), False),
        (10**126, False),
    ],
)
def test_a_sensor_value_is_a_number_that_every_store_holds(value: float, is_good: bool) -> None:
    _, rejections = batches_of(DEVICE, items_of(reading(NOW_MS, sensors={"fine": 1, "odd": value})), WINDOW)
    assert codes(rejections) == ([] if is_good else [(0, "invalid_value")])
    assert is_good or "sensors.odd" in rejections[0].detail


def test_text_that_looks_like_an_odd_number_is_none() -> None:
    odd = reading(NOW_MS, "1e999null", firmware_version="9" * 60)
    assert codes(batches_of(DEVICE, items_of(odd), WINDOW)[1]) == []


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("bad"), st.sampled_from(["a", "b", None]), st.just(0)),
            st.tuples(
                st.just("good"),
                st.sampled_from(["a", "b", "c"]),
                st.sampled_from([0, 1, 2, -RETENTION_SECONDS * 1000, DAY_MS + 1]),
            ),
        ),
        max_size=12,
    )
)
def test_every_reading_ends_either_in_a_batch_or_rejected(entries: list[tuple[str, str | None, int]]) -> None:
    sent = [
        bad_item(index, batch_id) if kind == "bad" else item(index, reading(NOW_MS + shift, batch_id))
        for index, (kind, batch_id, shift) in enumerate(entries)
    ]
    batches, rejections = batches_of(DEVICE, sent, WINDOW)
    settled = [index for batch in batches for index in batch.indexes]
    settled += [rejection.index for rejection in rejections]
    assert sorted(settled) == list(range(len(entries)))
    assert [each.index for each in rejections] == sorted(each.index for each in rejections)
    assert all(batch.readings for batch in batches)
    assert len({batch.batch_id for batch in batches}) == len(batches)
    for batch in batches:
        assert len({each.timestamp_ms for each in batch.readings}) == len(batch.readings)
        assert all(sent[i].reading is r for i, r in zip(batch.indexes, batch.readings, strict=True))


# --- content ---------------------------------------------------------------------------------------


def test_the_content_is_of_all_readings_good_and_bad_in_their_order() -> None:
    good, bad = item(0, reading(NOW_MS, "a")), bad_item(1, "a")
    contents = [content_sha256(DEVICE, sent) for sent in ([good], [good, bad], [bad, good], [bad])]
    assert len(set(contents)) == 4
    [batch], _ = batches_of(DEVICE, [good, bad], WINDOW)
    assert batch.content_sha256 == contents[1]


def test_the_content_is_of_one_device() -> None:
    sent = items_of(reading(NOW_MS))
    assert content_sha256(DEVICE, sent) != content_sha256("AA:BB:CC:DD:EE:00", sent)


# --- repeats ---------------------------------------------------------------------------------------


def batch_of(*sent: dict[str, Any], now_ms: int = NOW_MS) -> Any:
    [batch], _ = batches_of(DEVICE, items_of(*sent), AcceptanceWindow.at(now_ms, 0))
    return batch


def test_a_conflict_and_what_can_not_be_stored_name_every_reading_that_was_to_be_stored() -> None:
    batch = batch_of(reading(0, "a"), reading(NOW_MS, "a"), reading(NOW_MS + 1, "a"))
    assert codes(conflicts(batch)) == [(1, "batch_conflict"), (2, "batch_conflict")]
    assert codes(unstorable(batch, "why")) == [(1, "invalid_value"), (2, "invalid_value")]


def test_what_was_too_far_ahead_when_its_batch_was_stored_is_known_later() -> None:
    sent = (reading(0, "a"), reading(NOW_MS, "a"), reading(NOW_MS + DAY_MS + 60_000, "a"))
    at_first, later = batch_of(*sent), batch_of(*sent, now_ms=NOW_MS + DAY_MS)
    assert at_first.content_sha256 == later.content_sha256
    assert ahead_of(at_first, NOW_MS) == []
    assert ahead_of(later, NOW_MS) == [1]
    assert codes(not_stored(later, [1])) == [(2, "timestamp_out_of_range")]


STORED = {**reading(NOW_MS, "a"), "friendly_name": "added", "expiration_time": 1, "ts_batch": "added"}


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ({}, True),
        ({"sensors": {"temp_c": 21.50}}, True),
        ({"sensors": {"temp_c": 21}}, False),
        ({"sensors": {"temp_c": 21.5, "more": 1}}, False),
        ({"sensor_status": {}}, False),
        ({"sensor_status": {"temp": "error"}}, False),
        ({"firmware_version": "1.0.17"}, False),
        ({"boot_id": BOOT_ID.replace("7", "8")}, False),
        ({"timestamp_ms": NOW_MS + 1}, False),
        ({"batch_id": "b"}, False),
    ],
)
def test_a_row_holds_a_reading_if_all_that_was_sent_is_equal(changed: dict[str, Any], same: bool) -> None:
    assert is_same_reading(STORED, msgspec.convert(reading(NOW_MS, "a") | changed, SentReading)) is same


def test_a_whole_float_equals_the_int_that_a_store_makes_of_it() -> None:
    sent = msgspec.convert(reading(NOW_MS, "a", sensors={"x": 2.0, "y": 1e20}), SentReading)
    assert is_same_reading(reading(NOW_MS, "a", sensors={"x": 2, "y": 10**20}), sent)
