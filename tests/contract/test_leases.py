"""What a lease promises, on a real database, with owners that are paused, killed or cut off."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator

import pytest
from tests.support.postgres import TestPostgres

from crossdock.engines.leases import LOST_AFTER, Lease, LeaseLost, Leases
from crossdock.engines.migrations import PLATFORM
from crossdock.engines.sql.migrations import migrate
from crossdock.engines.sql.target import Pool, PostgresTarget, connect, open_pool
from crossdock.kit.clock import SystemClock
from crossdock.kit.errors import Unavailable

TTL = 0.6


@pytest.fixture
async def pool(database: PostgresTarget) -> AsyncIterator[Pool]:
    connection = await connect(database)
    await migrate(connection, [PLATFORM])
    await connection.close()
    pool = await open_pool(database, schema="platform", min_size=2, max_size=6)
    yield pool
    pool.terminate()


@pytest.fixture
def ours(pool: Pool) -> Leases:
    return Leases(pool, SystemClock(), "ours")


@pytest.fixture
def theirs(pool: Pool) -> Leases:
    return Leases(pool, SystemClock(), "theirs")


async def held(leases: Leases, name: str = "sweeper", ttl_seconds: float = TTL) -> Lease:
    lease = await leases.acquire(name, ttl_seconds)
    assert lease is not None
    return lease


async def wait_for_lease(leases: Leases, name: str, ttl_seconds: float, patience: float) -> Lease:
    async with asyncio.timeout(patience):
        while (lease := await leases.acquire(name, ttl_seconds)) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return lease


def block_the_event_loop(seconds: float) -> None:
    time.sleep(seconds)


async def test_one_of_two_owners_gets_the_lease(ours: Leases, theirs: Leases) -> None:
    async with await held(ours):
        assert await theirs.acquire("sweeper", TTL) is None
        assert await ours.acquire("sweeper", TTL) is None


async def test_different_names_do_not_meet(ours: Leases, theirs: Leases) -> None:
    async with await held(ours, "one"), await held(theirs, "two"):
        pass


async def test_of_many_that_ask_at_once_exactly_one_gets_it(ours: Leases, theirs: Leases) -> None:
    answers = await asyncio.gather(*(leases.acquire("sweeper", 5) for leases in (ours, theirs) * 10))
    (winner,) = [lease for lease in answers if lease is not None]
    await winner.release()


async def test_a_held_lease_outlives_its_ttl(ours: Leases, theirs: Leases) -> None:
    async with await held(ours) as lease:
        await asyncio.sleep(TTL * 2.5)
        assert lease.held
        assert await theirs.acquire("sweeper", TTL) is None


async def test_a_released_lease_can_be_had_at_once_with_a_higher_fence(ours: Leases, theirs: Leases) -> None:
    lease = await held(ours)
    await lease.release()
    assert not lease.held
    async with await held(theirs) as next_lease:
        assert next_lease.fence > lease.fence


async def test_releasing_a_lease_that_was_lost_does_not_take_it_from_its_new_holder(
    ours: Leases, theirs: Leases, pool: Pool
) -> None:
    lost = await held(ours)
    await pool.execute("UPDATE leases SET expires_at = '-infinity'")
    async with await held(theirs) as current:
        await lost.release()
        await asyncio.sleep(TTL)
        assert current.held
        assert await ours.acquire("sweeper", TTL) is None


async def test_a_holder_whose_lease_was_taken_over_is_told_at_its_next_renewal(
    ours: Leases, theirs: Leases, pool: Pool
) -> None:
    lease = await held(ours)
    await pool.execute("UPDATE leases SET expires_at = '-infinity'")
    async with await held(theirs):
        async with asyncio.timeout(TTL * 0.6):
            await lease.lost.wait()
        assert not lease.held
    await lease.release()


async def test_a_holder_that_cannot_renew_knows_it_before_anybody_else_gets_the_lease(
    ours: Leases, theirs: Leases, pool: Pool
) -> None:
    lease = await held(ours)
    # A row lock makes every renewal hang, as a database does that answers late.
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT FROM leases FOR UPDATE")
        started = time.monotonic()
        async with asyncio.timeout(TTL * 2):
            await lease.lost.wait()
        assert time.monotonic() - started < TTL
        ends_in = await pool.fetchval("SELECT extract(epoch FROM expires_at - clock_timestamp()) FROM leases")
    assert float(ends_in) > 0
    await lease.release()


async def test_a_holder_whose_event_loop_was_blocked_sees_at_once_that_it_lost(ours: Leases) -> None:
    lease = await held(ours)
    block_the_event_loop(TTL * (LOST_AFTER + 0.1))
    assert not lease.held
    await lease.release()


async def test_a_lost_lease_stays_lost_and_becomes_free_even_if_its_holder_does_not_release_it(
    ours: Leases, theirs: Leases
) -> None:
    lease = await held(ours)
    block_the_event_loop(TTL)
    await asyncio.sleep(TTL * 1.5)
    assert lease.lost.is_set()
    assert not lease.held
    async with await held(theirs):
        pass
    await lease.release()


async def test_a_guarded_transaction_is_refused_after_a_takeover(
    ours: Leases, theirs: Leases, pool: Pool
) -> None:
    stale = await held(ours)
    await pool.execute("UPDATE leases SET expires_at = '-infinity'")
    async with await held(theirs), pool.acquire() as connection, connection.transaction():
        with pytest.raises(LeaseLost):
            await stale.guard(connection)
    await stale.release()


async def test_a_takeover_waits_for_a_guarded_transaction(ours: Leases, theirs: Leases, pool: Pool) -> None:
    lease = await held(ours, ttl_seconds=0.3)
    order: list[str] = []

    async def take_over() -> None:
        async with await wait_for_lease(theirs, "sweeper", TTL, patience=5):
            order.append("taken over")

    async with pool.acquire() as connection, connection.transaction():
        await lease.guard(connection)
        attempt = asyncio.create_task(take_over())
        await asyncio.sleep(0.6)
        order.append("effect")
    await attempt
    assert order == ["effect", "taken over"]
    await lease.release()


async def test_leases_go_on_after_a_restart_of_the_database(
    postgres: TestPostgres, ours: Leases, theirs: Leases
) -> None:
    async with await held(ours, ttl_seconds=3) as lease:
        await asyncio.to_thread(postgres.restart)
        await asyncio.sleep(3.2)
        assert lease.held
        assert await theirs.acquire("sweeper", TTL) is None


async def test_while_the_database_is_away_a_holder_loses_its_lease_and_nobody_gets_one(
    postgres: TestPostgres, ours: Leases
) -> None:
    lease = await held(ours)

    def wait_out() -> None:
        time.sleep(TTL * 2)

    restart = asyncio.create_task(asyncio.to_thread(postgres.restart, wait_out))
    async with asyncio.timeout(TTL * 1.5):
        await lease.lost.wait()
    with pytest.raises(Unavailable):
        await ours.acquire("another", TTL)
    await restart
    await lease.release()


HOLD = """
import asyncio, sys
from crossdock.engines.leases import Leases
from crossdock.engines.sql.target import PostgresTarget, open_pool
from crossdock.kit.clock import SystemClock

async def main():
    pool = await open_pool(PostgresTarget(sys.argv[1]), schema="platform", max_size=2)
    lease = await Leases(pool, SystemClock(), "child").acquire("sweeper", float(sys.argv[2]))
    print(lease.fence, flush=True)
    await lease.lost.wait()
    print("lost", lease.held, flush=True)

asyncio.run(main())
"""


async def start_holder(database: PostgresTarget) -> asyncio.subprocess.Process:
    holder = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLD, database.dsn, str(TTL), stdout=asyncio.subprocess.PIPE
    )
    assert holder.stdout is not None
    assert (await holder.stdout.readline()).strip() == b"1"
    return holder


async def test_the_lease_of_a_killed_holder_is_taken_over_after_its_ttl_and_not_before(
    database: PostgresTarget, ours: Leases
) -> None:
    holder = await start_holder(database)
    await asyncio.sleep(TTL * 1.5)
    killed_at = time.monotonic()
    holder.kill()
    await holder.wait()
    lease = await wait_for_lease(ours, "sweeper", TTL, patience=TTL * 3)
    # Its last renewal was at most a third of the ttl (and a little) before the kill.
    assert TTL * 0.5 < time.monotonic() - killed_at < TTL * 1.5
    assert lease.fence == 2
    await lease.release()


async def test_a_paused_holder_is_taken_over_and_finds_out_when_it_wakes(
    database: PostgresTarget, ours: Leases
) -> None:
    holder = await start_holder(database)
    os.kill(holder.pid, signal.SIGSTOP)
    lease = await wait_for_lease(ours, "sweeper", TTL, patience=TTL * 3)
    os.kill(holder.pid, signal.SIGCONT)
    assert holder.stdout is not None
    async with asyncio.timeout(5):
        assert (await holder.stdout.readline()).strip() == b"lost False"
        await holder.wait()
    assert lease.held
    await lease.release()
