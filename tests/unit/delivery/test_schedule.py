from __future__ import annotations

import math
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.delivery.schedule import RetryPolicy, parse_retry_after, parse_retry_policy
from crossdock.kit.errors import InvalidInput

NOW_MS = 1_735_732_800_000  # 2025-01-01T12:00:00Z
DRAWN = st.floats(0, 1, exclude_max=True)
DELAYS = st.lists(st.floats(0, 86_400), min_size=1, max_size=8)


def test_the_default_schedule_makes_eight_attempts_in_28_hours() -> None:
    policy = parse_retry_policy(None)
    assert policy.attempts_max == 8
    waits = [policy.base_delay_seconds(attempt) for attempt in range(1, 9)]
    assert waits == [0, 5, 300, 1800, 7200, 18_000, 36_000, 36_000]


@pytest.mark.parametrize(
    ("raw", "waits"),
    [
        ({"schedule_seconds": [0]}, [0]),
        ({"schedule_seconds": [0, 1.5, 86_400]}, [0, 1.5, 86_400]),
        ({"schedule_seconds": [10, 5, 1]}, [10, 5, 1]),
        ({"schedule_seconds": [0] * 8}, [0] * 8),
        (
            {"strategy": "exponential", "base_seconds": 5, "max_seconds": 60, "max_attempts": 7},
            [0, 5, 10, 20, 40, 60, 60],
        ),
        (
            {"strategy": "linear", "base_seconds": 5, "max_seconds": 18, "max_attempts": 6},
            [0, 5, 10, 15, 18, 18],
        ),
        ({"strategy": "linear", "base_seconds": 5, "max_seconds": 60, "max_attempts": 1}, [0]),
        ({"strategy": "linear", "base_seconds": 5, "max_seconds": 5, "max_attempts": 3}, [0, 5, 5]),
        (
            {"strategy": "exponential", "base_seconds": 43_200},
            [0, 43_200, 86_400, 86_400, 86_400, 86_400, 86_400, 86_400],
        ),
        ({"strategy": "exponential", "base_seconds": 0, "max_attempts": 2}, [0, 0]),
    ],
)
def test_a_policy_waits_as_it_was_written(raw: object, waits: list[float]) -> None:
    assert list(parse_retry_policy(raw).delays_seconds) == waits


GROWING = {"strategy": "exponential", "base_seconds": 5, "max_seconds": 60, "max_attempts": 7}


@pytest.mark.parametrize(
    ("raw", "place", "code"),
    [
        ([], "retry_config", "wrong_type"),
        ("0,5", "retry_config", "wrong_type"),
        ({}, "retry_config.schedule_seconds", "required"),
        ({"schedule_seconds": []}, "retry_config.schedule_seconds", "wrong_length"),
        ({"schedule_seconds": [0] * 9}, "retry_config.schedule_seconds", "wrong_length"),
        ({"schedule_seconds": "0"}, "retry_config.schedule_seconds", "wrong_type"),
        ({"schedule_seconds": [0, "5"]}, "retry_config.schedule_seconds[1]", "wrong_type"),
        ({"schedule_seconds": [0, None]}, "retry_config.schedule_seconds[1]", "wrong_type"),
        ({"schedule_seconds": [True]}, "retry_config.schedule_seconds[0]", "wrong_type"),
        ({"schedule_seconds": [0, 1, -1]}, "retry_config.schedule_seconds[2]", "out_of_range"),
        ({"schedule_seconds": [86_401]}, "retry_config.schedule_seconds[0]", "out_of_range"),
        ({"schedule_seconds": [math.nan]}, "retry_config.schedule_seconds[0]", "out_of_range"),
        ({"schedule_seconds": [math.inf]}, "retry_config.schedule_seconds[0]", "out_of_range"),
        ({"schedule_seconds": [10**400]}, "retry_config.schedule_seconds[0]", "out_of_range"),
        ({"schedule_seconds": [0], "max_attempts": 3}, "retry_config.max_attempts", "unknown_field"),
        (GROWING | {"schedule_seconds": [0]}, "retry_config.schedule_seconds", "unknown_field"),
        (GROWING | {"strategy": "fibonacci"}, "retry_config.strategy", "not_a_choice"),
        (GROWING | {"strategy": None}, "retry_config.strategy", "wrong_type"),
        (GROWING | {"base_seconds": -1}, "retry_config.base_seconds", "out_of_range"),
        (GROWING | {"max_seconds": 4}, "retry_config.max_seconds", "out_of_range"),
        (GROWING | {"max_seconds": 86_401}, "retry_config.max_seconds", "out_of_range"),
        (GROWING | {"max_attempts": 0}, "retry_config.max_attempts", "out_of_range"),
        (GROWING | {"max_attempts": 9}, "retry_config.max_attempts", "out_of_range"),
        (GROWING | {"max_attempts": 2.5}, "retry_config.max_attempts", "wrong_type"),
        ({"strategy": "linear"}, "retry_config.base_seconds", "required"),
    ],
)
def test_a_policy_that_is_wrong_is_refused_naming_the_place(raw: object, place: str, code: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_retry_policy(raw)
    assert [(problem.field, problem.code) for problem in caught.value.fields] == [(place, code)]


def test_the_place_begins_with_the_name_that_the_caller_gives() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_retry_policy({"schedule_seconds": []}, "webhook.retry")
    assert caught.value.fields[0].field == "webhook.retry.schedule_seconds"
    assert "webhook.retry" in caught.value.message


@given(DELAYS, DRAWN, st.data())
def test_jitter_only_adds_at_most_a_tenth_and_a_minute(
    delays: list[float], drawn: float, data: st.DataObject
) -> None:
    policy = RetryPolicy(tuple(delays))
    attempt = data.draw(st.integers(1, len(delays)))
    base = policy.base_delay_seconds(attempt)
    assert base <= policy.delay_seconds(attempt, lambda: drawn) <= base + min(base / 10, 60) + 1e-9


@pytest.mark.parametrize(("attempt", "seconds"), [(1, 0), (2, 5.25), (3, 315), (5, 7230), (8, 36_030)])
def test_jitter_is_drawn_evenly_from_its_range(attempt: int, seconds: float) -> None:
    assert RetryPolicy().delay_seconds(attempt, lambda: 0.5) == seconds


@pytest.mark.parametrize("attempt", [-1, 0, 9])
def test_there_is_no_wait_before_an_attempt_that_is_not_made(attempt: int) -> None:
    with pytest.raises(ValueError, match="there is no attempt"):
        RetryPolicy().base_delay_seconds(attempt)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (None, None),
        ("", None),
        ("0", 0),
        ("120", 120),
        (" 120 ", 120),
        ("-1", None),
        ("1.5", None),
        ("1e3", None),
        ("\u0661", None),
        ("9" * 400, None),
        ("soon", None),
        ("Wed, 01 Jan 2025 12:00:30 GMT", 30),
        ("Wednesday, 01-Jan-25 12:00:30 GMT", 30),
        ("Wed Jan  1 12:00:30 2025", 30),
        ("Wed, 01 Jan 2025 13:00:30 +0100", 30),
        ("Wed, 01 Jan 2025 11:59:00 GMT", 0),
        ("Wed, 99 Jan 2025 12:00:30 GMT", None),
        ("Wed, 01 Jan 99999999999 12:00:30 GMT", None),
        ("Wed, 01 Jan 2025 12:00:30 +9999999999", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_a_date(text: str | None, seconds: float | None) -> None:
    assert parse_retry_after(text, NOW_MS) == seconds


@pytest.fixture
def tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The machine's time zone is nine hours away from UTC."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("tokyo")
def test_a_date_without_a_zone_is_utc_wherever_the_machine_stands() -> None:
    assert parse_retry_after("Wed Jan  1 12:00:30 2025", NOW_MS) == 30


@given(st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1)))
def test_any_http_date_is_read(moment: datetime) -> None:
    moment = moment.replace(microsecond=0, tzinfo=UTC)
    expected = max(moment.timestamp() - NOW_MS / 1000, 0)
    assert parse_retry_after(format_datetime(moment, usegmt=True), NOW_MS) == expected


@given(
    st.text(max_size=60)
    | st.from_regex(r"[A-Z][a-z]{2}, \d+ [A-Z][a-z]{2} \d+ [\d:]+ [+-]?\w+", fullmatch=True)
)
def test_whatever_a_server_says_is_understood_or_ignored(text: str) -> None:
    seconds = parse_retry_after(text, NOW_MS)
    assert seconds is None or seconds >= 0
