"""Commits whose answers get lost: what is counted agrees with a recount of what is stored all the same."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress

import pytest
from tests.contract.dynamodb.opening import new_account
from tests.contract.dynamodb.proxy import Fault, error, error_after_the_fact, lost_answer, open_proxy
from tests.contract.items.asking import everything
from tests.contract.items.lossy_postgres import Fate, lossy
from tests.contract.items.tables import Tables, declare, fresh

from crossdock.engines.items import dynamodb, postgres
from crossdock.engines.items.conditions import Absent
from crossdock.engines.items.port import Items, OutcomeUnknown, Put, Query, Tally, Written
from crossdock.engines.sql.target import PostgresTarget, connect, open_pool
from crossdock.kit.clock import SystemClock
from crossdock.kit.errors import CrossdockError, Unavailable

ATTEMPTS_MAX = 10


@pytest.fixture
def tables() -> Tables:
    return declare()


class Book:
    """Entries in a partition, and a counter that each of them is tallied into."""

    def __init__(self, items: Items, tables: Tables) -> None:
        self._items = items
        self._tables = tables
        self.counter = {"id": fresh("counter")}
        self._partition = fresh("book")

    async def open(self) -> None:
        await self._items.put(self._tables.plain, {**self.counter, "n": 0})

    async def enter(self, number: int) -> type[Written | CrossdockError]:
        entry = f"{number:04}"
        try:
            outcome = await self._items.transact(
                [
                    Put(self._tables.sorted, {"pk": self._partition, "sk": entry}, Absent("pk")),
                    Tally(self._tables.plain, self.counter, {"n": 1, "sum": number}, latest={"last": entry}),
                ]
            )
        except CrossdockError as failure:
            return type(failure)
        assert isinstance(outcome, Written)
        return Written

    async def entries(self) -> list[int]:
        found = await everything(self._items, Query(self._tables.sorted, self._partition, limit=1000))
        return [int(str(item["sk"])) for item in found]

    async def assert_counted(self) -> None:
        entries = await self.entries()
        assert await self._items.get(self._tables.plain, self.counter) == {
            **self.counter,
            "n": len(entries),
            "sum": sum(entries),
            "last": f"{max(entries):04}",
        }


# --- postgres --------------------------------------------------------------------------------------


class Fates:
    """Drawn from a seed, once `cruel`."""

    def __init__(self) -> None:
        self.cruel = False
        self.told: set[Fate] = set()
        self._random = random.Random(8420)

    def __call__(self) -> Fate:
        if not self.cruel:
            return Fate.SPARED
        fate: Fate = self._random.choice([Fate.SPARED, *Fate])
        self.told.add(fate)
        return fate


@pytest.fixture
async def emptied(database: PostgresTarget, tables: Tables) -> PostgresTarget:
    connection = await connect(database)
    await postgres.create_tables(connection, tuple(tables))
    await connection.close()
    return database


async def test_connections_that_break_while_postgres_commits_leave_no_count_wrong(
    emptied: PostgresTarget, tables: Tables
) -> None:
    fates = Fates()
    async with lossy(emptied, fates) as target:
        pool = await open_pool(
            target,
            schema=None,
            max_size=4,
            settings=postgres.SESSION,
            init=postgres.prepare_connection,
        )
        items = postgres.PostgresItems(pool, tuple(tables), SystemClock())
        book = Book(items, tables)
        await book.open()
        fates.cruel = True
        outcomes: list[type[Written | CrossdockError]] = []
        for start in range(0, 400, 10):
            outcomes += await asyncio.gather(*map(book.enter, range(start, start + 10)))
        fates.cruel = False
        await book.assert_counted()
        entries = set(await book.entries())
        await items.close()
        await pool.close()

    written, unknown = numbers_of(Written, outcomes), numbers_of(OutcomeUnknown, outcomes)
    assert fates.told == set(Fate)
    assert written | unknown == set(range(400))
    assert written <= entries
    # Unknown it was: some had happened, some had not.
    assert 0 < len(entries & unknown) < len(unknown)


# --- dynamodb --------------------------------------------------------------------------------------


@pytest.mark.dynamodb
async def test_answers_of_dynamodb_that_get_lost_leave_no_count_wrong(
    dynamodb_endpoint: str, tables: Tables
) -> None:
    account = new_account(dynamodb_endpoint)
    client = account.client()
    await dynamodb.create_tables(client, [*tables, dynamodb.TALLIES])
    await client.close()
    async with open_proxy(dynamodb_endpoint) as proxy:
        items = account.items(*tables, endpoint=proxy.endpoint)
        book = Book(items, tables)
        await book.open()
        throttled = error("ProvisionedThroughputExceededException")
        faults: list[Sequence[Fault]] = [
            [],
            [lost_answer],
            [error_after_the_fact, throttled, lost_answer],
            [lost_answer] * ATTEMPTS_MAX,
            [throttled] * ATTEMPTS_MAX,
        ]
        outcomes: list[type[Written | CrossdockError]] = []
        for number in range(40):
            proxy.next("TransactWriteItems", *faults[number % len(faults)])
            outcomes.append(await book.enter(number))

        for trouble in ([lost_answer], [lost_answer] * ATTEMPTS_MAX):
            proxy.next("TransactWriteItems", *trouble)
            with suppress(OutcomeUnknown):
                await items.fold_tallies()
        await items.fold_tallies()

        await book.assert_counted()
        entries = set(await book.entries())
        await items.close()

    written, unknown = numbers_of(Written, outcomes), numbers_of(OutcomeUnknown, outcomes)
    assert written == {number for number in range(40) if number % 5 < 3}
    assert unknown == {number for number in range(40) if number % 5 == 3}
    assert numbers_of(Unavailable, outcomes) == {number for number in range(40) if number % 5 == 4}
    assert entries == written | unknown


def numbers_of(
    kind: type[Written | CrossdockError], outcomes: Sequence[type[Written | CrossdockError]]
) -> set[int]:
    return {number for number, outcome in enumerate(outcomes) if outcome is kind}
