"""`transact_many`: independent transactions in one call; `write_many`: puts that ask for no answer."""

import pytest
from tests.contract.items.asking import only, put_all
from tests.contract.items.harness import Harness
from tests.contract.items.tables import fresh

from crossdock.engines.items.conditions import Absent, equals
from crossdock.engines.items.port import (
    Add,
    Check,
    Delete,
    Failure,
    Item,
    ItemRejected,
    Put,
    Refused,
    Set,
    Update,
    Write,
    Written,
)


async def test_each_transaction_has_an_outcome_of_its_own_in_order(harness: Harness) -> None:
    plain = harness.tables.plain
    keys = [{"id": fresh()} for _ in range(6)]
    taken: Item = {**keys[1], "n": 1}
    await put_all(harness.items, plain, taken)

    outcomes = await harness.items.transact_many(
        [[Put(plain, {**key, "n": 2}, Absent("id"))] for key in keys]
    )

    assert [type(outcome) for outcome in outcomes] == [Written, Refused, Written, Written, Written, Written]
    assert outcomes[1] == Refused((Failure(0, taken),))
    assert only("n", await harness.items.get_many(plain, keys)) == [2, 1, 2, 2, 2, 2]


async def test_each_transaction_is_all_or_nothing(harness: Harness) -> None:
    plain = harness.tables.plain
    pairs = [({"id": fresh()}, {"id": fresh()}) for _ in range(4)]
    await put_all(harness.items, plain, {**pairs[2][1]})

    outcomes = await harness.items.transact_many(
        [[Put(plain, {**one, "n": 1}), Put(plain, {**other, "n": 1}, Absent("id"))] for one, other in pairs]
    )

    assert [isinstance(outcome, Written) for outcome in outcomes] == [True, True, False, True]
    assert outcomes[2] == Refused((Failure(1, {**pairs[2][1]}),))
    firsts = await harness.items.get_many(plain, [one for one, _ in pairs])
    assert [item is not None for item in firsts] == [True, True, False, True]


async def test_a_rejected_item_harms_no_neighbour(harness: Harness) -> None:
    plain = harness.tables.plain
    keys = [{"id": fresh()} for _ in range(5)]
    text = {"id": fresh()}
    await put_all(harness.items, plain, {**text, "n": "one"})
    transactions: list[list[Write]] = [
        [Put(plain, {**keys[0], "n": 1})],
        [Put(plain, {**keys[1], "n": float("nan")})],
        [Put(plain, {**keys[2], "n": 1})],
        [Update(plain, text, (Add("n", 1),))],
        [Put(plain, {**keys[3], "n": 1}), Put(plain, {"id": ""})],
        [],
        [Put(plain, {**keys[4], "n": 1})],
    ]

    outcomes = await harness.items.transact_many(transactions)

    assert [type(outcome) for outcome in outcomes] == [
        Written,
        ItemRejected,
        Written,
        ItemRejected,
        ItemRejected,
        ItemRejected,
        Written,
    ]
    found = await harness.items.get_many(plain, keys)
    assert [item is not None for item in found] == [True, False, True, False, True]
    assert await harness.items.get(plain, text) == {**text, "n": "one"}


async def test_writes_of_one_key_in_one_call_see_each_other_in_order(harness: Harness) -> None:
    plain, key = harness.tables.plain, {"id": fresh()}

    outcomes = await harness.items.transact_many(
        [
            [Put(plain, {**key, "n": 1}, Absent("id"))],
            [Put(plain, {**key, "n": 9}, Absent("id"))],
            [Update(plain, key, (Add("n", 1),), equals("n", 1))],
            [Update(plain, key, (Add("n", 1), Set("a", 1)), equals("n", 2))],
            [Check(plain, key, equals("n", 3))],
            [Update(plain, key, (Add("n", 1),), equals("n", 2))],
        ]
    )

    assert [isinstance(outcome, Written) for outcome in outcomes] == [True, False, True, True, True, False]
    assert outcomes[1] == Refused((Failure(0, {**key, "n": 1}),))
    assert outcomes[5] == Refused((Failure(0, {**key, "n": 3, "a": 1}),))
    assert await harness.items.get(plain, key) == {**key, "n": 3, "a": 1}


async def test_a_delete_in_between_is_seen_too(harness: Harness) -> None:
    plain, key = harness.tables.plain, {"id": fresh()}

    outcomes = await harness.items.transact_many(
        [
            [Put(plain, {**key, "n": 1, "old": True})],
            [Delete(plain, key, equals("n", 1))],
            [Put(plain, {**key, "n": 2}, Absent("id"))],
            [Update(plain, key, (Add("n", 1),))],
        ]
    )

    assert [type(outcome) for outcome in outcomes] == [Written] * 4
    assert await harness.items.get(plain, key) == {**key, "n": 3}


async def test_three_adds_of_one_key_in_one_call_all_count(harness: Harness) -> None:
    plain, key = harness.tables.plain, {"id": fresh()}

    outcomes = await harness.items.transact_many([[Update(plain, key, (Add("n", 1),))] for _ in range(3)])

    assert [type(outcome) for outcome in outcomes] == [Written] * 3
    assert await harness.items.get(plain, key) == {**key, "n": 3}


async def test_a_refused_transaction_leaves_nothing_for_the_next_to_see(harness: Harness) -> None:
    plain, one, other = harness.tables.plain, {"id": fresh()}, {"id": fresh()}
    await put_all(harness.items, plain, {**other})

    outcomes = await harness.items.transact_many(
        [
            [Put(plain, {**one, "n": 1}), Put(plain, {**other}, Absent("id"))],
            [Put(plain, {**one, "n": 2}, Absent("id"))],
        ]
    )

    assert [isinstance(outcome, Written) for outcome in outcomes] == [False, True]
    assert await harness.items.get(plain, one) == {**one, "n": 2}


async def test_transactions_over_the_same_pair_of_items_in_both_orders(harness: Harness) -> None:
    plain, one, other = harness.tables.plain, {"id": fresh()}, {"id": fresh()}
    transactions: list[list[Write]] = []
    for n in range(10):
        pair = [Update(plain, one, (Add("n", 1),)), Update(plain, other, (Add("n", -1),))]
        transactions.append([*pair] if n % 2 else [*reversed(pair)])

    outcomes = await harness.items.transact_many(transactions)

    assert [type(outcome) for outcome in outcomes] == [Written] * 10
    assert only("n", await harness.items.get_many(plain, [one, other])) == [10, -10]


async def test_a_few_hundred_transactions_in_one_call(harness: Harness) -> None:
    table, partition = harness.tables.sorted, fresh()
    keys = [{"pk": partition, "sk": f"{n:03}"} for n in range(250)]

    outcomes = await harness.items.transact_many(
        [[Put(table, {**key, "n": 1}, Absent("pk"))] for key in keys]
    )

    assert [type(outcome) for outcome in outcomes] == [Written] * 250
    assert only("n", await harness.items.get_many(table, keys)) == [1] * 250


async def test_no_transactions_have_no_outcomes(harness: Harness) -> None:
    assert await harness.items.transact_many([]) == []


async def test_write_many_writes_them_all(harness: Harness) -> None:
    table, partition = harness.tables.sorted, fresh()
    items: list[Item] = [{"pk": partition, "sk": f"{n:03}", "body": f"long {n}"} for n in range(101)]

    await harness.items.write_many(table, items)

    keys = [{"pk": partition, "sk": str(item["sk"])} for item in items]
    assert await harness.items.get_many(table, keys) == items


async def test_write_many_replaces_whole_items(harness: Harness) -> None:
    table, key = harness.tables.sorted, {"pk": fresh(), "sk": "a"}
    await put_all(harness.items, table, {**key, "old": 1, "body": "before"})

    await harness.items.write_many(table, [{**key, "new": 1}])

    assert await harness.items.get(table, key) == {**key, "new": 1}


@pytest.mark.parametrize("between", [0, 40])
async def test_of_several_writes_of_one_key_the_last_one_wins(harness: Harness, between: int) -> None:
    table, partition = harness.tables.sorted, fresh()
    others: list[Item] = [{"pk": partition, "sk": f"{n:03}"} for n in range(between)]
    key = {"pk": partition, "sk": "same"}

    await harness.items.write_many(
        table, [{**key, "n": 1}, *others, {**key, "n": 2}, *others, {**key, "n": 3}]
    )

    assert await harness.items.get(table, key) == {**key, "n": 3}


async def test_write_many_of_nothing_is_nothing(harness: Harness) -> None:
    await harness.items.write_many(harness.tables.plain, [])


async def test_write_many_rejects_an_item_that_breaks_a_limit_before_anything_is_sent(
    harness: Harness,
) -> None:
    plain, good = harness.tables.plain, {"id": fresh()}

    with pytest.raises(ItemRejected):
        await harness.items.write_many(plain, [{**good}, {"id": fresh(), "n": float("inf")}])

    assert await harness.items.get(plain, good) is None
