"""What background roles promise: one node at a time, cancelled when the lease goes, restarted."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

import pytest
from tests.support.waiting import eventually

from crossdock.engines.leases import Leases
from crossdock.engines.migrations import PLATFORM
from crossdock.engines.roles import Role, run_roles
from crossdock.engines.sql.migrations import migrate
from crossdock.engines.sql.target import Pool, PostgresTarget, connect, open_pool
from crossdock.kit.backoff import Backoff
from crossdock.kit.clock import SystemClock

TTL = 0.6
QUICK = Backoff(base_seconds=0.01, cap_seconds=0.05)


@pytest.fixture
async def pool(database: PostgresTarget) -> AsyncIterator[Pool]:
    connection = await connect(database)
    await migrate(connection, [PLATFORM])
    await connection.close()
    pool = await open_pool(database, schema="platform", min_size=2, max_size=6)
    yield pool
    pool.terminate()


@contextlib.asynccontextmanager
async def node(pool: Pool, roles: Sequence[Role], owner: str = "node") -> AsyncIterator[asyncio.Task[None]]:
    """A node that runs the roles for the block."""
    leases = Leases(pool, SystemClock(), owner)
    running = asyncio.create_task(run_roles(roles, leases, ttl_seconds=TTL, backoff=QUICK))
    try:
        yield running
    finally:
        running.cancel()
        await asyncio.wait((running,))


class Work:
    """A role's work that writes down when it starts and ends."""

    def __init__(self, journal: list[str], name: str) -> None:
        self._journal = journal
        self._name = name

    async def __call__(self) -> None:
        self._journal.append(f"{self._name} starts")
        try:
            await asyncio.Event().wait()
        finally:
            # Letting go takes a moment, as it does when there is something to flush.
            await asyncio.sleep(0.01)
            self._journal.append(f"{self._name} ends")


async def until(journal: list[str], entry: str) -> None:
    await eventually(lambda: entry in journal)


async def test_a_leased_role_runs_on_one_of_two_nodes(pool: Pool) -> None:
    journal: list[str] = []
    one, two = Role("sweep", Work(journal, "one")), Role("sweep", Work(journal, "two"))
    async with node(pool, [one], "one"), node(pool, [two], "two"):
        await asyncio.sleep(TTL * 2)
        assert len(journal) == 1


async def test_a_role_without_a_lease_runs_on_every_node(pool: Pool) -> None:
    journal: list[str] = []
    one = Role("listen", Work(journal, "one"), leased=False)
    two = Role("listen", Work(journal, "two"), leased=False)
    async with node(pool, [one]), node(pool, [two]):
        await until(journal, "one starts")
        await until(journal, "two starts")


async def test_when_a_node_stops_its_role_ends_before_another_node_starts_it(pool: Pool) -> None:
    journal: list[str] = []
    async with node(pool, [Role("sweep", Work(journal, "one"))]) as first:
        await until(journal, "one starts")
        async with node(pool, [Role("sweep", Work(journal, "two"))]):
            first.cancel()
            await until(journal, "two starts")
    assert journal == ["one starts", "one ends", "two starts", "two ends"]


async def test_a_role_whose_lease_is_lost_ends_before_another_node_starts_it(pool: Pool) -> None:
    journal: list[str] = []
    async with node(pool, [Role("sweep", Work(journal, "one"))], "one"):
        await until(journal, "one starts")
        # A row lock keeps the holder from renewing, while the other node waits behind it.
        async with pool.acquire() as connection, connection.transaction():
            await connection.execute("SELECT FROM leases FOR UPDATE")
            await until(journal, "one ends")
        async with node(pool, [Role("sweep", Work(journal, "two"))], "two"):
            await asyncio.sleep(TTL * 3)
    starts_and_ends = [entry.split()[1] for entry in journal]
    assert starts_and_ends == ["starts", "ends"] * (len(journal) // 2)


async def test_a_failing_role_is_started_again_and_its_neighbour_does_not_notice(pool: Pool) -> None:
    journal: list[str] = []

    async def fail_twice() -> None:
        journal.append("tried")
        if journal.count("tried") < 3:
            raise RuntimeError("a planned failure")
        await asyncio.Event().wait()

    async with node(pool, [Role("fragile", fail_twice), Role("steady", Work(journal, "steady"))]):
        await eventually(lambda: journal.count("tried") == 3)
        assert journal.count("steady starts") == 1
        assert "steady ends" not in journal


async def test_a_role_that_returns_is_started_again(pool: Pool) -> None:
    journal: list[str] = []

    async def return_early() -> None:
        journal.append(f"run {len(journal) + 1}")

    async with node(pool, [Role("short", return_early)]):
        await until(journal, "run 3")


async def test_stopping_a_node_releases_its_leases(pool: Pool) -> None:
    journal: list[str] = []
    async with node(pool, [Role("sweep", Work(journal, "one"))]):
        await until(journal, "one starts")
    lease = await Leases(pool, SystemClock(), "next").acquire("role:sweep", TTL)
    assert lease is not None
    await lease.release()


async def test_a_role_that_fails_while_it_is_stopped_does_not_keep_the_others_from_ending(pool: Pool) -> None:
    journal: list[str] = []

    async def fail_on_the_way_out() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("a planned failure")

    async with node(pool, [Role("rude", fail_on_the_way_out), Role("steady", Work(journal, "steady"))]):
        await until(journal, "steady starts")
    assert journal == ["steady starts", "steady ends"]
