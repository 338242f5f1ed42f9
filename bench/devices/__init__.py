"""The devices slice beside its yardsticks: how fast readings are taken in and given out."""

from __future__ import annotations

from bench.devices import ingestion, queries
from bench.harness.options import Options
from bench.harness.rounds import Comparison


async def run(options: Options) -> list[Comparison]:
    return [*await ingestion.run(options), *await queries.run(options)]
