from tests.contract.items.asking import only, put_all
from tests.contract.items.harness import Harness
from tests.contract.items.tables import fresh

from crossdock.engines.items.port import Item


async def test_an_item_is_read_as_it_was_put(harness: Harness) -> None:
    item: Item = {"id": fresh(), "name": "pump", "level": 3}
    await put_all(harness.items, harness.tables.plain, item)

    assert await harness.items.get(harness.tables.plain, {"id": str(item["id"])}) == item


async def test_an_item_that_was_never_put_is_none(harness: Harness) -> None:
    assert await harness.items.get(harness.tables.plain, {"id": fresh()}) is None


async def test_the_whole_key_names_an_item(harness: Harness) -> None:
    partition = fresh()
    await put_all(
        harness.items,
        harness.tables.sorted,
        {"pk": partition, "sk": "a", "which": 1},
        {"pk": partition, "sk": "b", "which": 2},
    )

    assert await harness.items.get(harness.tables.sorted, {"pk": partition, "sk": "b"}) == {
        "pk": partition,
        "sk": "b",
        "which": 2,
    }
    assert await harness.items.get(harness.tables.sorted, {"pk": partition, "sk": "c"}) is None


async def test_keys_that_join_to_the_same_text_stay_apart(harness: Harness) -> None:
    partition = fresh()
    await put_all(harness.items, harness.tables.sorted, {"pk": partition + "a", "sk": "b"})

    assert await harness.items.get(harness.tables.sorted, {"pk": partition, "sk": "ab"}) is None


async def test_wide_attributes_are_read_with_the_item(harness: Harness) -> None:
    item: Item = {"pk": fresh(), "sk": "a", "body": "x" * 5000}
    await put_all(harness.items, harness.tables.sorted, item)
    key = {"pk": str(item["pk"]), "sk": "a"}

    assert await harness.items.get(harness.tables.sorted, key) == item
    assert await harness.items.get_many(harness.tables.sorted, [key]) == [item]


async def test_get_many_answers_in_the_order_asked(harness: Harness) -> None:
    partition = fresh()
    await put_all(harness.items, harness.tables.sorted, *({"pk": partition, "sk": f"{n}"} for n in range(9)))
    order = [4, 0, 8, 2, 6, 1, 7, 3, 5]

    found = await harness.items.get_many(
        harness.tables.sorted, [{"pk": partition, "sk": f"{n}"} for n in order]
    )

    assert only("sk", found) == [f"{n}" for n in order]


async def test_get_many_answers_none_in_the_place_of_an_absent_item(harness: Harness) -> None:
    there = fresh()
    await put_all(harness.items, harness.tables.plain, {"id": there})

    found = await harness.items.get_many(
        harness.tables.plain, [{"id": fresh()}, {"id": there}, {"id": fresh()}]
    )

    assert found == [None, {"id": there}, None]


async def test_get_many_answers_a_key_as_often_as_it_is_named(harness: Harness) -> None:
    one, other = fresh(), fresh()
    await put_all(harness.items, harness.tables.plain, {"id": one}, {"id": other})

    found = await harness.items.get_many(
        harness.tables.plain, [{"id": one}, {"id": other}, {"id": one}, {"id": one}]
    )

    assert only("id", found) == [one, other, one, one]


async def test_get_many_reads_more_than_a_hundred(harness: Harness) -> None:
    partition = fresh()
    await harness.items.write_many(
        harness.tables.sorted, [{"pk": partition, "sk": f"{n:03}", "body": "x" * 2000} for n in range(230)]
    )

    found = await harness.items.get_many(
        harness.tables.sorted, [{"pk": partition, "sk": f"{n:03}"} for n in range(232)]
    )

    assert only("sk", found) == [*(f"{n:03}" for n in range(230)), None, None]


async def test_get_many_of_large_items_reads_them_all(harness: Harness) -> None:
    """DynamoDB answers at most 16 MB at a time, and leaves the rest to be asked for again."""
    partition = fresh()
    body = "x" * 380_000
    await harness.items.write_many(
        harness.tables.sorted, [{"pk": partition, "sk": f"{n:02}", "body": body} for n in range(50)]
    )

    found = await harness.items.get_many(
        harness.tables.sorted, [{"pk": partition, "sk": f"{n:02}"} for n in range(50)]
    )

    assert only("sk", found) == [f"{n:02}" for n in range(50)]


async def test_get_many_of_nothing_is_nothing(harness: Harness) -> None:
    assert await harness.items.get_many(harness.tables.plain, []) == []


async def test_what_is_read_is_the_readers_own(harness: Harness) -> None:
    key = {"id": fresh()}
    await put_all(harness.items, harness.tables.plain, {**key, "tags": ["a"]})

    found = await harness.items.get_many(harness.tables.plain, [key, key])
    assert found[0] is not None
    found[0]["tags"] = "spoiled"

    assert found[1] == {**key, "tags": ["a"]}
    assert await harness.items.get(harness.tables.plain, key) == {**key, "tags": ["a"]}
