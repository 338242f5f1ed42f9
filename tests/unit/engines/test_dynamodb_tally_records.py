"""The records that tallies wait in, and how many of them go into one transaction."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.engines.items.dynamodb.requests import check_item
from crossdock.engines.items.dynamodb.tally_records import (
    SHARDS,
    TALLIES,
    Record,
    TableUnknown,
    batches,
    record_of,
    recording,
)
from crossdock.engines.items.port import Table, Tally

PLAIN = Table("plain", partition="id")
SORTED = Table("sorted", partition="pk", sort="sk")
TABLES = {table.name: table for table in (PLAIN, SORTED)}
NOW_MS = 1_795_000_000_000


def on(*numbers: int) -> Record:
    """A record that counts into these items."""
    return Record("0", "t", tuple(Tally(PLAIN, {"id": str(number)}, {"n": 1}) for number in numbers))


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=5)


@given(
    key=st.fixed_dictionaries({"pk": TEXTS, "sk": TEXTS}),
    add=st.dictionaries(TEXTS.map("a".__add__), st.integers(-(10**38) + 1, 10**38 - 1), max_size=3),
    latest=st.dictionaries(TEXTS.map("l".__add__), TEXTS, max_size=3),
    when=st.dictionaries(TEXTS.map("w".__add__), TEXTS, max_size=3),
)
def test_a_record_brings_back_the_tallies_that_went_into_it(
    key: dict[str, str], add: dict[str, int], latest: dict[str, str], when: dict[str, str]
) -> None:
    tallies = Tally(SORTED, key, add, latest, when), Tally(PLAIN, {"id": "a"}, {"n": 1})

    put = recording(tallies, NOW_MS, os.urandom)

    check_item(TALLIES, put.item)
    record = record_of(put.item, TABLES)
    assert record.tallies == tallies
    assert record.removal().key == TALLIES.key_of(put.item)


def test_the_largest_tallies_that_are_taken_fit_into_a_record() -> None:
    keys = [{"id": f"{number:02}" + "\U0001f600" * 60} for number in range(99)]
    put = recording([Tally(PLAIN, key, {"n": 1}, {"at": "x" * 200}) for key in keys], NOW_MS, os.urandom)
    check_item(TALLIES, put.item)


def test_records_spread_over_the_shards_and_sort_by_their_time() -> None:
    tally = Tally(PLAIN, {"id": "a"}, {"n": 1})
    puts = [recording([tally], NOW_MS + number, os.urandom) for number in range(400)]
    assert {put.item["shard"] for put in puts} == set(SHARDS)
    times = [put.item["at"] for put in puts]
    assert times == sorted(times, key=str)
    assert len(set(times)) == 400


def test_a_record_of_an_unknown_table_is_told_apart() -> None:
    put = recording([Tally(SORTED, {"pk": "a", "sk": "b"}, {"n": 1})], NOW_MS, os.urandom)
    with pytest.raises(TableUnknown, match="sorted"):
        record_of(put.item, {"plain": PLAIN})


@pytest.mark.parametrize(
    ("records", "sizes"),
    [
        ([], []),
        ([on(1)] * 99, [99]),
        ([on(1)] * 100, [99, 1]),
        ([on(1, 2)] * 99, [98, 1]),
        ([on(*range(99))] * 2, [1, 1]),
        ([on(number) for number in range(120)], [50, 50, 20]),
        ([on(1), on(*range(99)), on(1)], [1, 1, 1]),
    ],
)
def test_a_transaction_holds_as_many_records_and_items_as_fit(
    records: list[Record], sizes: list[int]
) -> None:
    found = list(batches(records))
    assert [len(batch) for batch in found] == sizes
    assert [record for batch in found for record in batch] == records
    assert all(len(batch) + len(set().union(*(record.places for record in batch))) <= 100 for batch in found)
