"""Many writers at once, of one instance and of two with connections of their own."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence

import pytest
from tests.contract.items.asking import assert_written, only, put_all
from tests.contract.items.harness import Harness
from tests.contract.items.tables import fresh

from crossdock.engines.items.conditions import Absent, Compare, Exists, equals
from crossdock.engines.items.port import Add, Check, Delete, Items, Put, Set, Update, Written


async def instances(harness: Harness) -> Sequence[Items]:
    """Two that know nothing of one another."""
    return harness.items, await harness.another()


async def together(count: int, act: Callable[[int], Awaitable[object]]) -> None:
    await asyncio.gather(*(act(number) for number in range(count)))


@pytest.mark.parametrize("writers", [1, 2])
async def test_fifty_concurrent_adds_of_one_key_all_count(harness: Harness, writers: int) -> None:
    both, key = (await instances(harness))[:writers], {"id": fresh()}
    told: list[object] = []

    async def add(number: int) -> None:
        item = assert_written(await both[number % writers].update(harness.tables.plain, key, Add("n", 1)))
        assert item is not None
        told.append(item["n"])

    await together(50, add)

    assert await harness.items.get(harness.tables.plain, key) == {**key, "n": 50}
    assert sorted(told, key=repr) == sorted(range(1, 51), key=repr)  # each was told its own state


@pytest.mark.parametrize("writers", [1, 2])
async def test_of_fifty_concurrent_puts_if_absent_one_wins(harness: Harness, writers: int) -> None:
    both, key = (await instances(harness))[:writers], {"id": fresh()}
    winners: list[int] = []
    losers: list[object] = []

    async def put(number: int) -> None:
        outcome = await both[number % writers].put(
            harness.tables.plain, {**key, "winner": number}, Absent("id")
        )
        if isinstance(outcome, Written):
            winners.append(number)
        else:
            assert outcome.current is not None
            losers.append(outcome.current["winner"])

    await together(50, put)

    assert len(winners) == 1
    assert losers == winners * 49
    assert await harness.items.get(harness.tables.plain, key) == {**key, "winner": winners[0]}


@pytest.mark.parametrize("writers", [1, 2])
async def test_of_concurrent_deletes_one_finds_the_item(harness: Harness, writers: int) -> None:
    both, key = (await instances(harness))[:writers], {"id": fresh()}
    await put_all(harness.items, harness.tables.plain, key)
    found: list[bool] = []

    async def delete(number: int) -> None:
        outcome = await both[number % writers].delete(harness.tables.plain, key, Exists("id"))
        found.append(isinstance(outcome, Written))

    await together(20, delete)

    assert sorted(found) == [False] * 19 + [True]


async def test_optimistic_version_loops_lose_no_change(harness: Harness) -> None:
    both, key = await instances(harness), {"id": fresh()}
    await put_all(harness.items, harness.tables.plain, {**key, "version": 0, "log": []})

    async def append(items: Items, entry: str) -> None:
        while True:
            item = await items.get(harness.tables.plain, key)
            assert item is not None and isinstance(item["log"], list)
            version = item["version"]
            assert isinstance(version, int)
            changed = Set("log", [*item["log"], entry]), Set("version", version + 1)
            outcome = await items.update(
                harness.tables.plain, key, *changed, condition=equals("version", version)
            )
            if isinstance(outcome, Written):
                return

    async def write(number: int) -> None:
        for n in range(4):
            await append(both[number % 2], f"{number}-{n}")

    await together(6, write)

    item = await harness.items.get(harness.tables.plain, key)
    assert item is not None and isinstance(item["log"], list)
    assert item["version"] == 24
    assert sorted(item["log"], key=str) == [f"{number}-{n}" for number in range(6) for n in range(4)]


@pytest.mark.parametrize("writers", [1, 2])
async def test_two_transactions_that_each_need_the_other_item_absent_never_both_win(
    harness: Harness, writers: int
) -> None:
    """Write skew: each checks what the other writes, so each alone is fine and both together are not."""
    both, plain = (await instances(harness))[:writers], harness.tables.plain
    rounds = 15

    async def race(_: int) -> None:
        a, b = {"id": fresh("a")}, {"id": fresh("b")}
        outcomes = await asyncio.gather(
            both[0].transact([Check(plain, a, Absent("id")), Put(plain, {**b})]),
            both[-1].transact([Check(plain, b, Absent("id")), Put(plain, {**a})]),
        )
        assert [isinstance(outcome, Written) for outcome in outcomes].count(True) == 1
        found = await harness.items.get_many(plain, [a, b])
        assert [item is not None for item in found].count(True) == 1

    await together(rounds, race)


async def test_a_check_on_an_item_that_is_there_holds_until_the_commit(harness: Harness) -> None:
    """A child is only put while its parent is there; the parent is only deleted while it has no child."""
    both, plain = await instances(harness), harness.tables.plain

    async def race(_: int) -> None:
        parent, child = {"id": fresh("parent")}, {"id": fresh("child")}
        await put_all(harness.items, plain, parent)
        put, deleted = await asyncio.gather(
            both[0].transact([Check(plain, parent, Exists("id")), Put(plain, {**child})]),
            both[1].transact([Delete(plain, parent), Check(plain, child, Absent("id"))]),
        )
        found = [item is not None for item in await harness.items.get_many(plain, [parent, child])]
        assert (isinstance(put, Written), isinstance(deleted, Written)) in {(True, False), (False, True)}
        assert found in ([True, True], [False, False])

    await together(15, race)


async def test_transfers_between_accounts_keep_the_total(harness: Harness) -> None:
    both, plain = await instances(harness), harness.tables.plain
    accounts = [{"id": fresh("account")} for _ in range(5)]
    await harness.items.write_many(plain, [{**account, "balance": 20} for account in accounts])
    seeded = random.Random(8420)
    plan = [(seeded.sample(accounts, 2), seeded.randint(1, 15)) for _ in range(60)]

    async def transfer(number: int) -> None:
        (payer, payee), amount = plan[number]
        await both[number % 2].transact(
            [
                Update(plain, payer, (Add("balance", -amount),), Compare("balance", ">=", amount)),
                Update(plain, payee, (Add("balance", amount),)),
            ]
        )

    for start in range(0, 60, 10):
        await asyncio.gather(*(transfer(number) for number in range(start, start + 10)))

    balances = [
        int(str(balance)) for balance in only("balance", await harness.items.get_many(plain, accounts))
    ]
    assert sum(balances) == 100
    assert min(balances) >= 0


async def test_a_transaction_is_never_seen_half_written_by_another(harness: Harness) -> None:
    """Both items always carry the same number; a check that they don't must never hold."""
    both, plain = await instances(harness), harness.tables.plain
    one, other = {"id": fresh()}, {"id": fresh()}
    await put_all(harness.items, plain, {**one, "n": 0}, {**other, "n": 0})

    async def write(number: int) -> None:
        assert_written(
            await both[number % 2].transact(
                [Update(plain, one, (Add("n", 1),)), Update(plain, other, (Add("n", 1),))]
            )
        )

    async def look(number: int) -> None:
        for n in range(12):
            skewed = [Check(plain, one, equals("n", n)), Check(plain, other, Compare("n", "<>", n))]
            assert not isinstance(await both[number % 2].transact(skewed), Written)

    await asyncio.gather(together(12, write), together(2, look))

    assert only("n", await harness.items.get_many(plain, [one, other])) == [12, 12]


async def test_one_loop_may_write_many_different_items_at_once(harness: Harness) -> None:
    table, partition = harness.tables.sorted, fresh()

    async def write(number: int) -> None:
        key = {"pk": partition, "sk": f"{number:03}"}
        assert_written(await harness.items.put(table, {**key, "n": number}, Absent("pk")))
        assert_written(await harness.items.update(table, key, Add("n", 1)))
        assert await harness.items.get(table, key) == {**key, "n": number + 1}

    await together(100, write)


async def test_a_cancelled_caller_takes_no_other_with_it(harness: Harness) -> None:
    plain = harness.tables.plain
    keys = [{"id": fresh()} for _ in range(12)]
    tasks = [
        asyncio.ensure_future(harness.items.update(plain, key, Add("n", 1), condition=Absent("n")))
        for key in keys
    ]
    await asyncio.sleep(0)
    for task in tasks[::3]:
        task.cancel()

    outcomes = await asyncio.gather(*tasks, return_exceptions=True)

    kept = [outcome for number, outcome in enumerate(outcomes) if number % 3]
    assert [type(outcome) for outcome in kept] == [Written] * 8
    for item in await harness.items.get_many(plain, [key for n, key in enumerate(keys) if n % 3]):
        assert item is not None and item["n"] == 1
    assert_written(await harness.items.put(plain, {"id": fresh()}))
