"""A rendered condition holds in DynamoDB exactly when `conditions.holds` says so."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.contract.dynamodb.opening import Account

from crossdock.engines.items.conditions import (
    Absent,
    All,
    Always,
    AnyOf,
    Compare,
    Condition,
    Exists,
    Not,
    Operator,
    holds,
)
from crossdock.engines.items.dynamodb import DynamoClient, DynamoItems, create_tables
from crossdock.engines.items.port import Check, Item, Put, Refused, Table, Written

pytestmark = pytest.mark.dynamodb

TABLE = Table("things", partition="id", ttl="ends")
KEY = {"id": "a"}
LONG_AGO, FAR_AHEAD = 1_000_000_000, 4_000_000_000

# A key, a TTL, a plain name, and names that DynamoDB's own language would misread.
NAMES = st.sampled_from(["id", "ends", "n", "size", "a.b", "#x", ":y", "with space"])
SCALARS = st.sampled_from([None, True, False, 0, 1, 2, 1.5, -1, "", "a", "b", "ä", LONG_AGO, FAR_AHEAD])
LEAVES: st.SearchStrategy[Condition] = st.one_of(
    st.just(Always()),
    st.builds(Exists, NAMES),
    st.builds(Absent, NAMES),
    # DynamoDB takes no empty string to compare a key with.
    st.builds(Compare, NAMES.filter(lambda name: name != "id"), st.sampled_from(get_args(Operator)), SCALARS),
    st.builds(Compare, st.just("id"), st.sampled_from(get_args(Operator)), st.sampled_from(["a", "b", 1])),
)


def compound(inner: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
    several = st.lists(inner, max_size=3).map(tuple)
    return st.one_of(st.builds(Not, inner), st.builds(All, several), st.builds(AnyOf, several))


CONDITIONS = st.recursive(LEAVES, compound, max_leaves=6)
ATTRIBUTES = st.dictionaries(
    NAMES.filter(lambda name: name not in ("id", "ends")),
    SCALARS | st.just([1]) | st.just({"a": 1}),
    max_size=4,
)


@pytest.fixture(scope="module")
async def items(dynamodb_endpoint: str) -> AsyncIterator[DynamoItems]:
    account = Account(dynamodb_endpoint, "conditions")
    client: DynamoClient = account.client()
    await create_tables(client, [TABLE])
    await client.close()
    items = account.items(TABLE)
    yield items
    await items.close()


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    condition=CONDITIONS,
    attributes=st.none() | ATTRIBUTES,
    ends=st.sampled_from([None, LONG_AGO, FAR_AHEAD, "no number"]),
)
async def test_a_condition_holds_for_the_items_that_it_should(
    items: DynamoItems, condition: Condition, attributes: Item | None, ends: int | str | None
) -> None:
    stored: Item | None = None
    if attributes is None:
        await items.delete(TABLE, KEY)
    else:
        stored = {**attributes, **KEY} if ends is None else {**attributes, **KEY, "ends": ends}
        await items.put(TABLE, stored)
    current = None if ends == LONG_AGO else stored
    expected = holds(condition, current)

    checked = await items.transact([Check(TABLE, KEY, condition)])
    assert isinstance(checked, Written) is expected
    if isinstance(checked, Refused):
        assert checked.current == current

    replaced = await items.transact([Put(TABLE, {**KEY, "new": 1}, condition)])
    assert isinstance(replaced, Written) is expected
