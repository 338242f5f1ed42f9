"""Tallies: counted exactly once with the transaction that brought them, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Sequence
from functools import partial
from typing import Any

import pytest
from tests.contract.items.asking import (
    assert_written,
    eventually,
    only,
    put_all,
    sort_keys,
)
from tests.contract.items.harness import Harness
from tests.contract.items.tables import BY_OWNER, fresh

from crossdock.engines.items.conditions import Absent, equals
from crossdock.engines.items.port import (
    Add,
    Delete,
    Failure,
    Item,
    ItemRejected,
    Key,
    Put,
    Query,
    Refused,
    Set,
    Tally,
    Transaction,
    Update,
    Value,
    Write,
    Written,
)


async def write(harness: Harness, *tallies: Tally) -> None:
    """One more item, and the tallies with it."""
    assert_written(await harness.items.transact([Put(harness.tables.plain, {"id": fresh()}), *tallies]))


async def counted(harness: Harness, key: Key) -> Item | None:
    await harness.settle()
    return await harness.items.get(harness.tables.plain, key)


async def counter(harness: Harness, **attributes: Value) -> dict[str, str]:
    key = {"id": fresh("counter")}
    await put_all(harness.items, harness.tables.plain, {**key, **attributes})
    return key


# --- what a tally does -----------------------------------------------------------------------------


async def test_a_tally_adds_to_what_is_there_and_to_what_is_not(harness: Harness) -> None:
    plain, key = harness.tables.plain, await counter(harness, n=3, down=1, half=0.5, text="stays")

    await write(harness, Tally(plain, key, {"n": 2, "down": -4, "half": 1, "new": 7, "none": 0}))

    assert await counted(harness, key) == {
        **key,
        "n": 5,
        "down": -3,
        "half": 1.5,
        "new": 7,
        "none": 0,
        "text": "stays",
    }


async def test_the_writes_are_told_as_without_tallies(harness: Harness) -> None:
    plain, key = harness.tables.plain, await counter(harness)
    new: Item = {"id": fresh(), "a": 1}

    outcome = await harness.items.transact([Put(plain, new, Absent("id")), Tally(plain, key, {"n": 1})])

    assert outcome == Written()
    assert await harness.items.get(plain, {"id": str(new["id"])}) == new
    # A lone update tells its item, and is not alone here.
    update = Update(plain, key, (Set("a", 1),))
    assert await harness.items.transact([update, Tally(plain, key, {"n": 1})]) == Written()


async def test_tallies_of_one_item_in_one_transaction_all_count(harness: Harness) -> None:
    plain, key = harness.tables.plain, await counter(harness, period="now")

    await write(
        harness,
        Tally(plain, key, {"n": 1, "a": 1}),
        Tally(plain, key, {"n": 10}, when={"period": "now"}),
        Tally(plain, key, {"n": 100, "b": 1}),
        Tally(plain, key, {"n": 1000}, when={"period": "then"}),
    )

    assert await counted(harness, key) == {**key, "period": "now", "n": 111, "a": 1, "b": 1}


async def test_a_tally_counts_into_what_its_transaction_makes_of_the_item(harness: Harness) -> None:
    plain, updated, put = harness.tables.plain, await counter(harness, n=1), {"id": fresh()}
    tallies = Tally(plain, updated, {"n": 1, "a": 1}), Tally(plain, put, {"n": 1}, when={"is": "new"})

    assert_written(
        await harness.items.transact(
            [
                Update(plain, updated, (Add("n", 10), Set("b", 1))),
                Put(plain, {**put, "n": 10, "is": "new"}, Absent("id")),
                *tallies,
            ]
        )
    )

    assert await counted(harness, updated) == {**updated, "n": 12, "a": 1, "b": 1}
    assert await counted(harness, put) == {**put, "n": 11, "is": "new"}


async def test_each_transaction_of_many_brings_its_own(harness: Harness) -> None:
    plain, key, taken = harness.tables.plain, await counter(harness), await counter(harness)

    outcomes = await harness.items.transact_many(
        [
            [Put(plain, {"id": fresh()}, Absent("id")), Tally(plain, key, {"n": 1})],
            [Put(plain, {**taken}, Absent("id")), Tally(plain, key, {"n": 10})],
            [Update(plain, taken, (Add("a", 1),)), Tally(plain, key, {"n": 100})],
            [Put(plain, {"id": ""}), Tally(plain, key, {"n": 1000})],
            [Put(plain, {"id": fresh()}), Tally(plain, key, {"": 1})],
            [Delete(plain, taken), Tally(plain, key, {"n": 10_000})],
        ]
    )

    kinds = [Written, Refused, Written, ItemRejected, ItemRejected, Written]
    assert [type(outcome) for outcome in outcomes] == kinds
    assert await counted(harness, key) == {**key, "n": 10_101}


async def test_an_index_and_a_wide_attribute_are_as_before_and_a_text_moves_in_its_index(
    harness: Harness,
) -> None:
    table, owner = harness.tables.sorted, fresh("owner")
    keys = [{"pk": fresh(), "sk": sort} for sort in "ab"]
    items: list[Item] = [{**key, "owner": owner, "rank": "1", "body": "long" * 10_000} for key in keys]
    await put_all(harness.items, table, *items)

    await write(harness, Tally(table, keys[0], {"n": 1}, latest={"rank": "2"}))
    await harness.settle()

    expected = [{**items[0], "n": 1, "rank": "2"}, items[1]]
    assert await harness.items.get_many(table, keys) == expected
    by_rank = Query(table, owner, index=BY_OWNER)
    await eventually(lambda: sort_keys(harness.items, by_rank), ["b", "a"])


# --- once, or not at all ---------------------------------------------------------------------------


async def test_two_hundred_transactions_at_once_over_three_counters_are_counted_exactly(
    harness: Harness,
) -> None:
    both, plain = (harness.items, await harness.another()), harness.tables.plain
    counters = [await counter(harness, n=number) for number in range(3)]

    async def act(number: int) -> None:
        tallies = [
            Tally(plain, counters[number % 3], {"n": 1}, latest={"last": f"{number:03}"}),
            Tally(plain, counters[(number + 1) % 3], {"m": number}),
        ]
        writes: list[Write] = [Put(plain, {"id": fresh(), "n": number}, Absent("id"))]
        if number % 7 == 0:  # not only what takes the short way
            writes.append(Update(plain, counters[number % 2], (Add("updates", 1),)))
        assert_written(await both[number % 2].transact([*writes, *tallies]))

    await asyncio.gather(*(act(number) for number in range(200)))

    await harness.settle()
    found = await harness.items.get_many(plain, counters)
    assert only("n", found) == [67, 68, 68]
    assert only("m", found) == [sum(range((remainder - 1) % 3, 200, 3)) for remainder in range(3)]
    assert only("last", found) == ["198", "199", "197"]
    assert only("updates", found[:2]) == [15, 14]


async def test_writes_of_an_item_and_tallies_of_it_at_once_lose_nothing(harness: Harness) -> None:
    both, plain = (harness.items, await harness.another()), harness.tables.plain
    pair = [await counter(harness, n=0) for _ in range(2)]

    async def act(number: int) -> None:
        one, other = pair[number % 2], pair[1 - number % 2]
        assert_written(
            await both[number // 2 % 2].transact(
                [Update(plain, one, (Add("n", 1),)), Tally(plain, other, {"n": 100})]
            )
        )

    await asyncio.gather(*(act(number) for number in range(60)))

    await harness.settle()
    assert only("n", await harness.items.get_many(plain, pair)) == [3030, 3030]


@pytest.mark.parametrize("kind", ["put", "update"])
async def test_a_refused_transaction_counts_nothing_and_names_its_failures_as_without(
    harness: Harness, kind: str
) -> None:
    plain, key, taken = harness.tables.plain, await counter(harness, n=1), await counter(harness, a=1)
    refused: Write = Put(plain, {**taken}, Absent("id"))
    if kind == "update":
        refused = Update(plain, taken, (Add("a", 1),), equals("a", 2))

    outcome = await harness.items.transact(
        [Put(plain, {"id": fresh()}), refused, Tally(plain, key, {"n": 1}), Tally(plain, taken, {"a": 1})]
    )

    assert outcome == Refused((Failure(1, {**taken, "a": 1}),))
    assert await counted(harness, key) == {**key, "n": 1}
    assert await counted(harness, taken) == {**taken, "a": 1}


async def test_of_the_same_put_if_absent_many_times_over_one_counts(harness: Harness) -> None:
    both, plain = (harness.items, await harness.another()), harness.tables.plain
    key = await counter(harness)

    async def take(number: int, event: Key) -> bool:
        transaction: Transaction = [
            Put(plain, {**event, "by": number}, Absent("id")),
            Tally(plain, key, {"n": 1}),
        ]
        return isinstance(await both[number % 2].transact(transaction), Written)

    events = [{"id": fresh("event")} for _ in range(10)]
    taken = await asyncio.gather(*(take(number, event) for number in range(6) for event in events))

    assert taken.count(True) == 10
    assert await counted(harness, key) == {**key, "n": 10}


async def test_the_background_role_counts_by_itself(harness: Harness) -> None:
    plain, key = harness.tables.plain, await counter(harness)

    async with harness.counting():
        for number in range(1, 4):
            await write(harness, Tally(plain, key, {"n": 1}))
            await eventually(partial(harness.items.get, plain, key), {**key, "n": number}, 10.0)


async def test_two_that_count_at_once_count_once(harness: Harness) -> None:
    plain, key = harness.tables.plain, await counter(harness)
    for _ in range(20):
        await write(harness, Tally(plain, key, {"n": 1}))

    await asyncio.gather(*(harness.settle() for _ in range(4)))

    assert await counted(harness, key) == {**key, "n": 20}


async def test_counting_that_is_cut_short_anywhere_and_repeated_counts_once(harness: Harness) -> None:
    plain, keys = harness.tables.plain, [await counter(harness) for _ in range(2)]
    waits = 0

    while True:
        waits += 1
        await write(harness, *(Tally(plain, key, {"n": 1}, latest={"last": f"{waits:05}"}) for key in keys))
        cut = CutShort(harness.settle, at=waits)
        await cut.run()
        await harness.settle()
        found = await harness.items.get_many(plain, keys)
        assert found == [{**key, "n": waits, "last": f"{waits:05}"} for key in keys]
        if not cut.was_cut:
            break


class CutShort:
    """Work that is cancelled while it waits for the `at`-th time."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, None]], at: int) -> None:
        self._work = work
        self._left = at
        self.was_cut = False

    async def run(self) -> None:
        task = asyncio.ensure_future(self._run())
        await asyncio.wait({task})
        assert task.cancelled() == self.was_cut
        if not task.cancelled():
            task.result()

    async def _run(self) -> None:
        await self

    def __await__(self) -> Generator[Any, None, None]:
        work = self._work().__await__()
        resume = partial(work.send, None)
        while True:
            try:
                waited_for = resume()
            except StopIteration:
                return
            self._left -= 1
            if self._left == 0:
                self.was_cut = True
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
            try:
                yield waited_for
            except BaseException as error:
                resume = partial(work.throw, error)
            else:
                resume = partial(work.send, None)


# --- what is dropped -------------------------------------------------------------------------------


async def test_a_tally_of_an_item_that_is_not_there_is_dropped_and_makes_none(harness: Harness) -> None:
    plain, absent, there = harness.tables.plain, {"id": fresh()}, await counter(harness)

    await write(harness, Tally(plain, absent, {"n": 1}, latest={"a": "1"}), Tally(plain, there, {"n": 1}))

    assert await counted(harness, absent) is None
    assert await counted(harness, there) == {**there, "n": 1}


async def test_a_tally_of_an_item_that_its_transaction_deletes_is_dropped(harness: Harness) -> None:
    plain, key = harness.tables.plain, await counter(harness)

    assert_written(await harness.items.transact([Delete(plain, key), Tally(plain, key, {"n": 1})]))

    assert await counted(harness, key) is None


async def test_what_was_dropped_does_not_count_into_a_later_item(harness: Harness) -> None:
    plain, key = harness.tables.plain, {"id": fresh()}
    await write(harness, Tally(plain, key, {"n": 1}))
    await harness.settle()

    await put_all(harness.items, plain, {**key, "n": 0})

    assert await counted(harness, key) == {**key, "n": 0}


async def test_a_tally_of_an_expired_item_is_dropped(harness: Harness) -> None:
    table, partition = harness.tables.expiring, fresh()
    expired, living = {"pk": partition, "sk": "a"}, {"pk": partition, "sk": "b"}
    now_seconds = harness.clock.now_seconds()
    await put_all(
        harness.items,
        table,
        {**expired, "n": 1, "expires_at": now_seconds - 10},
        {**living, "n": 1, "expires_at": now_seconds + 100},
    )

    # What would bring it back, or make another, if it counted.
    later = {"n": 1, "expires_at": now_seconds + 1000}
    await write(harness, Tally(table, expired, later), Tally(table, living, {"n": 1}))
    await harness.settle()

    assert await harness.items.get(table, expired) is None
    assert await harness.items.get(table, living) == {**living, "n": 2, "expires_at": now_seconds + 100}
    assert_written(await harness.items.update(table, expired, Add("n", 1), condition=Absent("pk")))
    assert await harness.items.get(table, expired) == {**expired, "n": 1}


WHENS: list[tuple[dict[str, str], bool]] = [
    ({"period": "2026-11"}, True),
    ({"period": "2026-11", "state": ""}, True),
    ({"period": "2026-12"}, False),
    ({"period": "2026-11", "state": "on"}, False),
    ({"period": "2026-1"}, False),
    ({"nowhere": "2026-11"}, False),
    ({"nowhere": ""}, False),
    ({"number": "1"}, False),
    ({"null": "null"}, False),
]


@pytest.mark.parametrize(("when", "counts"), WHENS, ids=repr)
async def test_a_tally_counts_only_while_the_item_has_the_values_it_asks_for(
    harness: Harness, when: dict[str, str], counts: bool
) -> None:
    plain = harness.tables.plain
    key = await counter(harness, n=1, period="2026-11", state="", number=1, null=None)
    before = await harness.items.get(plain, key)
    assert before is not None

    await write(harness, Tally(plain, key, {"n": 1}, {"last": "a"}, when), Tally(plain, key, {"all": 1}))

    expected = {**before, "n": 2, "last": "a"} if counts else before
    assert await counted(harness, key) == {**expected, "all": 1}


async def test_each_tally_is_judged_by_what_it_asks_for(harness: Harness) -> None:
    plain, key = harness.tables.plain, await counter(harness, period="2026-11")
    months = ["2026-10", "2026-11", "2026-11", "2026-12"]

    outcomes = await harness.items.transact_many(
        [
            [Put(plain, {"id": fresh()}), Tally(plain, key, {"n": 1, month: 1}, when={"period": month})]
            for month in months
        ]
    )

    assert outcomes == [Written()] * 4
    assert await counted(harness, key) == {**key, "period": "2026-11", "n": 2, "2026-11": 2}


# --- latest ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stored", "told", "expected"),
    [
        (None, ["b", "a"], "b"),
        (None, ["a", "c", "b"], "c"),
        (None, [""], ""),
        ("b", ["a"], "b"),
        ("b", ["b"], "b"),
        ("b", ["ba"], "ba"),
        ("", ["a"], "a"),
        ("2026-11-19T10:00:00Z", ["2026-11-19T09:59:59Z", "2026-11-19T10:00:01Z"], "2026-11-19T10:00:01Z"),
        ("\uffff", ["\U00010000"], "\U00010000"),  # by bytes, not by UTF-16 units
        ("\U00010000", ["\uffff"], "\U00010000"),
    ],
    ids=ascii,
)
async def test_the_latest_text_only_moves_forward(
    harness: Harness, stored: str | None, told: Sequence[str], expected: str
) -> None:
    plain = harness.tables.plain
    one_by_one, together = [
        await counter(harness, **({} if stored is None else {"at": stored})) for _ in range(2)
    ]

    for text in told:
        await write(harness, Tally(plain, one_by_one, {}, latest={"at": text}))
        await harness.settle()
    await write(harness, *(Tally(plain, together, {}, latest={"at": text}) for text in told))

    for key in (one_by_one, together):
        assert await counted(harness, key) == {**key, "at": expected}


# --- what can't be counted -------------------------------------------------------------------------

OTHERS: list[Value] = ["one", "", True, None, [1], {"n": 1}]


@pytest.mark.parametrize("stored", OTHERS, ids=repr)
async def test_what_is_no_number_stays_with_a_warning_and_the_rest_counts(
    harness: Harness, stored: Value, caplog: pytest.LogCaptureFixture
) -> None:
    plain, key = harness.tables.plain, await counter(harness, odd=stored, n=1)

    await write(
        harness, Tally(plain, key, {"odd": 1, "n": 1}, latest={"at": "a"}), Tally(plain, key, {"odd": 1})
    )

    assert await counted(harness, key) == {**key, "odd": stored, "n": 2, "at": "a"}
    assert [record.levelname for record in caplog.records if record.name == "crossdock.items"] == ["WARNING"]


@pytest.mark.parametrize("stored", [1, True, None, ["a"]], ids=repr)
async def test_what_is_no_text_stays_and_the_rest_counts(harness: Harness, stored: Value) -> None:
    plain, key = harness.tables.plain, await counter(harness, at=stored)

    await write(harness, Tally(plain, key, {"n": 1}, latest={"at": "a"}))

    assert await counted(harness, key) == {**key, "at": stored, "n": 1}


async def test_a_number_at_its_limit_stays_and_the_rest_counts(harness: Harness) -> None:
    plain, largest = harness.tables.plain, int("9" * 38)
    key = await counter(harness, full=largest)

    await write(harness, Tally(plain, key, {"full": 2, "n": 1}), Tally(plain, key, {"n": largest - 1}))

    assert await counted(harness, key) == {**key, "full": largest, "n": largest}


async def test_an_item_that_is_full_stays_as_it_is(harness: Harness) -> None:
    plain, other = harness.tables.plain, await counter(harness)
    full = await counter(harness, n=1, value="x" * (400 * 1024 - 200))
    before = await harness.items.get(plain, full)

    await write(
        harness,
        Tally(plain, full, {"n": 1}, latest={"at": "x" * 1000}),
        Tally(plain, other, {"n": 1}),
    )

    assert await counted(harness, full) == before
    assert await counted(harness, other) == {**other, "n": 1}


# --- limits ----------------------------------------------------------------------------------------


async def test_ninety_nine_tallies_beside_a_write_are_taken(harness: Harness) -> None:
    table, partition = harness.tables.sorted, fresh()
    keys = [{"pk": partition, "sk": f"{n:02}"} for n in range(99)]
    await harness.items.write_many(table, [{**key} for key in keys])

    await write(harness, *(Tally(table, key, {"n": 1}) for key in keys))
    await harness.settle()

    assert only("n", await harness.items.get_many(table, keys)) == [1] * 99


@pytest.mark.parametrize(("writes", "tallies"), [(1, 100), (100, 1), (51, 50), (0, 1)])
async def test_with_no_write_or_more_than_a_hundred_in_all_a_transaction_is_rejected(
    harness: Harness, writes: int, tallies: int
) -> None:
    plain, key = harness.tables.plain, await counter(harness, n=1)
    keys = [{"id": fresh()} for _ in range(writes)]

    with pytest.raises(ItemRejected):
        await harness.items.transact(
            [*(Put(plain, {**each}) for each in keys), *[Tally(plain, key, {"n": 1})] * tallies]
        )

    assert await harness.items.get_many(plain, keys) == [None] * writes
    assert await counted(harness, key) == {**key, "n": 1}


async def test_a_write_after_a_tally_is_rejected(harness: Harness) -> None:
    plain, key, late = harness.tables.plain, await counter(harness), {"id": fresh()}

    with pytest.raises(ItemRejected):
        await harness.items.transact(
            [Put(plain, {"id": fresh()}), Tally(plain, key, {"n": 1}), Put(plain, {**late})]
        )

    assert await harness.items.get(plain, late) is None
    assert await counted(harness, key) == key


REJECTED: dict[str, tuple[object, ...]] = {
    "a key attribute is added to": ({"sk": 1},),
    "a key attribute moves forward": ({}, {"pk": "a"}),
    "a key attribute is asked for": ({"n": 1}, {}, {"pk": "a"}),
    "a wide attribute is added to": ({"body": 1},),
    "a wide attribute moves forward": ({}, {"body": "a"}),
    "a wide attribute is asked for": ({"n": 1}, {}, {"body": "a"}),
    "an index attribute is added to": ({"rank": 1},),
    "an index attribute becomes empty": ({}, {"rank": ""}),
    "an index attribute becomes too long": ({}, {"rank": "x" * 1025}),
    "an attribute is added to and moves forward": ({"a": 1}, {"a": "a"}),
    "an attribute is added to and asked for": ({"a": 1}, {}, {"a": "a"}),
    "an attribute moves forward and is asked for": ({}, {"a": "b"}, {"a": "a"}),
    "an attribute has no name": ({"": 1},),
    "a fraction is added": ({"n": 0.5},),
    "a truth is added": ({"n": True},),
    "39 digits are added": ({"n": 10**38},),
    "a number moves forward": ({}, {"a": 1}),
    "a number is asked for": ({"n": 1}, {}, {"a": 1}),
    "a text holds U+0000": ({}, {"a": "a\0b"}),
    "a text that is asked for holds U+0000": ({"n": 1}, {}, {"a": "\0"}),
    "a name holds U+0000": ({"a\0": 1},),
    "a text is no Unicode": ({}, {"a": "\ud800"}),
    "there are too many attributes": (dict.fromkeys(map(str, range(21)), 1),),
    "there is too much text": ({}, {"a": "x" * 65_536}),
}


@pytest.mark.parametrize("tally", REJECTED.values(), ids=REJECTED.keys())
async def test_a_tally_that_could_never_count_rejects_its_transaction(
    harness: Harness, tally: tuple[Any, ...]
) -> None:
    table, key, new = harness.tables.sorted, {"pk": fresh(), "sk": "a"}, {"id": fresh()}
    before: Item = {**key, "rank": "1", "a": "a", "body": "long"}
    await put_all(harness.items, table, before)

    with pytest.raises(ItemRejected):
        await harness.items.transact([Put(harness.tables.plain, {**new}), Tally(table, key, *tally)])

    await harness.settle()
    assert await harness.items.get(harness.tables.plain, new) is None
    assert await harness.items.get(table, key) == before


@pytest.mark.parametrize("key", [{}, {"pk": "a"}, {"pk": "a", "sk": ""}, {"pk": "a", "sk": "b", "c": "d"}])
async def test_a_tally_of_a_wrong_key_rejects_its_transaction(harness: Harness, key: dict[str, str]) -> None:
    new = {"id": fresh()}
    with pytest.raises(ItemRejected):
        await harness.items.transact(
            [Put(harness.tables.plain, {**new}), Tally(harness.tables.sorted, key, {"n": 1})]
        )
    assert await harness.items.get(harness.tables.plain, new) is None


async def test_texts_in_every_script_are_counted_by(harness: Harness) -> None:
    plain, odd = harness.tables.plain, "ä \U0001f600 \\u0000 \" ' {} : null 1e999"
    key = {"id": fresh() + odd}
    await put_all(harness.items, plain, {**key, odd: odd})

    await write(harness, Tally(plain, key, {odd + "n": 1}, {odd + "at": odd}, {odd: odd}))

    assert await counted(harness, key) == {**key, odd: odd, odd + "n": 1, odd + "at": odd}


async def test_one_tally_object_counts_as_often_as_it_is_sent(harness: Harness) -> None:
    plain, key = harness.tables.plain, await counter(harness)
    tally = Tally(plain, key, {"n": 2}, latest={"at": "a"})

    def another() -> Transaction:
        return [Put(plain, {"id": fresh()}), tally, Tally(plain, key, {"n": 10}), tally]

    assert_written(await harness.items.transact(another()))
    assert await harness.items.transact_many([another() for _ in range(20)]) == [Written()] * 20
    await asyncio.gather(*(harness.items.transact(another()) for _ in range(20)))

    assert await counted(harness, key) == {**key, "n": 41 * 14, "at": "a"}


async def test_a_transaction_with_tallies_may_be_sent_again_word_for_word(harness: Harness) -> None:
    plain, key = harness.tables.plain, await counter(harness)
    transaction: Transaction = [Put(plain, {"id": fresh()}), Tally(plain, key, {"n": 1})]

    for _ in range(3):
        assert_written(await harness.items.transact(transaction))

    assert await counted(harness, key) == {**key, "n": 3}
