"""Measures several things in turn, round after round, so that a slow minute of the machine hits all of them.

What decides is the median over the rounds of product / yardstick measured in the same round.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from statistics import median

import msgspec

from bench.harness.load import LoadResult
from bench.harness.options import Options


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement; latencies where there were requests."""

    per_second: float
    latency_ms_p50: float | None = None
    latency_ms_p99: float | None = None


Measure = Callable[[float], Awaitable[Sample]]
"""Takes about how many seconds to measure for."""

WARM_UP_SECONDS = 0.5


def sample_of(result: LoadResult, count: int | None = None) -> Sample:
    """`count`: what the requests achieved, where that is not simply their number."""
    return Sample(
        per_second=(result.completed if count is None else count) / result.seconds,
        latency_ms_p50=result.latency_ms_p50,
        latency_ms_p99=result.latency_ms_p99,
    )


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The product beside its yardstick, a sample of each per round. No bar: only to be seen."""

    name: str
    unit: str
    yardstick: str
    bar: float | None
    product_samples: list[Sample]
    yardstick_samples: list[Sample]

    @property
    def ratios(self) -> list[float]:
        pairs = zip(self.product_samples, self.yardstick_samples, strict=True)
        return [ours.per_second / theirs.per_second for ours, theirs in pairs]

    @property
    def ratio(self) -> float:
        return median(self.ratios)

    @property
    def passed(self) -> bool:
        return self.bar is None or self.ratio >= self.bar


async def measure_rounds(contenders: Mapping[str, Measure], options: Options) -> dict[str, list[Sample]]:
    """Every contender once per round, after a short run of each that does not count.

    The order turns around each round, so that none is always first.
    """
    for measure in contenders.values():
        await measure(WARM_UP_SECONDS)
    samples: dict[str, list[Sample]] = {name: [] for name in contenders}
    for number in range(options.rounds):
        names = list(contenders) if number % 2 == 0 else list(contenders)[::-1]
        for name in names:
            sample = await contenders[name](options.seconds)
            samples[name].append(sample)
            options.say(f"  round {number + 1} of {options.rounds}: {name}: {sample.per_second:,.0f}/s")
    return samples


def middle(samples: Sequence[Sample]) -> Sample:
    """The sample whose rate is the median (the upper one of an even number)."""
    return sorted(samples, key=lambda sample: sample.per_second)[len(samples) // 2]
