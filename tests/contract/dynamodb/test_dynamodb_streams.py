"""Expiries read from a real stream, under real leases."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress

import pytest
from tests.contract.dynamodb.opening import Account
from tests.contract.dynamodb.proxy import Proxy, error

from crossdock.engines.items.dynamodb import DynamoClient, DynamoItems, create_tables
from crossdock.engines.items.dynamodb.positions import POSITIONS
from crossdock.engines.items.port import Expired, Item, Table
from crossdock.engines.leases import Leases
from crossdock.engines.migrations import PLATFORM
from crossdock.engines.sql.migrations import migrate
from crossdock.engines.sql.target import PostgresTarget, connect, open_pool
from crossdock.kit.clock import SystemClock

pytestmark = pytest.mark.dynamodb

# Without an index: DynamoDB Local's TTL never deletes from a table that has one.
TABLE = Table("sessions", partition="id", ttl="ends", stream=True)
HOUR_SECONDS = 3600


@pytest.fixture
async def leases(database: PostgresTarget) -> AsyncIterator[Leases]:
    connection = await connect(database)
    await migrate(connection, [PLATFORM])
    await connection.close()
    pool = await open_pool(database, schema="platform", min_size=1, max_size=4)
    yield Leases(pool, SystemClock(), "reader")
    await pool.close()


@pytest.fixture
async def items(account: Account, client: DynamoClient) -> AsyncIterator[DynamoItems]:
    await create_tables(client, [TABLE])
    items = account.items(TABLE)
    yield items
    await items.close()


class Told:
    def __init__(self) -> None:
        self.events: list[Expired] = []

    async def __call__(self, events: Sequence[Expired]) -> None:
        self.events += events

    def names(self) -> list[object]:
        return [event.item["id"] for event in self.events]

    async def until(self, expected: Callable[[list[object]], bool], within_seconds: float = 20) -> None:
        deadline = time.monotonic() + within_seconds
        while not expected(self.names()):
            assert time.monotonic() < deadline, self.names()
            await asyncio.sleep(0.05)


@asynccontextmanager
async def reading(
    account: Account, leases: Leases, told: Told, *, endpoint: str | None = None
) -> AsyncIterator[None]:
    reader = account.items(TABLE, endpoint=endpoint)
    reader.on_expired(TABLE, told)
    role = asyncio.create_task(reader.run_expiry(leases))
    try:
        yield
        assert not role.done()
    finally:
        role.cancel()
        with suppress(asyncio.CancelledError):
            await role
        await reader.close()


def expired(name: str) -> Item:
    return {"id": name, "n": 1, "ends": int(time.time()) - 2 * HOUR_SECONDS}


async def expire(items: DynamoItems, name: str) -> None:
    """At once: what is left of an expired item is deleted, before DynamoDB's own TTL gets to it."""
    await items.put(TABLE, expired(name))
    await items.delete(TABLE, {"id": name})


async def test_what_the_ttl_of_dynamodb_removes_is_told(
    account: Account, items: DynamoItems, leases: Leases
) -> None:
    item = expired("a")
    await items.put(TABLE, item)
    told = Told()
    async with reading(account, leases, told):
        await told.until(lambda names: names == ["a"], within_seconds=45)
    assert told.events[0].item == item
    assert told.events[0].table == TABLE


async def test_what_ended_before_its_time_is_not_told(
    account: Account, items: DynamoItems, leases: Leases
) -> None:
    await items.put(TABLE, {"id": "early", "ends": int(time.time()) + HOUR_SECONDS})
    await items.delete(TABLE, {"id": "early"})
    await expire(items, "late")
    told = Told()
    async with reading(account, leases, told):
        await told.until(lambda names: "late" in names)
    assert told.names() == ["late"]


async def test_the_next_reader_goes_on_where_the_last_one_stopped(
    account: Account, items: DynamoItems, leases: Leases
) -> None:
    first, second = Told(), Told()
    await expire(items, "a")
    async with reading(account, leases, first):
        await first.until(lambda names: names == ["a"])
        # The position moves after the handler has returned.
        await asyncio.sleep(0.5)
    await expire(items, "b")
    async with reading(account, leases, second):
        await second.until(lambda names: "b" in names)
    assert second.names() == ["b"]


async def test_an_expiry_that_is_told_twice_has_one_id(
    account: Account, items: DynamoItems, leases: Leases
) -> None:
    first, second = Told(), Told()
    await expire(items, "a")
    async with reading(account, leases, first):
        await first.until(lambda names: names == ["a"])
    account.boto3().delete_table(TableName=POSITIONS.name)
    client = account.client()
    await create_tables(client, [TABLE])
    await client.close()
    async with reading(account, leases, second):
        await second.until(lambda names: "a" in names)
    assert first.events == second.events


async def test_two_nodes_do_not_both_read_a_shard(
    account: Account, items: DynamoItems, leases: Leases
) -> None:
    one, other = Told(), Told()
    async with reading(account, leases, one), reading(account, leases, other):
        for name in "abcdef":
            await expire(items, name)
        while len(one.events) + len(other.events) < 6:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert sorted(map(len, (one.events, other.events))) == [0, 6]


async def test_another_node_takes_over_from_one_that_stopped(
    account: Account, items: DynamoItems, leases: Leases
) -> None:
    one, other = Told(), Told()
    async with reading(account, leases, one):
        await expire(items, "a")
        await one.until(lambda names: names == ["a"])
    async with reading(account, leases, other):
        await expire(items, "b")
        await other.until(lambda names: "b" in names)


async def test_an_iterator_that_ran_out_is_made_anew(
    account: Account, items: DynamoItems, leases: Leases, proxy: Proxy
) -> None:
    proxy.next("GetRecords", error("ExpiredIteratorException"), error("ExpiredIteratorException"))
    told = Told()
    await expire(items, "a")
    async with reading(account, leases, told, endpoint=proxy.endpoint):
        await told.until(lambda names: names == ["a"])


async def test_records_that_were_trimmed_unread_raise_an_alarm_and_the_rest_is_told(
    account: Account, items: DynamoItems, leases: Leases, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    told, after = Told(), Told()
    await expire(items, "a")
    async with reading(account, leases, told):
        await told.until(lambda names: names == ["a"])
        await asyncio.sleep(0.5)
    await expire(items, "b")

    proxy.next("GetShardIterator", error("TrimmedDataAccessException"))
    async with reading(account, leases, after, endpoint=proxy.endpoint):
        await after.until(lambda names: "b" in names)

    alarms = [record for record in caplog.records if "trimmed before they were read" in record.message]
    assert [record.levelname for record in alarms] == ["ERROR"]


async def test_a_shard_that_vanished_unread_raises_an_alarm_once(
    account: Account, items: DynamoItems, leases: Leases, caplog: pytest.LogCaptureFixture
) -> None:
    stream = account.boto3().describe_table(TableName=TABLE.name)["Table"]["LatestStreamArn"]
    await items.put(POSITIONS, {"stream": stream, "shard": "shardId-0000-gone", "finished": False})
    for name in "ab":
        told = Told()
        await expire(items, name)
        async with reading(account, leases, told):
            await told.until(lambda names, name=name: name in names)  # type: ignore[misc]

    alarms = [record for record in caplog.records if "trimmed before they were read" in record.message]
    assert len(alarms) == 1


def test_a_table_without_a_stream_has_no_expiries_to_tell(account: Account) -> None:
    with pytest.raises(ValueError, match="no stream"):
        account.items(TABLE).on_expired(Table("plain", partition="id", ttl="ends"), Told())
