"""Transactions: all of it or nothing, and every reason for nothing."""

import pytest
from tests.contract.items.asking import assert_refused, assert_written, only, put_all
from tests.contract.items.harness import Harness
from tests.contract.items.tables import fresh

from crossdock.engines.items.conditions import Absent, Exists, equals
from crossdock.engines.items.port import (
    Add,
    Check,
    Delete,
    Failure,
    Item,
    ItemRejected,
    Put,
    Refused,
    Remove,
    Set,
    Update,
    Write,
)


async def test_a_transaction_writes_all_of_it_in_two_tables(harness: Harness) -> None:
    plain, two_keys = harness.tables.plain, harness.tables.sorted
    put, updated, deleted, checked = ({"id": fresh()} for _ in range(4))
    row = {"pk": fresh(), "sk": "a"}
    await put_all(harness.items, plain, {**updated, "n": 1}, {**deleted}, {**checked})

    outcome = await harness.items.transact(
        [
            Put(plain, {**put, "n": 1}, Absent("id")),
            Update(plain, updated, (Add("n", 1),), equals("n", 1)),
            Delete(plain, deleted, Exists("id")),
            Check(plain, checked, Exists("id")),
            Put(two_keys, {**row, "body": "long"}),
        ]
    )

    assert_written(outcome)
    found = await harness.items.get_many(plain, [put, updated, deleted, checked])
    assert found == [{**put, "n": 1}, {**updated, "n": 2}, None, checked]
    assert await harness.items.get(two_keys, row) == {**row, "body": "long"}


@pytest.mark.parametrize("failing", range(4))
async def test_one_failed_condition_leaves_everything_as_it_was(harness: Harness, failing: int) -> None:
    plain, two_keys = harness.tables.plain, harness.tables.sorted
    put, updated, deleted = ({"id": fresh()} for _ in range(3))
    row = {"pk": fresh(), "sk": "a"}
    await put_all(harness.items, plain, {**updated, "n": 1}, {**deleted, "n": 1})
    no = Exists("never")
    writes: list[Write] = [
        Put(plain, {**put}, no if failing == 0 else Absent("id")),
        Update(plain, updated, (Add("n", 1), Set("a", 1)), no if failing == 1 else Exists("id")),
        Delete(plain, deleted, no if failing == 2 else Exists("id")),
        Put(two_keys, {**row}, no if failing == 3 else Absent("pk")),
    ]

    refused = assert_refused(await harness.items.transact(writes))

    assert [failure.position for failure in refused.failures] == [failing]
    found = await harness.items.get_many(plain, [put, updated, deleted])
    assert found == [None, {**updated, "n": 1}, {**deleted, "n": 1}]
    assert await harness.items.get(two_keys, row) is None


async def test_a_refusal_names_every_failed_position_with_its_item_as_it_stands(harness: Harness) -> None:
    plain, two_keys = harness.tables.plain, harness.tables.sorted
    there, absent, fine = ({"id": fresh()} for _ in range(3))
    row = {"pk": fresh(), "sk": "a"}
    await put_all(harness.items, plain, {**there, "n": 1})
    await put_all(harness.items, two_keys, {**row, "n": 2, "body": "long"})

    refused = assert_refused(
        await harness.items.transact(
            [
                Put(plain, {**there, "n": 9}, Absent("id")),
                Put(plain, {**fine}, Absent("id")),
                Update(plain, absent, (Set("a", 1),), Exists("id")),
                Check(two_keys, row, equals("n", 3)),
            ]
        )
    )

    assert refused.failures == (
        Failure(0, {**there, "n": 1}),
        Failure(2, None),
        Failure(3, {**row, "n": 2}),  # the wide attribute is left out
    )
    assert await harness.items.get(plain, fine) is None


async def test_a_check_writes_nothing(harness: Harness) -> None:
    plain = harness.tables.plain
    there, absent = {"id": fresh()}, {"id": fresh()}
    await put_all(harness.items, plain, {**there, "n": 1})

    assert_written(
        await harness.items.transact(
            [Check(plain, there, equals("n", 1)), Check(plain, absent, Absent("id"))]
        )
    )

    assert await harness.items.get_many(plain, [there, absent]) == [{**there, "n": 1}, None]


async def test_a_check_on_an_item_that_is_there_or_not_decides(harness: Harness) -> None:
    plain = harness.tables.plain
    there, absent, target = ({"id": fresh()} for _ in range(3))
    await put_all(harness.items, plain, {**there})

    for checked, condition, expected in (
        (there, Absent("id"), Failure(0, {**there})),
        (absent, Exists("id"), Failure(0, None)),
    ):
        outcome = await harness.items.transact([Check(plain, checked, condition), Put(plain, {**target})])
        assert outcome == Refused((expected,))
        assert await harness.items.get(plain, target) is None


async def test_each_condition_sees_the_state_before_the_transaction(harness: Harness) -> None:
    plain = harness.tables.plain
    one, other = {"id": fresh()}, {"id": fresh()}

    refused = assert_refused(
        await harness.items.transact([Put(plain, {**one}), Check(plain, other, Exists("id"))])
    )

    assert refused.failures == (Failure(1, None),)


@pytest.mark.parametrize("count", [1, 2, 100])
async def test_a_transaction_of_up_to_a_hundred_writes(harness: Harness, count: int) -> None:
    table, partition = harness.tables.sorted, fresh()
    keys = [{"pk": partition, "sk": f"{n:03}"} for n in range(count)]

    assert_written(await harness.items.transact([Put(table, {**key, "n": 1}) for key in keys]))
    assert only("n", await harness.items.get_many(table, keys)) == [1] * count

    assert_written(
        await harness.items.transact([Update(table, key, (Add("n", 1),), equals("n", 1)) for key in keys])
    )
    assert only("n", await harness.items.get_many(table, keys)) == [2] * count


async def test_the_last_of_a_hundred_conditions_can_refuse_them_all(harness: Harness) -> None:
    table, partition = harness.tables.sorted, fresh()
    keys = [{"pk": partition, "sk": f"{n:03}"} for n in range(100)]
    await put_all(harness.items, table, {**keys[99], "n": 1})

    refused = assert_refused(
        await harness.items.transact([Put(table, {**key}, Absent("pk")) for key in keys])
    )

    assert refused.failures == (Failure(99, {**keys[99], "n": 1}),)
    assert await harness.items.get_many(table, keys[:99]) == [None] * 99


@pytest.mark.parametrize("count", [0, 101])
async def test_no_write_or_more_than_a_hundred_are_rejected(harness: Harness, count: int) -> None:
    table, partition = harness.tables.sorted, fresh()
    keys = [{"pk": partition, "sk": f"{n:03}"} for n in range(count)]

    with pytest.raises(ItemRejected):
        await harness.items.transact([Put(table, {**key}) for key in keys])

    assert await harness.items.get_many(table, keys) == [None] * count


@pytest.mark.parametrize("second", ["put", "update", "delete", "check"])
async def test_an_item_named_twice_is_rejected(harness: Harness, second: str) -> None:
    plain, key = harness.tables.plain, {"id": fresh()}
    again: dict[str, Write] = {
        "put": Put(plain, {**key, "n": 2}),
        "update": Update(plain, key, (Set("n", 2),)),
        "delete": Delete(plain, key),
        "check": Check(plain, key, Absent("id")),
    }

    with pytest.raises(ItemRejected):
        await harness.items.transact([Put(plain, {**key, "n": 1}), again[second]])

    assert await harness.items.get(plain, key) is None


async def test_one_item_that_breaks_a_limit_rejects_the_transaction(harness: Harness) -> None:
    plain, good = harness.tables.plain, {"id": fresh()}

    with pytest.raises(ItemRejected):
        await harness.items.transact([Put(plain, {**good}), Put(plain, {"id": ""})])

    assert await harness.items.get(plain, good) is None


async def test_an_add_to_what_is_no_number_rejects_the_transaction(harness: Harness) -> None:
    plain, text, good = harness.tables.plain, {"id": fresh()}, {"id": fresh()}
    item: Item = {**text, "n": "one"}
    await put_all(harness.items, plain, item)

    with pytest.raises(ItemRejected):
        await harness.items.transact([Put(plain, {**good}), Update(plain, text, (Add("n", 1),))])

    assert await harness.items.get_many(plain, [good, text]) == [None, item]


async def test_a_transaction_can_be_sent_again_word_for_word(harness: Harness) -> None:
    """It is another one: a backend's token against its own repeats must not swallow it."""
    plain, key = harness.tables.plain, {"id": fresh()}
    writes = [Update(plain, key, (Add("n", 1),)), Update(plain, {"id": fresh()}, (Remove("x"),))]

    for _ in range(3):
        assert_written(await harness.items.transact(writes))

    assert await harness.items.get(plain, key) == {**key, "n": 3}
