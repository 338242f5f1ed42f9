"""One effect for one key, whatever breaks: `SqlIdempotency` on a real PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import msgspec
import pytest
from tests.support.clock import ManualClock

from crossdock.engines.sql.migrations import migrate
from crossdock.engines.sql.target import Connection, Pool, PostgresTarget, open_pool
from crossdock.http.idempotency import IdempotentRequest, Stored, identify
from crossdock.http.idempotency_sql import MIGRATIONS, SqlIdempotency
from crossdock.http.principals import ALL_PERMISSIONS, Principal
from crossdock.http.problems import problem_for
from crossdock.kit.errors import Conflict, NotFound
from crossdock.kit.sealing import Sealer


class Made(msgspec.Struct, frozen=True):
    id: int
    secret: str = "s"


MADE = Stored(Made, secrets=("secret",))


def request(key: str = "one", body: bytes = b"{}") -> IdempotentRequest:
    principal = Principal("operator", "1", None, ALL_PERMISSIONS)
    return identify(principal, method="POST", path="/things", query=b"", key=key, body=body)


@dataclass
class Bench:
    pool: Pool
    idempotency: SqlIdempotency

    async def insert(self, connection: Connection) -> Made:
        return Made(await connection.fetchval("INSERT INTO things DEFAULT VALUES RETURNING id"))

    async def count(self, table: str = "things") -> int:
        return int(await self.pool.fetchval(f"SELECT count(*) FROM {table}"))


@pytest.fixture
async def bench(database: PostgresTarget, clock: ManualClock) -> AsyncIterator[Bench]:
    pool = await open_pool(database, schema="platform", min_size=1, max_size=20)
    async with pool.acquire() as connection:
        await migrate(connection, [MIGRATIONS])
        await connection.execute("CREATE TABLE things (id serial PRIMARY KEY)")
    yield Bench(pool, SqlIdempotency(pool, Sealer(bytes(32)), clock))
    await pool.close()


async def test_an_effect_that_fails_leaves_neither_itself_nor_a_record(bench: Bench) -> None:
    async def fail(connection: Connection) -> Made:
        await bench.insert(connection)
        raise NotFound("nothing", "")

    with pytest.raises(NotFound):
        await bench.idempotency.once(request(), MADE, fail)
    assert (await bench.count(), await bench.count("idempotency_records")) == (0, 0)
    assert not (await bench.idempotency.once(request(), MADE, bench.insert)).replayed


async def test_a_connection_lost_before_the_commit_leaves_nothing_and_the_repeat_does_it(
    bench: Bench,
) -> None:
    async def die(connection: Connection) -> Made:
        made = await bench.insert(connection)
        victim = await connection.fetchval("SELECT pg_backend_pid()")
        await bench.pool.execute("SELECT pg_terminate_backend($1, 5000)", victim)
        return made

    with pytest.raises(Exception) as raised:  # whatever the driver says of it
        await bench.idempotency.once(request(), MADE, die)
    assert problem_for(raised.value).status == 503
    assert (await bench.count(), await bench.count("idempotency_records")) == (0, 0)
    assert not (await bench.idempotency.once(request(), MADE, bench.insert)).replayed
    assert await bench.count() == 1


async def test_a_request_cancelled_half_way_leaves_nothing_and_gives_its_claim_back(bench: Bench) -> None:
    began = asyncio.Event()

    async def hang(connection: Connection) -> Made:
        await bench.insert(connection)
        began.set()
        await asyncio.sleep(3600)
        raise AssertionError

    task = asyncio.create_task(bench.idempotency.once(request(), MADE, hang))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await bench.count() == 0
    assert not (await bench.idempotency.once(request(), MADE, bench.insert)).replayed


async def test_a_repeat_in_flight_is_refused_at_once_and_other_keys_are_not(bench: Bench) -> None:
    began, go_on = asyncio.Event(), asyncio.Event()

    async def wait(connection: Connection) -> Made:
        began.set()
        await go_on.wait()
        return await bench.insert(connection)

    first = asyncio.create_task(bench.idempotency.once(request(), MADE, wait))
    await began.wait()
    with pytest.raises(Conflict) as raised:
        await bench.idempotency.once(request(), MADE, bench.insert)
    assert raised.value.code == "idempotency_in_progress"
    assert not (await bench.idempotency.once(request("two"), MADE, bench.insert)).replayed
    go_on.set()
    done = await first
    again = await bench.idempotency.once(request(), MADE, bench.insert)
    assert (again.value, again.replayed) == (done.value, True)
    assert await bench.count() == 2


async def test_forty_at_once_have_one_effect_and_one_answer(bench: Bench) -> None:
    async def persistent() -> Made:
        while True:
            try:
                return (await bench.idempotency.once(request(), MADE, bench.insert)).value
            except Conflict as conflict:
                assert conflict.code == "idempotency_in_progress"
                await asyncio.sleep(0)

    answers = await asyncio.gather(*(persistent() for _ in range(40)))
    assert len(set(answers)) == 1
    assert await bench.count() == 1


async def test_an_expired_record_that_was_not_deleted_yet_is_replaced(
    bench: Bench, clock: ManualClock
) -> None:
    await bench.idempotency.once(request(), MADE, bench.insert)
    clock.advance(seconds=24 * 60 * 60)
    await bench.idempotency.once(request(body=b"other"), MADE, bench.insert)
    assert (await bench.idempotency.once(request(body=b"other"), MADE, bench.insert)).replayed
    assert (await bench.count(), await bench.count("idempotency_records")) == (2, 1)


async def test_deleting_takes_all_that_expired_and_nothing_else(bench: Bench, clock: ManualClock) -> None:
    await bench.pool.execute(
        """
        INSERT INTO idempotency_records
        SELECT n::text, '', '', now(), to_timestamp($1 / 1000.0) FROM generate_series(1, 2500) n
        """,
        clock.now_ms(),
    )
    await bench.idempotency.once(request(), MADE, bench.insert)
    assert await bench.idempotency.delete_expired() == 2500
    assert await bench.count("idempotency_records") == 1
    assert await bench.idempotency.delete_expired() == 0
