import pytest
from tests.contract.items.asking import assert_refused, assert_written, put_all
from tests.contract.items.harness import Harness
from tests.contract.items.tables import fresh

from crossdock.engines.items.conditions import Absent, Exists, equals
from crossdock.engines.items.port import (
    Add,
    Change,
    Failure,
    Item,
    ItemRejected,
    Remove,
    Set,
    SetIfAbsent,
    Value,
)


async def updated(harness: Harness, stored: Item | None, *changes: Change) -> Item:
    """What an update makes of `stored`, told by the update and read again; without the key."""
    key = {"id": fresh()}
    if stored is not None:
        await put_all(harness.items, harness.tables.plain, {**key, **stored})
    told = assert_written(await harness.items.update(harness.tables.plain, key, *changes))
    found = await harness.items.get(harness.tables.plain, key)
    assert told == found
    assert found is not None
    assert found["id"] == key["id"]
    return {name: value for name, value in found.items() if name != "id"}


async def test_set_writes_an_attribute_and_leaves_the_others(harness: Harness) -> None:
    assert await updated(harness, {"a": 1, "b": 2}, Set("a", "one")) == {"a": "one", "b": 2}


async def test_set_adds_an_attribute_that_was_missing(harness: Harness) -> None:
    assert await updated(harness, {"a": 1}, Set("b", {"deep": [1, None]})) == {
        "a": 1,
        "b": {"deep": [1, None]},
    }


async def test_set_to_null_keeps_the_attribute(harness: Harness) -> None:
    assert await updated(harness, {"a": 1}, Set("a", None)) == {"a": None}


async def test_set_replaces_a_map_whole(harness: Harness) -> None:
    assert await updated(harness, {"a": {"x": 1, "y": 2}}, Set("a", {"z": 3})) == {"a": {"z": 3}}


async def test_set_if_absent_writes_what_is_missing(harness: Harness) -> None:
    assert await updated(harness, {"a": 1}, SetIfAbsent("b", 2)) == {"a": 1, "b": 2}


@pytest.mark.parametrize("stored", [1, "", None, False, [], {}])
async def test_set_if_absent_leaves_what_is_there(harness: Harness, stored: Value) -> None:
    assert await updated(harness, {"a": stored}, SetIfAbsent("a", 2)) == {"a": stored}


async def test_add_adds_to_a_number(harness: Harness) -> None:
    assert await updated(harness, {"n": 40}, Add("n", 2)) == {"n": 42}


async def test_add_of_a_negative_amount_subtracts(harness: Harness) -> None:
    assert await updated(harness, {"n": 40}, Add("n", -50)) == {"n": -10}


async def test_add_of_fractions(harness: Harness) -> None:
    assert await updated(harness, {"n": 1}, Add("n", 0.5)) == {"n": 1.5}


async def test_add_counts_a_missing_attribute_as_zero(harness: Harness) -> None:
    assert await updated(harness, {"a": 1}, Add("n", 2)) == {"a": 1, "n": 2}


@pytest.mark.parametrize("stored", ["1", None, True, [1], {"n": 1}])
async def test_add_to_what_is_not_a_number_is_rejected_and_changes_nothing(
    harness: Harness, stored: Value
) -> None:
    key = {"id": fresh()}
    await put_all(harness.items, harness.tables.plain, {**key, "n": stored})

    with pytest.raises(ItemRejected):
        await harness.items.update(harness.tables.plain, key, Set("a", 1), Add("n", 1))

    assert await harness.items.get(harness.tables.plain, key) == {**key, "n": stored}


async def test_remove_takes_an_attribute_away(harness: Harness) -> None:
    assert await updated(harness, {"a": 1, "b": 2}, Remove("a")) == {"b": 2}


async def test_remove_of_a_missing_attribute_changes_nothing(harness: Harness) -> None:
    assert await updated(harness, {"a": 1}, Remove("b")) == {"a": 1}


async def test_an_update_creates_an_absent_item(harness: Harness) -> None:
    assert await updated(harness, None, Set("a", 1), SetIfAbsent("b", 2), Add("n", 3), Remove("c")) == {
        "a": 1,
        "b": 2,
        "n": 3,
    }


async def test_an_update_that_only_removes_creates_an_absent_item(harness: Harness) -> None:
    assert await updated(harness, None, Remove("a")) == {}


async def test_several_changes_take_effect_together(harness: Harness) -> None:
    stored: Item = {"a": 1, "b": 2, "c": 3, "n": 4}
    assert await updated(
        harness, stored, Set("a", "x"), SetIfAbsent("b", "y"), SetIfAbsent("d", "z"), Remove("c"), Add("n", 1)
    ) == {"a": "x", "b": 2, "d": "z", "n": 5}


async def test_changes_of_many_attributes_at_once(harness: Harness) -> None:
    changes = [Set(f"a{n}", n) for n in range(120)]
    assert await updated(harness, None, *changes) == {f"a{n}": n for n in range(120)}


AWKWARD_NAMES = (
    "status",
    "a.b",
    "a[0]",
    "#name",
    ":value",
    "größe",
    "with space",
    'quo"te',
    "set",
    "😀",
    "1",
)


@pytest.mark.parametrize("name", AWKWARD_NAMES)
async def test_any_attribute_name_is_taken_as_it_is(harness: Harness, name: str) -> None:
    key = {"id": fresh()}
    await harness.items.update(harness.tables.plain, key, Set(name, 1), condition=Absent(name))
    await harness.items.update(harness.tables.plain, key, Add(name, 1), condition=equals(name, 1))

    assert await harness.items.get(harness.tables.plain, key) == {**key, name: 2}

    await harness.items.update(harness.tables.plain, key, Remove(name), condition=Exists(name))

    assert await harness.items.get(harness.tables.plain, key) == key


async def test_an_update_whose_condition_holds_is_written(harness: Harness) -> None:
    key = {"id": fresh()}
    await put_all(harness.items, harness.tables.plain, {**key, "n": 1})

    outcome = await harness.items.update(harness.tables.plain, key, Add("n", 1), condition=equals("n", 1))

    assert assert_written(outcome) == {**key, "n": 2}


async def test_an_update_whose_condition_fails_changes_nothing(harness: Harness) -> None:
    key = {"id": fresh()}
    item: Item = {**key, "n": 1}
    await put_all(harness.items, harness.tables.plain, item)

    outcome = await harness.items.update(harness.tables.plain, key, Add("n", 1), condition=equals("n", 2))

    assert assert_refused(outcome).failures == (Failure(0, item),)
    assert await harness.items.get(harness.tables.plain, key) == item


async def test_an_update_of_an_absent_item_whose_condition_fails_creates_nothing(harness: Harness) -> None:
    key = {"id": fresh()}

    outcome = await harness.items.update(harness.tables.plain, key, Set("a", 1), condition=Exists("id"))

    assert assert_refused(outcome).current is None
    assert await harness.items.get(harness.tables.plain, key) is None


async def test_an_update_of_an_absent_item_creates_it_if_the_condition_holds(harness: Harness) -> None:
    key = {"id": fresh()}

    outcome = await harness.items.update(harness.tables.plain, key, Set("a", 1), condition=Absent("id"))

    assert assert_written(outcome) == {**key, "a": 1}


async def test_a_condition_is_judged_before_the_changes(harness: Harness) -> None:
    key = {"id": fresh()}
    await put_all(harness.items, harness.tables.plain, {**key, "state": "new"})

    outcome = await harness.items.update(
        harness.tables.plain, key, Set("state", "done"), condition=equals("state", "new")
    )

    assert assert_written(outcome) == {**key, "state": "done"}


async def test_an_update_leaves_wide_attributes_and_does_not_tell_them(harness: Harness) -> None:
    key = {"pk": fresh(), "sk": "a"}
    await put_all(harness.items, harness.tables.sorted, {**key, "n": 1, "body": "long"})

    told = assert_written(await harness.items.update(harness.tables.sorted, key, Add("n", 1)))

    assert told == {**key, "n": 2}
    assert await harness.items.get(harness.tables.sorted, key) == {**key, "n": 2, "body": "long"}


async def test_a_wide_attribute_can_be_set_and_removed(harness: Harness) -> None:
    key = {"pk": fresh(), "sk": "a"}
    await put_all(harness.items, harness.tables.sorted, {**key, "body": "first"})

    await harness.items.update(harness.tables.sorted, key, Set("body", "second"))
    assert await harness.items.get(harness.tables.sorted, key) == {**key, "body": "second"}

    await harness.items.update(harness.tables.sorted, key, Remove("body"))
    assert await harness.items.get(harness.tables.sorted, key) == key


async def test_set_if_absent_leaves_a_wide_attribute_that_is_there(harness: Harness) -> None:
    key = {"pk": fresh(), "sk": "a"}
    await put_all(harness.items, harness.tables.sorted, {**key, "body": "first"})

    await harness.items.update(harness.tables.sorted, key, SetIfAbsent("body", "second"))

    assert await harness.items.get(harness.tables.sorted, key) == {**key, "body": "first"}


async def test_an_update_may_not_change_the_key(harness: Harness) -> None:
    key = {"id": fresh()}
    await put_all(harness.items, harness.tables.plain, {**key, "n": 1})

    for change in (Set("id", fresh()), Remove("id"), SetIfAbsent("id", "x"), Add("id", 1)):
        with pytest.raises(ItemRejected):
            await harness.items.update(harness.tables.plain, key, change)

    assert await harness.items.get(harness.tables.plain, key) == {**key, "n": 1}


async def test_an_update_may_not_change_an_attribute_twice(harness: Harness) -> None:
    key = {"id": fresh()}

    with pytest.raises(ItemRejected):
        await harness.items.update(harness.tables.plain, key, Set("a", 1), Add("a", 1))

    assert await harness.items.get(harness.tables.plain, key) is None
