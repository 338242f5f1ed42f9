"""The reasons of a cancelled transaction, one at a time."""

from typing import Any

import pytest

from crossdock.engines.items.conditions import ALWAYS, Absent, Condition, Exists
from crossdock.engines.items.dynamodb.cancellations import Cancellation, read_cancellation
from crossdock.engines.items.dynamodb.marshal import marshal
from crossdock.engines.items.port import Add, Check, Delete, Failure, Item, Put, Table, Update, Write

TABLE = Table("events", partition="id", ttl="ends", wide=("body",))
NOW = 1000

LIVING: Item = {"id": "a", "n": 1, "ends": NOW + 1}
EXPIRED: Item = {"id": "a", "n": 1, "ends": NOW}

FINE: dict[str, Any] = {"Code": "None"}
BUSY: dict[str, Any] = {"Code": "TransactionConflict"}


def failed(item: Item | None) -> dict[str, Any]:
    reason: dict[str, Any] = {"Code": "ConditionalCheckFailed"}
    return reason if item is None else {**reason, "Item": marshal(item)}


def put() -> Put:
    return Put(TABLE, {"id": "a"}, Absent("id"))


def update(condition: Condition = ALWAYS) -> Update:
    return Update(TABLE, {"id": "a"}, (Add("n", 1),), condition)


def read(*pairs: tuple[Write, dict[str, Any]], replaced: frozenset[int] = frozenset()) -> Cancellation:
    return read_cancellation([write for write, _ in pairs], [reason for _, reason in pairs], replaced, NOW)


def test_every_failed_condition_is_named_with_the_item_as_it_stood() -> None:
    found = read(
        (put(), failed(LIVING)), (put(), FINE), (Delete(TABLE, {"id": "a"}, Exists("id")), failed(None))
    )
    assert found.failures == (Failure(0, LIVING), Failure(2, None))
    assert not found.is_passing
    assert found.defect is None


def test_an_expired_item_is_told_as_absent() -> None:
    assert read((Check(TABLE, {"id": "a"}, Exists("id")), failed(EXPIRED))).failures == (Failure(0, None),)


def test_wide_attributes_are_left_out() -> None:
    assert read((put(), failed({**LIVING, "body": "long"}))).failures == (Failure(0, LIVING),)


def test_an_update_that_met_an_expired_item_and_holds_for_an_absent_one_is_no_failure() -> None:
    found = read((update(), failed(EXPIRED)))
    assert found.failures == ()
    assert found.replaceable == {0}


def test_an_update_that_needs_the_item_fails_on_an_expired_one() -> None:
    found = read((update(Exists("n")), failed(EXPIRED)))
    assert found.failures == (Failure(0, None),)
    assert found.replaceable == frozenset()


@pytest.mark.parametrize("stored", [LIVING, None], ids=["living again", "gone"])
def test_a_replacement_that_came_too_late_is_an_update_again(stored: Item | None) -> None:
    found = read((update(), failed(stored)), replaced=frozenset({0}))
    assert found.failures == ()
    assert found.outdated == {0}


@pytest.mark.parametrize("code", ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"])
def test_a_busy_item_is_told_apart_from_a_failed_condition(code: str) -> None:
    found = read((put(), {"Code": code}), (put(), failed(LIVING)))
    assert found.is_passing
    assert found.failures == (Failure(1, LIVING),)


def test_any_other_reason_is_a_defect_of_the_transaction() -> None:
    found = read((put(), BUSY), (put(), {"Code": "ValidationError", "Message": "incorrect data type"}))
    assert found.defect == ("ValidationError", "incorrect data type")
