from tests.contract.items.asking import assert_refused, assert_written, put_all
from tests.contract.items.harness import Harness
from tests.contract.items.tables import fresh

from crossdock.engines.items.conditions import Absent, Exists, equals
from crossdock.engines.items.port import Failure, Item


async def test_put_replaces_the_whole_item(harness: Harness) -> None:
    key = {"id": fresh()}
    await put_all(harness.items, harness.tables.plain, {**key, "old": 1, "kept": 1}, {**key, "kept": 2})

    assert await harness.items.get(harness.tables.plain, key) == {**key, "kept": 2}


async def test_put_replaces_wide_attributes_too(harness: Harness) -> None:
    key = {"pk": fresh(), "sk": "a"}
    await put_all(harness.items, harness.tables.sorted, {**key, "body": "before"}, {**key, "n": 1})

    assert await harness.items.get(harness.tables.sorted, key) == {**key, "n": 1}


async def test_put_if_absent_writes_a_new_item(harness: Harness) -> None:
    key = {"id": fresh()}

    assert_written(await harness.items.put(harness.tables.plain, {**key, "n": 1}, Absent("id")))

    assert await harness.items.get(harness.tables.plain, key) == {**key, "n": 1}


async def test_put_if_absent_refuses_an_item_that_is_there_and_says_how_it_stands(harness: Harness) -> None:
    key = {"id": fresh()}
    await put_all(harness.items, harness.tables.plain, {**key, "n": 1})

    refused = assert_refused(await harness.items.put(harness.tables.plain, {**key, "n": 2}, Absent("id")))

    assert refused.failures == (Failure(0, {**key, "n": 1}),)
    assert refused.current == {**key, "n": 1}
    assert await harness.items.get(harness.tables.plain, key) == {**key, "n": 1}


async def test_a_put_whose_condition_holds_replaces_the_item(harness: Harness) -> None:
    key = {"id": fresh()}
    await put_all(harness.items, harness.tables.plain, {**key, "version": 1})

    assert_written(await harness.items.put(harness.tables.plain, {**key, "version": 2}, equals("version", 1)))

    assert await harness.items.get(harness.tables.plain, key) == {**key, "version": 2}


async def test_a_put_is_judged_on_the_stored_item_not_on_the_new_one(harness: Harness) -> None:
    key = {"id": fresh()}
    await put_all(harness.items, harness.tables.plain, {**key, "version": 1})

    assert_refused(await harness.items.put(harness.tables.plain, {**key, "version": 2}, equals("version", 2)))


async def test_a_put_on_an_absent_item_is_refused_with_no_current_item(harness: Harness) -> None:
    key = {"id": fresh()}

    refused = assert_refused(await harness.items.put(harness.tables.plain, {**key}, Exists("id")))

    assert refused.failures == (Failure(0, None),)
    assert await harness.items.get(harness.tables.plain, key) is None


async def test_wide_attributes_are_left_out_of_a_refusal(harness: Harness) -> None:
    key = {"pk": fresh(), "sk": "a"}
    await put_all(harness.items, harness.tables.sorted, {**key, "n": 1, "body": "long"})

    refused = assert_refused(await harness.items.put(harness.tables.sorted, {**key}, Absent("pk")))

    assert refused.current == {**key, "n": 1}


async def test_delete_removes_the_item_and_tells_what_it_was(harness: Harness) -> None:
    key = {"id": fresh()}
    await put_all(harness.items, harness.tables.plain, {**key, "n": 1})

    assert assert_written(await harness.items.delete(harness.tables.plain, key)) == {**key, "n": 1}
    assert await harness.items.get(harness.tables.plain, key) is None


async def test_delete_of_an_absent_item_is_written_and_tells_nothing(harness: Harness) -> None:
    assert assert_written(await harness.items.delete(harness.tables.plain, {"id": fresh()})) is None


async def test_wide_attributes_are_left_out_of_what_a_delete_tells(harness: Harness) -> None:
    key = {"pk": fresh(), "sk": "a"}
    await put_all(harness.items, harness.tables.sorted, {**key, "n": 1, "body": "long"})

    assert assert_written(await harness.items.delete(harness.tables.sorted, key)) == {**key, "n": 1}


async def test_a_delete_whose_condition_fails_leaves_the_item(harness: Harness) -> None:
    key = {"id": fresh()}
    item: Item = {**key, "n": 1}
    await put_all(harness.items, harness.tables.plain, item)

    refused = assert_refused(await harness.items.delete(harness.tables.plain, key, equals("n", 2)))

    assert refused.failures == (Failure(0, item),)
    assert await harness.items.get(harness.tables.plain, key) == item


async def test_a_delete_whose_condition_holds_removes_the_item(harness: Harness) -> None:
    key = {"id": fresh()}
    await put_all(harness.items, harness.tables.plain, {**key, "n": 1})

    assert_written(await harness.items.delete(harness.tables.plain, key, equals("n", 1)))

    assert await harness.items.get(harness.tables.plain, key) is None


async def test_a_conditional_delete_of_an_absent_item_is_refused(harness: Harness) -> None:
    refused = assert_refused(await harness.items.delete(harness.tables.plain, {"id": fresh()}, Exists("id")))

    assert refused.current is None


async def test_a_deleted_item_can_be_put_if_absent_again(harness: Harness) -> None:
    key = {"id": fresh()}
    await put_all(harness.items, harness.tables.plain, {**key, "n": 1})
    await harness.items.delete(harness.tables.plain, key)

    assert_written(await harness.items.put(harness.tables.plain, {**key, "n": 2}, Absent("id")))

    assert await harness.items.get(harness.tables.plain, key) == {**key, "n": 2}
