"""kill -9 of the embedded PostgreSQL, alone and together with all that uses it.

Whatever was acknowledged is there when it is back, and it comes back by itself.
"""

from __future__ import annotations

import pytest
from tests.crash.conftest import Say
from tests.crash.running import Run, check_hits, running
from tests.crash.stores import PostgresStore
from tests.support.killing import Victim
from tests.support.seeds import chance_of

BATCHES = 150
VICTIMS = [Victim.DATABASE, Victim.EVERYTHING, Victim.DATABASE]
SOAK_BATCHES, SOAK_STRIKES = 3_000, 60


async def test_no_kill_of_the_database_loses_or_repeats_a_batch(seed: int, say: Say) -> None:
    async with running(PostgresStore(), seed, BATCHES) as run:
        await under_fire(run, VICTIMS, say)


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_no_kill_of_the_database_loses_or_repeats_a_batch_for_long(seed: int, say: Say) -> None:
    chance = chance_of(seed, "victims")
    # A supervisor in between starts the lanes anew, whose pauses would grow with each crash.
    kinds = [Victim.DATABASE, Victim.DATABASE, Victim.EVERYTHING, Victim.SUPERVISOR]
    async with running(PostgresStore(), seed, SOAK_BATCHES) as run:
        await under_fire(run, [chance.choice(kinds) for _ in range(SOAK_STRIKES)], say)


async def under_fire(run: Run, victims: list[Victim], say: Say) -> None:
    strikes = await run.load_under_fire(victims)
    run.report(say, strikes)
    check_hits(strikes, victims)
    tally = run.fleet.tally
    assert tally.broken_off + tally.unavailable > 0, "no kill was noticed by a writer"
    assert tally.late == 0, "a request was neither answered nor broken off"
    await run.check()
