"""The hooks slice beside its yardsticks: how fast webhooks are kept, and how fast they are delivered."""

from __future__ import annotations

from bench.harness.options import Options
from bench.harness.rounds import Comparison
from bench.hooks import delivery, ingestion, neighbours


async def run(options: Options) -> list[Comparison]:
    return [
        *await ingestion.run(options),
        *await delivery.run(options),
        *await neighbours.run(options),
    ]
