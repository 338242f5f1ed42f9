from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How long and how wide to measure; the same for the product and its yardsticks."""

    rounds: int
    seconds: float
    workers: int
    directory: Path
    """For data directories and rendered requests; gone afterwards."""
    say: Callable[[str], None]
    """Progress, beside the table."""
