"""Comparisons as a table for people and as JSON for programs."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from typing import Any

from bench.harness.rounds import Comparison, middle

COLUMNS = ("what", "ratio", "spread", "bar", "", "product", "yardstick", "p50 / p99")


def row(comparison: Comparison) -> tuple[str, ...]:
    ours = middle(comparison.product_samples)
    theirs = middle(comparison.yardstick_samples)
    verdict = "" if comparison.bar is None else "pass" if comparison.passed else "FAIL"
    return (
        comparison.name,
        f"{comparison.ratio:.3f}",
        f"{min(comparison.ratios):.3f}-{max(comparison.ratios):.3f}",
        "" if comparison.bar is None else f"{comparison.bar:.2f}",
        verdict,
        f"{ours.per_second:,.0f} {comparison.unit}/s",
        f"{theirs.per_second:,.0f} ({comparison.yardstick})",
        ""
        if ours.latency_ms_p50 is None or ours.latency_ms_p99 is None
        else f"{ours.latency_ms_p50:.1f} / {ours.latency_ms_p99:.1f} ms",
    )


def table(comparisons: Sequence[Comparison]) -> str:
    rows = [COLUMNS, *(row(comparison) for comparison in comparisons)]
    widths = [max(len(cells[column]) for cells in rows) for column in range(len(COLUMNS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
        for cells in rows
    )


def document(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    return {
        "machine": {
            "processors": os.cpu_count(),
            "architecture": platform.machine(),
            "python": platform.python_version(),
        },
        "comparisons": [
            {
                "name": comparison.name,
                "unit": f"{comparison.unit}/s",
                "ratio": comparison.ratio,
                "ratios": comparison.ratios,
                "bar": comparison.bar,
                "passed": comparison.passed,
                "yardstick": comparison.yardstick,
                "product_samples": comparison.product_samples,
                "yardstick_samples": comparison.yardstick_samples,
            }
            for comparison in comparisons
        ],
    }
