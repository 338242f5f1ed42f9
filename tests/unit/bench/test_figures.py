"""What the benches conclude from what they measured."""

from __future__ import annotations

import pytest
from bench.harness.load_process import percentile
from bench.harness.report import row
from bench.harness.rounds import Comparison, Sample


def comparison(ours: list[float], theirs: list[float], bar: float | None) -> Comparison:
    return Comparison(
        name="it",
        unit="requests",
        yardstick="empty lane",
        bar=bar,
        product_samples=[Sample(per_second=rate) for rate in ours],
        yardstick_samples=[Sample(per_second=rate) for rate in theirs],
    )


@pytest.mark.parametrize(("bar", "passed"), [(0.39, True), (0.40, True), (0.41, False), (None, True)])
def test_the_median_of_the_rounds_decides(bar: float | None, passed: bool) -> None:
    # Round by round 0.2, 0.4 and 0.9; the ratio of the best rates alone would be 0.9.
    assert comparison([200, 400, 900], [1000, 1000, 1000], bar).passed is passed


def test_a_round_is_compared_with_the_yardstick_of_the_same_round() -> None:
    assert comparison([100, 200], [200, 400], None).ratios == [0.5, 0.5]


@pytest.mark.parametrize(("bar", "verdict"), [(0.3, "pass"), (0.6, "FAIL"), (None, "")])
def test_a_row_says_whether_the_bar_holds(bar: float | None, verdict: str) -> None:
    assert row(comparison([500], [1000], bar))[4] == verdict


@pytest.mark.parametrize(("share", "expected"), [(0.5, 50.0), (0.99, 99.0), (0.999, 100.0), (1, 100.0)])
def test_a_percentile_is_a_value_that_was_measured(share: float, expected: float) -> None:
    assert percentile([float(value) for value in range(1, 101)], share) == expected
