"""Whatever is done to a backend, it answers as the model does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, TypedDict

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.contract.items.asking import eventually, everything
from tests.contract.items.harness import Harness
from tests.contract.items.model import Model
from tests.contract.items.tables import BY_OWNER, fresh

from crossdock.engines.items.conditions import (
    ALWAYS,
    Absent,
    Compare,
    Condition,
    Exists,
    Not,
    all_of,
    any_of,
)
from crossdock.engines.items.port import (
    Add,
    Change,
    Check,
    Delete,
    Item,
    Put,
    Query,
    Remove,
    Set,
    SetIfAbsent,
    Table,
    Tally,
    Update,
    Value,
    Write,
)

# A few items with a few values in two tables: so that writes meet.
SORTS = ("a", "b", "c")
TABLES = ("sorted", "expiring")
OWNERS = ("o1", "o2")
VALUES: dict[str, st.SearchStrategy[Value]] = {
    "n": st.integers(-2, 2),
    "text": st.sampled_from(["", "x", "y"]),
    "owner": st.sampled_from(OWNERS),
    "rank": st.sampled_from(["1", "2"]),
    "state": st.sampled_from(["on", "off"]),
    "body": st.sampled_from(["long", "longer"]),
    "expires_at": st.sampled_from(["past", "future"]),
}


@dataclass(frozen=True, slots=True)
class Step:
    """One write before it knows its tables: which kind, where, with what."""

    kind: str
    table: str
    sort: str
    attributes: dict[str, Value]
    changes: tuple[Change, ...]
    condition: Condition


@dataclass(frozen=True, slots=True)
class Count:
    """One tally before it knows its tables."""

    table: str
    sort: str
    add: dict[str, int]
    latest: dict[str, str]
    when: dict[str, str]


Call: TypeAlias = tuple[str, list[list[Step]], list[Count]]


def comparisons() -> st.SearchStrategy[Condition]:
    operators = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
    return st.one_of(
        st.builds(Compare, st.just("n"), operators, st.integers(-2, 2)),
        st.builds(Compare, st.just("text"), operators, st.sampled_from(["", "x", "y"])),
        st.builds(Exists, st.sampled_from(["pk", "n", "text", "rank"])),
        st.builds(Absent, st.sampled_from(["pk", "n", "text", "rank"])),
    )


def conditions() -> st.SearchStrategy[Condition]:
    composed = st.recursive(
        comparisons(),
        lambda inner: st.one_of(
            st.builds(Not, inner),
            st.lists(inner, max_size=3).map(lambda each: all_of(*each)),
            st.lists(inner, max_size=3).map(lambda each: any_of(*each)),
        ),
        max_leaves=4,
    )
    return st.one_of(st.just(ALWAYS), st.just(Absent("pk")), st.just(Exists("pk")), composed)


def changes_of(attribute: str) -> st.SearchStrategy[Change]:
    value = VALUES[attribute]
    kinds: list[st.SearchStrategy[Change]] = [
        st.builds(Set, st.just(attribute), value),
        st.builds(SetIfAbsent, st.just(attribute), value),
        st.just(Remove(attribute)),
    ]
    if attribute == "n":
        kinds.append(st.builds(Add, st.just(attribute), st.integers(-2, 2)))
    return st.one_of(kinds)


CHANGES = st.lists(
    st.sampled_from(list(VALUES)).flatmap(changes_of),
    min_size=1,
    max_size=3,
    unique_by=lambda change: change.attribute,
).map(tuple)

STEPS = st.builds(
    Step,
    kind=st.sampled_from(["put", "update", "update", "delete", "check"]),
    table=st.sampled_from(TABLES),
    sort=st.sampled_from(SORTS),
    attributes=st.fixed_dictionaries({}, optional=VALUES),
    changes=CHANGES,
    condition=conditions(),
)
# Nothing that is asked for is itself tallied, since tallies of one item are counted in any order.
COUNTS = st.builds(
    Count,
    table=st.sampled_from(TABLES),
    sort=st.sampled_from(SORTS),
    add=st.dictionaries(st.sampled_from(["n", "m", "text"]), st.integers(-2, 2), max_size=2),
    latest=st.dictionaries(st.sampled_from(["rank", "at"]), st.sampled_from(["0", "1", "3"])),
    when=st.dictionaries(st.just("state"), st.sampled_from(["on", "off"])),
)
TRANSACTIONS = st.lists(STEPS, min_size=1, max_size=3, unique_by=lambda step: (step.table, step.sort))
ONE = st.lists(STEPS, min_size=1, max_size=1)
NO_COUNTS: st.SearchStrategy[list[Count]] = st.just([])
CALLS: st.SearchStrategy[Call] = st.one_of(
    st.tuples(st.just("single"), st.lists(ONE, min_size=1, max_size=1), NO_COUNTS),
    st.tuples(
        st.just("transact"), st.lists(TRANSACTIONS, min_size=1, max_size=1), st.lists(COUNTS, max_size=3)
    ),
    st.tuples(st.just("transact_many"), st.lists(TRANSACTIONS, max_size=4), NO_COUNTS),
    st.tuples(st.just("write_many"), st.lists(ONE, max_size=4), NO_COUNTS),
)


class Run:
    """One life of the model beside the backend, on keys of its own."""

    def __init__(self, harness: Harness) -> None:
        self._items = harness.items
        self._settle = harness.settle
        self._tables: dict[str, Table] = {
            "sorted": harness.tables.sorted,
            "expiring": harness.tables.expiring,
        }
        self._now_seconds = harness.clock.now_seconds()
        self._model = Model(self._now_seconds)
        self._name = fresh("run")

    async def call(self, call: Call) -> None:
        kind, steps, counts = call
        transactions = [[self._write(step) for step in transaction] for transaction in steps]
        if kind == "write_many":
            await self._write_many(transactions)
        elif kind == "transact_many":
            expected = [self._model.transact(writes) for writes in transactions]
            assert _kinds(await self._items.transact_many(transactions)) == _kinds(expected)
        elif kind == "transact":
            transaction = [*transactions[0], *map(self._tally, counts)]
            found = await self._items.transact(transaction)
            if counts:
                await self._settle()
            assert _kinds([found]) == _kinds([self._model.transact(transaction)])
        else:
            await self._single(transactions[0][0])

    async def compare(self) -> None:
        for table in self._tables.values():
            for sort in SORTS:
                key = {"pk": self._name, "sk": sort}
                assert await self._items.get(table, key) == self._model.get(table, key)
            for descending in (False, True):
                query = Query(table, self._name, descending=descending, limit=2)
                assert await everything(self._items, query) == self._model.query(
                    table, self._name, descending
                )

    async def compare_indexes(self) -> None:
        for table in self._tables.values():
            for owner in OWNERS:
                partition = str(self._localised("owner", owner))

                async def read(table: Table = table, partition: str = partition) -> list[Item]:
                    query = Query(table, partition, index=BY_OWNER, limit=2)
                    return _by_rank(await everything(self._items, query))

                await eventually(read, _by_rank(self._model.index(table, BY_OWNER, partition)))

    async def _single(self, write: Write) -> None:
        expected = self._model.transact([write])
        match write:
            case Put(table, item, condition):
                found = await self._items.put(table, item, condition)
            case Update(table, key, changes, condition):
                found = await self._items.update(table, key, *changes, condition=condition)
            case Delete(table, key, condition):
                found = await self._items.delete(table, key, condition)
            case Check():
                found = await self._items.transact([write])
        assert found == expected

    async def _write_many(self, transactions: list[list[Write]]) -> None:
        puts = [write for [write] in transactions if isinstance(write, Put)]
        for table in self._tables.values():
            ours = [put.item for put in puts if put.table == table]
            for item in ours:
                self._model.transact([Put(table, item)])
            await self._items.write_many(table, ours)

    def _write(self, step: Step) -> Write:
        table, key = self._tables[step.table], {"pk": self._name, "sk": step.sort}
        if step.kind == "put":
            item = {name: self._localised(name, value) for name, value in step.attributes.items()}
            return Put(table, {**key, **item}, step.condition)
        if step.kind == "update":
            return Update(table, key, tuple(self._change(change) for change in step.changes), step.condition)
        if step.kind == "delete":
            return Delete(table, key, step.condition)
        return Check(table, key, step.condition)

    def _tally(self, count: Count) -> Tally:
        key = {"pk": self._name, "sk": count.sort}
        return Tally(self._tables[count.table], key, count.add, count.latest, count.when)

    def _change(self, change: Change) -> Change:
        if isinstance(change, (Set, SetIfAbsent)):
            return type(change)(change.attribute, self._localised(change.attribute, change.value))
        return change

    def _localised(self, attribute: str, value: Value) -> Value:
        if attribute == "owner":
            return f"{self._name}-{value}"
        if attribute == "expires_at":
            return self._now_seconds + (-3600 if value == "past" else 3600)
        return value


def _kinds(outcomes: object) -> list[str]:
    """Outcomes without `Written.item`, which only single writes promise."""
    assert isinstance(outcomes, list)
    return [
        type(outcome).__name__
        + repr([(failure.position, _sorted(failure.current)) for failure in getattr(outcome, "failures", ())])
        for outcome in outcomes
    ]


def _sorted(item: Item | None) -> object:
    return None if item is None else sorted(item.items())


def _by_rank(items: list[Item]) -> list[Item]:
    """Among equal ranks an index has an order of its own."""
    assert [item["rank"] for item in items] == sorted(str(item["rank"]) for item in items)
    return sorted(items, key=lambda item: (str(item["rank"]), str(item["sk"])))


class Budget(TypedDict):
    deadline: None
    report_multiple_bugs: bool
    suppress_health_check: list[HealthCheck]
    phases: list[Phase]


# Each try is a conversation with a server: one failure, made small, is enough.
BUDGET: Budget = {
    "deadline": None,
    "report_multiple_bugs": False,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
    "phases": [Phase.reuse, Phase.generate, Phase.shrink],
}


async def live(harness: Harness, calls: list[Call]) -> None:
    run = Run(harness)
    for call in calls:
        await run.call(call)
    await run.compare()
    await run.compare_indexes()


@settings(max_examples=15, **BUDGET)
@given(calls=st.lists(CALLS, max_size=8))
async def test_a_backend_answers_as_the_model_does(harness: Harness, calls: list[Call]) -> None:
    await live(harness, calls)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@settings(max_examples=4000, **BUDGET)
@given(calls=st.lists(CALLS, min_size=15, max_size=25))
async def test_a_backend_answers_as_the_model_does_for_long(harness: Harness, calls: list[Call]) -> None:
    await live(harness, calls)
