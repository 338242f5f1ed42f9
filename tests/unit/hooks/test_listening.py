"""What processes tell one another of a source, and where a listener was."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.engines.notifications import PAYLOAD_BYTES_MAX
from crossdock.hooks.model import Delivery, DeliveryState, Event, EventStatus
from crossdock.hooks.rules.listening import (
    TEXT_BYTES_MAX,
    Notice,
    Position,
    cut_text,
    delivery_notice,
    encoded,
    event_notice,
    lag_notice,
    packed,
    unpacked,
)

SOURCE_ID = "src_0123456789abcdef"
EVENT_ID = "evt_0123456789abcdef"
NOW_MS = 1_735_732_800_000


def event(**changed: str | bytes) -> Event:
    values: dict[str, object] = {
        "event_id": EVENT_ID,
        "source_id": SOURCE_ID,
        "user_id": "usr_0123456789abcdef",
        "status": EventStatus.RECEIVED,
        "method": "POST",
        "path": "/orders",
        "query": "",
        "headers": (),
        "body": b'{"n": 1}',
        "content_type": "application/json",
        "source_ip": "192.0.2.1",
        "verified": True,
        "received_at": NOW_MS,
        "expires_at": NOW_MS // 1000 + 86_400,
        **changed,
    }
    return Event(**values)  # type: ignore[arg-type]


def delivery(state: DeliveryState) -> Delivery:
    return Delivery(
        event_id=EVENT_ID,
        connection_id="conn_0123456789abcdef",
        source_id=SOURCE_ID,
        user_id="usr_0123456789abcdef",
        received_at=NOW_MS,
        expires_at=NOW_MS // 1000 + 86_400,
        state=state,
        attempts=2,
    )


def test_an_event_is_told_by_its_summary_and_its_place() -> None:
    notice = event_notice(event())
    assert (notice.source_id, notice.kind, notice.position) == (
        SOURCE_ID,
        "event",
        f"1735732800000-{EVENT_ID}",
    )
    assert msgspec.json.decode(notice.data) == {
        "event_id": EVENT_ID,
        "source_id": SOURCE_ID,
        "method": "POST",
        "path": "/orders",
        "content_type": "application/json",
        "received_at": "2025-01-01T12:00:00.000Z",
        "size": 8,
    }


def test_a_delivery_is_told_by_its_state_and_what_it_was_answered() -> None:
    notice = delivery_notice(delivery(DeliveryState.RETRYING), 503)
    assert (notice.kind, notice.position) == ("delivery", "")
    assert msgspec.json.decode(notice.data) == {
        "event_id": EVENT_ID,
        "connection_id": "conn_0123456789abcdef",
        "state": "retrying",
        "attempts": 2,
        "status_code": 503,
    }


@pytest.mark.parametrize("status_code", [None, 0])
def test_a_delivery_that_got_no_answer_has_no_status_code(status_code: int | None) -> None:
    notice = delivery_notice(delivery(DeliveryState.RETRYING), status_code)
    assert "status_code" not in msgspec.json.decode(notice.data)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("", ""),
        ("/orders", "/orders"),
        ("x" * TEXT_BYTES_MAX, "x" * TEXT_BYTES_MAX),
        ("x" * (TEXT_BYTES_MAX + 1), "x" * TEXT_BYTES_MAX),
        ("ü" * TEXT_BYTES_MAX, "ü" * (TEXT_BYTES_MAX // 2)),
        ("x" + "ü" * TEXT_BYTES_MAX, "x" + "ü" * (TEXT_BYTES_MAX // 2 - 1)),
        ("\ud800", "?"),
    ],
)
def test_a_text_is_cut_between_characters_and_can_always_be_sent(text: str, kept: str) -> None:
    assert cut_text(text) == kept


@given(text=st.text(), content_type=st.text(st.characters(max_codepoint=0x1F), min_size=300))
def test_whatever_a_sender_chose_a_notice_fits_one_notification(text: str, content_type: str) -> None:
    notice = event_notice(event(method=text * 100, path=text * 10_000, content_type=content_type))
    [payload] = packed([encoded(notice)], PAYLOAD_BYTES_MAX)
    assert len(payload.encode()) <= PAYLOAD_BYTES_MAX
    assert unpacked(payload) == [notice]


@given(
    notices=st.lists(
        st.builds(
            Notice,
            st.text(max_size=20),
            st.sampled_from(["event", "delivery", "lagged"]),
            st.text(max_size=20),
            st.builds(lambda text: msgspec.Raw(msgspec.json.encode({"path": text})), st.text(max_size=50)),
        ),
        max_size=60,
    ),
    bytes_max=st.integers(600, 2_000),
)
def test_what_is_packed_comes_out_the_same_in_payloads_that_fit(
    notices: list[Notice], bytes_max: int
) -> None:
    payloads = list(packed(map(encoded, notices), bytes_max))
    assert all(len(payload.encode()) <= bytes_max for payload in payloads)
    assert [notice for payload in payloads for notice in unpacked(payload)] == notices


def test_as_few_payloads_as_there_can_be_are_made_in_order() -> None:
    assert list(packed([b"11", b"22", b"33", b"4"], 7)) == ["[11,22]", "[33,4]"]
    assert list(packed([], 7)) == []


def test_a_payload_of_somebody_else_is_refused() -> None:
    for payload in ("", "{}", '[["a","b","c"]]', "[1]"):
        with pytest.raises(msgspec.MsgspecError):
            unpacked(payload)


def test_a_lag_names_the_source_alone() -> None:
    assert unpacked(f"[{encoded(lag_notice(SOURCE_ID)).decode()}]") == [Notice(SOURCE_ID, "lagged", "")]


def test_a_place_is_read_back_from_its_text() -> None:
    position = Position(NOW_MS, EVENT_ID)
    assert Position.parse(position.text) == position
    assert Position.parse(Position(5, EVENT_ID).text) == Position(5, EVENT_ID)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "42",
        EVENT_ID,
        f"1735732800000-{EVENT_ID}\n",
        f"-735732800000-{EVENT_ID}",
        f"17357328000000-{EVENT_ID}",
        f"1735732800000-{EVENT_ID[:-1]}",
        f"1735732800000-src_{'a' * 16}",
        f"١735732800000-{EVENT_ID}",
        f"1735732800000-evt_{'#' * 16}",
    ],
)
def test_what_was_never_given_out_is_no_place(text: str) -> None:
    assert Position.parse(text) is None
