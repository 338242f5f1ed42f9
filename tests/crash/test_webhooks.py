"""Webhooks under fire: what was answered 200 is delivered, recorded and counted, whoever was killed when."""

from __future__ import annotations

import pytest
from tests.crash.conftest import Say
from tests.crash.stores import PostgresStore, Store
from tests.crash.webhooks import Webhooks, receiving
from tests.support.killing import Victim, turns
from tests.support.seeds import chance_of

EVENTS, SOAK_EVENTS = 400, 20_000
SOAK_TURNS = 20


async def under_fire(run: Webhooks, count: int, victims: list[Victim], seed: int, say: Say) -> None:
    strikes = await run.under_fire(count, victims, seed)
    run.report(say, strikes)
    assert all(strike.killed for strike in strikes), strikes
    assert run.tally.late == 0, "a request was neither answered nor broken off"
    await run.check(count)


@pytest.mark.timeout(300)
async def test_no_kill_loses_a_webhook(store: Store, seed: int, say: Say) -> None:
    async with receiving(store) as run:
        await under_fire(run, EVENTS, turns(chance_of(seed, "victims"), 1), seed, say)


@pytest.mark.timeout(300)
async def test_no_kill_of_the_database_loses_a_webhook(seed: int, say: Say) -> None:
    async with receiving(PostgresStore()) as run:
        await under_fire(run, EVENTS, [Victim.DATABASE, Victim.EVERYTHING], seed, say)


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_no_kill_loses_a_webhook_for_long(store: Store, seed: int, say: Say) -> None:
    async with receiving(store) as run:
        await under_fire(run, SOAK_EVENTS, turns(chance_of(seed, "victims"), SOAK_TURNS), seed, say)
