from __future__ import annotations

import pytest

from crossdock.processes.supervised import restart_delay_seconds


@pytest.mark.parametrize(
    ("crashes", "expected"),
    [(1, 0.0), (2, 0.5), (3, 1.0), (4, 2.0), (7, 16.0), (8, 30.0), (9, 30.0), (10_000, 30.0)],
)
def test_the_first_restart_is_immediate_and_pauses_double_up_to_half_a_minute(
    crashes: int, expected: float
) -> None:
    assert restart_delay_seconds(crashes) == expected
