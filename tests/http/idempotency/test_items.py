"""One effect for one key, whatever breaks: `ItemsIdempotency` on every backend of the Items port."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator
from uuid import uuid4

import msgspec
import pytest
from tests.support.clock import ManualClock
from tests.support.postgres import TestPostgres

from crossdock.engines.items import dynamodb, postgres
from crossdock.engines.items.conditions import Absent
from crossdock.engines.items.port import Items, Put, Query, Refused, Table
from crossdock.engines.sql.target import connect, open_pool
from crossdock.http.idempotency import IdempotentRequest, Once, Stored, identify
from crossdock.http.idempotency_items import IDEMPOTENCY, Effect, ItemsIdempotency
from crossdock.http.principals import ALL_PERMISSIONS, Principal
from crossdock.kit.errors import Conflict
from crossdock.kit.sealing import Sealer

THINGS = Table("things", partition="owner", sort="name")
TABLES = (THINGS, IDEMPOTENCY)


class Made(msgspec.Struct, frozen=True):
    name: str
    secret: str


MADE = Stored(Made, secrets=("secret",))


@pytest.fixture(scope="module")
async def postgres_items(postgres: TestPostgres) -> AsyncIterator[Items]:
    async for items in _postgres_items(postgres):
        yield items


async def _postgres_items(server: TestPostgres) -> AsyncIterator[Items]:
    target = await server.create_database()
    connection = await connect(target)
    await postgres.create_tables(connection, TABLES)
    await connection.close()
    pool = await open_pool(
        target, schema=None, settings=postgres.SESSION, init=postgres.prepare_connection, max_size=6
    )
    items = postgres.PostgresItems(pool, TABLES, ManualClock())
    yield items
    await items.close()
    await pool.close()
    await server.drop_database(target)


@pytest.fixture(scope="module")
async def dynamodb_items(dynamodb_endpoint: str) -> AsyncIterator[Items]:
    environ = {"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": uuid4().hex, "AWS_SECRET_ACCESS_KEY": "local"}
    clock = ManualClock()
    client = dynamodb.DynamoClient.from_environment(environ, dynamodb_endpoint, clock, random.random)
    await dynamodb.create_tables(client, TABLES)
    items = dynamodb.DynamoItems(client, TABLES, clock, os.urandom)
    yield items
    await items.close()


@pytest.fixture(
    scope="module",
    params=["postgres_items", pytest.param("dynamodb_items", marks=pytest.mark.dynamodb)],
    ids=["postgres", "dynamodb"],
)
def items(request: pytest.FixtureRequest) -> Items:
    found: Items = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def owner() -> str:
    """A partition of the test's own."""
    return uuid4().hex


class Maker:
    """A use case: a thing by a name that must be free, with a secret."""

    def __init__(self, items: Items, owner: str, clock: ManualClock) -> None:
        self.items = items
        self.owner = owner
        self.idempotency = ItemsIdempotency(items, Sealer(bytes(32)), clock)

    def request(self, key: str = "one", body: bytes = b"{}") -> IdempotentRequest:
        principal = Principal("operator", self.owner, None, ALL_PERMISSIONS)
        return identify(principal, method="POST", path="/things", query=b"", key=key, body=body)

    async def make(self, request: IdempotentRequest | None, name: str = "a") -> Once[Made] | Refused:
        async def prepare() -> Effect[Made]:
            made = Made(name, uuid4().hex)
            return Effect(made, [Put(THINGS, {"owner": self.owner, "name": name}, Absent("name"))])

        return await self.idempotency.once(request, MADE, prepare)

    async def count(self) -> int:
        return len((await self.items.query(Query(THINGS, self.owner, limit=200))).items)


@pytest.fixture
def maker(items: Items, owner: str, clock: ManualClock) -> Maker:
    return Maker(items, owner, clock)


def made(result: Once[Made] | Refused) -> Once[Made]:
    assert isinstance(result, Once)
    return result


async def test_a_repeat_gets_the_same_answer_though_its_condition_fails_by_now(maker: Maker) -> None:
    first = made(await maker.make(maker.request()))
    again = made(await maker.make(maker.request()))
    assert (first.replayed, again.replayed) == (False, True)
    assert again.value == first.value


async def test_another_key_meets_the_condition_of_the_effect(maker: Maker) -> None:
    await maker.make(maker.request())
    for request in (maker.request("two"), None):
        refused = await maker.make(request)
        assert isinstance(refused, Refused)
        assert [failure.position for failure in refused.failures] == [0]
    free = made(await maker.make(maker.request("two"), "b"))
    assert not free.replayed


async def test_the_same_key_with_another_body_is_a_conflict(maker: Maker) -> None:
    await maker.make(maker.request())
    with pytest.raises(Conflict) as raised:
        await maker.make(maker.request(body=b'{"name":"b"}'), "b")
    assert raised.value.code == "idempotency_conflict"
    assert await maker.count() == 1


async def test_twenty_at_once_have_one_effect_and_one_answer(maker: Maker) -> None:
    results = await asyncio.gather(*(maker.make(maker.request()) for _ in range(20)))
    assert len({made(result).value for result in results}) == 1
    assert sum(not made(result).replayed for result in results) == 1
    assert await maker.count() == 1


async def test_twenty_at_once_that_make_things_of_any_name_make_one(maker: Maker) -> None:
    """Nothing but the record keeps them apart."""
    results = await asyncio.gather(*(maker.make(maker.request(), uuid4().hex) for _ in range(20)))
    assert len({made(result).value for result in results}) == 1
    assert await maker.count() == 1


async def test_a_twin_that_took_the_name_meanwhile_is_our_own_success(maker: Maker) -> None:
    """The use case reads first and finds the name taken: by the first sending of the very same request."""
    first: list[Once[Made]] = []

    async def prepare() -> Effect[Made]:
        first.append(made(await maker.make(maker.request())))
        raise Conflict("name_taken", "")

    again = made(await maker.idempotency.once(maker.request(), MADE, prepare))
    assert (again.value, again.replayed) == (first[0].value, True)


async def test_a_use_case_that_refuses_leaves_no_record(maker: Maker) -> None:
    async def refuse() -> Effect[Made]:
        raise Conflict("name_taken", "")

    with pytest.raises(Conflict, match="name_taken"):
        await maker.idempotency.once(maker.request(), MADE, refuse)
    assert not made(await maker.make(maker.request())).replayed


async def test_a_secret_is_repeated_for_ten_minutes_and_then_masked(maker: Maker, clock: ManualClock) -> None:
    first = made(await maker.make(maker.request()))
    clock.advance(seconds=10 * 60 - 1)
    assert made(await maker.make(maker.request())).value == first.value
    clock.advance(seconds=1)
    assert made(await maker.make(maker.request())).value == Made("a", "***")


async def test_the_record_lives_24_hours_and_shows_nothing(maker: Maker, clock: ManualClock) -> None:
    first = made(await maker.make(maker.request()))
    record = await maker.items.get(IDEMPOTENCY, {"scope": maker.request().scope})
    assert record is not None
    assert record["expires_at"] == clock.now_ms() // 1000 + 24 * 60 * 60
    assert first.value.secret not in str(record)
