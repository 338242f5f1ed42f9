from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.kit.backoff import Backoff


def test_the_ceiling_doubles_up_to_the_cap() -> None:
    backoff = Backoff(base_seconds=0.5, cap_seconds=5)
    assert [backoff.ceiling_seconds(attempt) for attempt in range(1, 7)] == [0.5, 1, 2, 4, 5, 5]


@given(
    st.integers(1, 10**9),
    st.floats(0.001, 100),
    st.floats(0.001, 10_000),
    st.floats(0, 1, exclude_max=True),
)
def test_a_delay_lies_between_zero_and_its_ceiling(
    attempt: int, base_seconds: float, cap_seconds: float, drawn: float
) -> None:
    backoff = Backoff(base_seconds, cap_seconds)
    assert (
        0 <= backoff.delay_seconds(attempt, lambda: drawn) <= backoff.ceiling_seconds(attempt) <= cap_seconds
    )


@pytest.mark.parametrize(("drawn", "delay_seconds"), [(0.0, 0), (0.25, 2), (0.5, 4)])
def test_the_whole_range_down_to_zero_is_used(drawn: float, delay_seconds: float) -> None:
    backoff = Backoff(base_seconds=4, cap_seconds=100)
    assert backoff.delay_seconds(2, lambda: drawn) == delay_seconds


def test_attempts_are_counted_from_one() -> None:
    with pytest.raises(ValueError, match="counted from 1"):
        Backoff(1, 2).ceiling_seconds(0)
