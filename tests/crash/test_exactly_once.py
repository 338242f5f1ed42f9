"""Eight writers send the same batches: each batch is acknowledged once, and stored once.

Also while the processes of the server are killed (kill -9) and started again. A batch may then be committed
and its answer lost: every writer repeats what was not answered, and nobody needs to have been acknowledged,
but never are two.
"""

from __future__ import annotations

import pytest
from tests.crash.conftest import Say
from tests.crash.running import Run, check_hits, running
from tests.crash.stores import Store
from tests.crash.writers import WRITERS, write_all
from tests.support.killing import Victim, turns
from tests.support.seeds import chance_of

BATCHES = 150
TURNS = 2
SOAK_BATCHES, SOAK_TURNS = 3_000, 25


async def test_every_batch_is_acknowledged_to_one_of_eight_writers(store: Store, seed: int, say: Say) -> None:
    async with running(store, seed, BATCHES) as run:
        await undisturbed(run, say)


@pytest.mark.soak
async def test_every_batch_is_acknowledged_to_one_of_eight_writers_for_long(
    store: Store, seed: int, say: Say
) -> None:
    async with running(store, seed, SOAK_BATCHES) as run:
        await undisturbed(run, say)


async def test_no_kill_of_any_process_loses_or_repeats_a_batch(store: Store, seed: int, say: Say) -> None:
    async with running(store, seed, BATCHES) as run:
        await under_fire(run, TURNS, say)


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_no_kill_of_any_process_loses_or_repeats_a_batch_for_long(
    store: Store, seed: int, say: Say
) -> None:
    async with running(store, seed, SOAK_BATCHES) as run:
        await under_fire(run, SOAK_TURNS, say)


async def undisturbed(run: Run, say: Say) -> None:
    await write_all(run.fleet)
    run.report(say)
    await run.check()
    assert run.fleet.ledger.untold(run.batches) == []
    assert run.fleet.ledger.duplicates == (WRITERS - 1) * len(run.batches)
    assert run.fleet.tally.unanswered == 0
    # The race between processes was one: every lane has counted batches.
    metrics = run.server.data_dir / "run" / "metrics"
    assert all((metrics / f"counter_{pid}.db").exists() for pid in run.server.children(Victim.LANE.value))


async def under_fire(run: Run, turn_count: int, say: Say) -> None:
    victims = turns(chance_of(run.seed, "victims"), turn_count)
    strikes = await run.load_under_fire(victims)
    run.report(say, strikes)
    check_hits(strikes, victims)
    tally = run.fleet.tally
    assert tally.broken_off > 0, "no kill broke off a request"
    assert tally.late == 0, "a request was neither answered nor broken off"
    await run.check()
