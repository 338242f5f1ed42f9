"""What only DynamoDB's way of counting has: records that wait until they are folded into their items."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest
from tests.contract.dynamodb.opening import Account, new_account
from tests.contract.dynamodb.proxy import Answer, Call, Fault, Proxy, error, open_proxy
from tests.contract.items.asking import assert_written, only
from tests.contract.items.tables import Tables, declare, fresh

from crossdock.engines.items.dynamodb import TALLIES, DynamoItems, create_tables
from crossdock.engines.items.dynamodb.tally_records import SHARDS
from crossdock.engines.items.port import Change, Delete, Item, Put, Query, Set, Tally, Update, Write

pytestmark = pytest.mark.dynamodb


@pytest.fixture
def tables() -> Tables:
    return declare()


@pytest.fixture
async def account(dynamodb_endpoint: str, tables: Tables) -> Account:
    account = new_account(dynamodb_endpoint)
    client = account.client()
    await create_tables(client, [*tables, TALLIES])
    await client.close()
    return account


@pytest.fixture
async def direct(account: Account, tables: Tables) -> AsyncIterator[DynamoItems]:
    items = account.items(*tables)
    yield items
    await items.close()


@pytest.fixture
async def proxy(dynamodb_endpoint: str) -> AsyncIterator[Proxy]:
    async with open_proxy(dynamodb_endpoint) as proxy:
        yield proxy


@pytest.fixture
async def folder(account: Account, proxy: Proxy, tables: Tables) -> AsyncIterator[DynamoItems]:
    """By way of the proxy."""
    items = account.items(*tables, endpoint=proxy.endpoint)
    yield items
    await items.close()


async def write(items: DynamoItems, tables: Tables, *tallies: Tally) -> None:
    assert_written(await items.transact([Put(tables.plain, {"id": fresh()}), *tallies]))


async def waiting(items: DynamoItems) -> int:
    return sum([len((await items.query(Query(TALLIES, shard, limit=500))).items) for shard in SHARDS])


async def test_hundreds_of_records_become_a_few_transactions_and_leave_nothing_behind(
    direct: DynamoItems, folder: DynamoItems, proxy: Proxy, tables: Tables
) -> None:
    key = {"id": fresh()}
    await direct.put(tables.plain, {**key})
    await direct.transact_many(
        [[Put(tables.plain, {"id": fresh()}), Tally(tables.plain, key, {"n": 1})] for _ in range(250)]
    )
    assert await waiting(direct) == 250

    await folder.fold_tallies()

    assert await direct.get(tables.plain, key) == {**key, "n": 250}
    assert await waiting(direct) == 0
    assert proxy.count("TransactWriteItems") == 3


async def test_tallies_of_a_table_that_is_not_known_yet_wait_for_who_knows_it(
    account: Account, direct: DynamoItems, tables: Tables
) -> None:
    known, unknown = {"id": fresh()}, {"pk": fresh(), "sk": "a"}
    await direct.put(tables.plain, {**known})
    await direct.put(tables.sorted, {**unknown})
    await write(direct, tables, Tally(tables.plain, known, {"n": 1}))
    await write(direct, tables, Tally(tables.plain, known, {"n": 1}), Tally(tables.sorted, unknown, {"n": 1}))
    older = account.items(tables.plain)

    await older.fold_tallies()
    await older.close()
    assert await direct.get(tables.plain, known) == {**known, "n": 1}
    assert await waiting(direct) == 1

    await direct.fold_tallies()
    assert await direct.get(tables.plain, known) == {**known, "n": 2}
    assert await direct.get(tables.sorted, unknown) == {**unknown, "n": 1}


@pytest.mark.parametrize("together", [True, False], ids=["in one transaction", "in one each"])
async def test_more_than_one_transaction_may_hold_is_counted_all_the_same(
    direct: DynamoItems, folder: DynamoItems, proxy: Proxy, tables: Tables, together: bool
) -> None:
    """4 MB, on AWS; DynamoDB Local doesn't count them."""
    keys = [{"id": fresh()} for _ in range(14)]
    await direct.write_many(tables.plain, [{**key} for key in keys])
    tallies = [Tally(tables.plain, key, {"n": 1}) for key in keys]
    for each in [tallies] if together else [[tally] for tally in tallies]:
        await write(direct, tables, *each)
    proxy.next("TransactWriteItems", *[rejecting(lambda updated: len(updated) > 3)] * 200)

    await folder.fold_tallies()

    assert only("n", await direct.get_many(tables.plain, keys)) == [1] * 14
    assert await waiting(direct) == 0


REASONS = {"Item size to update has exceeded the maximum allowed size": 0, "a reason of the future": 1}


@pytest.mark.parametrize("reason", REASONS)
async def test_a_tally_that_is_never_taken_holds_up_no_other(
    direct: DynamoItems, folder: DynamoItems, proxy: Proxy, tables: Tables, reason: str
) -> None:
    good, bad = {"id": fresh()}, {"id": fresh("bad")}
    await direct.write_many(tables.plain, [{**good}, {**bad}])
    for number in range(9):
        mixed = [Tally(tables.plain, good, {"n": 1}), Tally(tables.plain, bad, {"n": 1})]
        await write(direct, tables, *(mixed if number == 4 else mixed[:1]))
    proxy.next("TransactWriteItems", *[rejecting(lambda updated: bad["id"] in updated, reason)] * 200)

    await folder.fold_tallies()

    assert await direct.get_many(tables.plain, [good, bad]) == [{**good, "n": 9}, bad]
    assert await waiting(direct) == REASONS[reason]
    await direct.fold_tallies()  # nothing rejects it any more
    assert await direct.get(tables.plain, bad) == {**bad, **({"n": 1} if REASONS[reason] else {})}


def rejecting(is_rejected: Callable[[list[str]], bool], reason: str = "cannot exceed 4MB") -> Fault:
    """Judges a transaction by the ids that it updates."""
    refusal = error("ValidationException", message=reason)

    async def fault(call: Call) -> Answer:
        updates = [each["Update"] for each in call.body["TransactItems"] if "Update" in each]
        updated = [update["Key"]["id"]["S"] for update in updates]
        return await (refusal(call) if is_rejected(updated) else call.forward(call.body))

    return fault


MEANWHILE: dict[str, tuple[Change | None, Item | None]] = {
    "something else": (Set("other", 1), {"n": 2, "at": "b", "period": "now", "other": 1}),
    "a later text": (Set("at", "c"), {"n": 2, "at": "c", "period": "now"}),
    "an earlier text": (Set("at", "a"), {"n": 2, "at": "b", "period": "now"}),
    "no text": (Set("at", 1), {"n": 2, "at": 1, "period": "now"}),
    "no number": (Set("n", "x"), {"n": "x", "at": "b", "period": "now"}),
    "another period": (Set("period", "then"), {"n": 1, "at": "ab", "period": "then"}),
    "nothing": (None, None),
}


@pytest.mark.parametrize("name", MEANWHILE)
async def test_what_an_item_became_after_it_was_looked_at_decides(
    direct: DynamoItems, folder: DynamoItems, proxy: Proxy, tables: Tables, name: str
) -> None:
    key, (change, expected) = {"id": fresh()}, MEANWHILE[name]
    await direct.put(tables.plain, {**key, "n": 1, "at": "ab", "period": "now"})
    await write(direct, tables, Tally(tables.plain, key, {"n": 1}, {"at": "b"}, {"period": "now"}))
    deletes = Delete(tables.plain, key)
    proxy.next(
        "TransactWriteItems",
        after(direct, deletes if change is None else Update(tables.plain, key, (change,))),
    )

    await folder.fold_tallies()

    assert await direct.get(tables.plain, key) == (None if expected is None else {**key, **expected})
    assert await waiting(direct) == 0


async def test_an_item_deleted_after_it_was_looked_at_is_not_made_again(
    direct: DynamoItems, folder: DynamoItems, proxy: Proxy, tables: Tables
) -> None:
    key = {"id": fresh()}
    await direct.put(tables.plain, {**key})
    await write(direct, tables, Tally(tables.plain, key, {"n": 1}))
    proxy.next("TransactWriteItems", after(direct, Delete(tables.plain, key)))

    await folder.fold_tallies()

    assert await direct.get(tables.plain, key) is None
    assert await waiting(direct) == 0


def after(items: DynamoItems, write: Write) -> Fault:
    async def fault(call: Call) -> Answer:
        await items.transact([write])
        return await call.forward(call.body)

    return fault


async def test_a_record_that_another_node_counted_meanwhile_counts_once(
    direct: DynamoItems, folder: DynamoItems, proxy: Proxy, tables: Tables
) -> None:
    key = {"id": fresh()}
    await direct.put(tables.plain, {**key})
    for _ in range(3):
        await write(direct, tables, Tally(tables.plain, key, {"n": 1}))

    async def counted_by_another(call: Call) -> Answer:
        await direct.fold_tallies()
        await write(direct, tables, Tally(tables.plain, key, {"n": 10}))
        return await call.forward(call.body)

    proxy.next("TransactWriteItems", counted_by_another)
    await folder.fold_tallies()
    assert await direct.get(tables.plain, key) == {**key, "n": 3}

    await folder.fold_tallies()
    assert await direct.get(tables.plain, key) == {**key, "n": 13}
    assert await waiting(direct) == 0
