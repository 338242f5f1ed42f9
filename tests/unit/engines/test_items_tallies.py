"""Tallies as they are added up and counted: what they come to does not depend on who counts them together."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.engines.items.apply import changed
from crossdock.engines.items.conditions import Absent
from crossdock.engines.items.port import (
    Add,
    Index,
    Item,
    ItemRejected,
    Put,
    Set,
    Table,
    Tally,
    Transaction,
    Update,
)
from crossdock.engines.items.postgres.layout import Layout
from crossdock.engines.items.postgres.prepared import prepare
from crossdock.engines.items.tallies import Counted, counted, divided, encode_tallies, summed

TABLE = Table("things", partition="id", indexes=(Index("by_rank", "rank"),), wide=("body",))
KEY = {"id": "a"}
PLACE = ("things", ("a",))
PUT = Put(TABLE, {"id": "b"}, Absent("id"))
TALLY = Tally(TABLE, KEY, {"n": 1}, {"at": "x"}, {"state": "on"})


def count(item: Item | None, *tallies: Tally) -> Counted:
    return counted(TABLE, item, summed(tallies)[PLACE])


def after(item: Item, *tallies: Tally) -> Item:
    return changed(item, KEY, count(item, *tallies).changes)


TALLIES = st.builds(
    Tally,
    table=st.just(TABLE),
    key=st.just(KEY),
    add=st.dictionaries(st.sampled_from(["n", "m", "odd"]), st.integers(-5, 5)),
    latest=st.dictionaries(st.sampled_from(["at", "last"]), st.text("ab\u00e4\U0001f600", max_size=2)),
    when=st.dictionaries(st.just("state"), st.sampled_from(["on", "off"])),
)
STORED = st.fixed_dictionaries(
    {"id": st.just("a"), "odd": st.sampled_from(["text", True, None])},
    optional={
        "n": st.integers(-5, 5),
        "at": st.text("ab", max_size=2),
        "last": st.integers(),
        "state": st.sampled_from(["on", "off"]),
    },
)


@given(item=STORED, tallies=st.lists(TALLIES, min_size=1, max_size=6), cut=st.integers(0, 6))
def test_tallies_come_to_the_same_however_they_are_grouped_and_ordered(
    item: Item, tallies: list[Tally], cut: int
) -> None:
    one_by_one = item
    for tally in tallies:
        one_by_one = after(one_by_one, tally)

    in_two = item
    for part in (tallies[:cut], tallies[cut:]):
        in_two = after(in_two, *part) if part else in_two

    assert after(item, *tallies) == after(item, *reversed(tallies)) == in_two == one_by_one


def test_a_tally_that_is_named_as_often_as_you_like_counts_as_often() -> None:
    assert count({**KEY, "state": "on"}, *[TALLY] * 3, replace(TALLY, add={"n": 4})).changes == (
        Add("n", 7),
        Set("at", "x"),
    )


def test_what_was_asked_for_and_found_is_told_with_the_changes() -> None:
    item: Item = {**KEY, "state": "on"}
    result = count(item, TALLY, replace(TALLY, when={}), replace(TALLY, when={"state": "off"}))
    assert result.held == ((("state", "on"),), ())
    assert result.changes == (Add("n", 2), Set("at", "x"))


@pytest.mark.parametrize("item", [None, {**KEY, "state": "off"}, {**KEY}])
def test_nothing_is_changed_in_an_item_that_is_absent_or_not_as_asked_for(item: Item | None) -> None:
    assert count(item, TALLY) == Counted()


def test_an_attribute_that_one_tally_adds_to_and_another_moves_forward_is_a_number() -> None:
    result = count({**KEY}, Tally(TABLE, KEY, {"x": 1}), Tally(TABLE, KEY, {}, latest={"x": "text"}))
    assert (result.changes, result.refused) == ((Add("x", 1),), ("x",))


def test_a_full_item_takes_nothing() -> None:
    item: Item = {**KEY, "value": "x" * 300_000}
    long = Tally(TABLE, KEY, {"n": 1}, latest={"at": "x" * 1000})
    assert counted(TABLE, item, summed([long])[PLACE], 80_000).refused == ()
    assert counted(TABLE, item, summed([long])[PLACE], 109_000) == Counted((), ((),), ("n", "at"))


# --- before they are sent --------------------------------------------------------------------------


def test_a_transaction_is_divided_into_writes_and_tallies() -> None:
    assert divided([PUT]) == ((PUT,), ())
    assert divided([PUT, TALLY, TALLY]) == ((PUT,), (TALLY, TALLY))
    halves: Transaction = [*[PUT] * 50, *[TALLY] * 51]
    wrongs: list[Transaction] = [[], [TALLY], [TALLY, PUT], [PUT, TALLY, PUT], halves]
    for wrong in wrongs:
        with pytest.raises(ItemRejected):
            divided(wrong)


def test_a_mapping_need_not_be_a_dict() -> None:
    given = replace(TALLY, key=MappingProxyType(KEY), add=MappingProxyType({"n": 1}))
    assert encode_tallies([given]) == encode_tallies([TALLY])


def test_every_tally_is_checked_though_an_equal_one_was() -> None:
    for _ in range(2):
        assert encode_tallies([TALLY, TALLY])
        with pytest.raises(ItemRejected):
            encode_tallies([TALLY, replace(TALLY, add={"rank": 1})])
        with pytest.raises(ItemRejected):
            encode_tallies([TALLY, replace(TALLY, latest={"at": "a\0"})])


@pytest.mark.parametrize("count", [1, 99])
def test_plain_puts_with_tallies_are_still_plain_puts(count: int) -> None:
    """Only these are written by one INSERT."""
    layouts = {TABLE.name: Layout(TABLE)}
    assert prepare([PUT, *[TALLY] * count], layouts).inserts == prepare([PUT], layouts).inserts
    assert prepare([PUT], layouts).inserts is not None
    assert prepare([Update(TABLE, KEY, (Add("n", 1),)), TALLY], layouts).inserts is None


def test_tallies_have_weight() -> None:
    layouts = {TABLE.name: Layout(TABLE)}
    long = replace(TALLY, latest={"at": "x" * 1000})
    assert prepare([PUT, long], layouts).weight_bytes > prepare([PUT, TALLY], layouts).weight_bytes + 900
