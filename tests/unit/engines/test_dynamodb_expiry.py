"""When an item has expired, and which stream records say so."""

from typing import Any

import pytest

from crossdock.engines.items.dynamodb.expiry import expiry_of, is_expired
from crossdock.engines.items.dynamodb.marshal import marshal
from crossdock.engines.items.port import Expired, Item, Table

TABLE = Table("events", partition="id", ttl="ends", stream=True)
NOW = 1000


@pytest.mark.parametrize(
    ("ends", "expired"),
    [
        *((999, True), (1000, True), (1000.9, True), (0, True), (-5, True), (1001, False)),
        *(("1", False), (True, False), (None, False), ([1], False)),
    ],
)
def test_an_item_expires_in_the_second_that_it_names(ends: Any, expired: bool) -> None:
    assert is_expired(TABLE, {"id": "a", "ends": ends}, NOW) is expired


def test_without_a_time_or_a_ttl_nothing_expires() -> None:
    assert not is_expired(TABLE, {"id": "a"}, NOW)
    assert not is_expired(Table("plain", partition="id"), {"id": "a", "ends": 1}, NOW)


def record(name: str, old: Item | None, *, by_ttl: bool = False, at: float = NOW) -> dict[str, Any]:
    change: dict[str, Any] = {"ApproximateCreationDateTime": at, "SequenceNumber": "1"}
    if old is not None:
        change["OldImage"] = marshal(old)
    found: dict[str, Any] = {"eventID": "e1", "eventName": name, "dynamodb": change}
    if by_ttl:
        found["userIdentity"] = {"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com"}
    return found


PAST: Item = {"id": "a", "n": 1, "ends": NOW}
FUTURE: Item = {"id": "a", "ends": NOW + 1}


@pytest.mark.parametrize("name", ["MODIFY", "REMOVE"])
def test_an_item_that_left_after_its_time_has_expired_whoever_removed_it(name: str) -> None:
    assert expiry_of(TABLE, record(name, PAST)) == Expired("events:e1", TABLE, PAST)
    assert expiry_of(TABLE, record(name, PAST, at=NOW + 0.5)) is not None


@pytest.mark.parametrize(
    "found",
    [
        record("INSERT", None),
        record("MODIFY", FUTURE),
        record("REMOVE", FUTURE),
        record("REMOVE", {"id": "a"}),
        record("REMOVE", {"id": "a", "ends": "1"}),
    ],
)
def test_what_left_before_its_time_has_not_expired(found: dict[str, Any]) -> None:
    assert expiry_of(TABLE, found) is None


def test_what_the_ttl_removed_has_expired_even_if_its_record_carries_an_earlier_time() -> None:
    event = expiry_of(TABLE, record("REMOVE", PAST, by_ttl=True, at=NOW - 60))
    assert event is not None
    assert event.item == PAST


def test_the_same_record_has_the_same_id_each_time() -> None:
    first, again = (expiry_of(TABLE, record("REMOVE", PAST)) for _ in range(2))
    assert first is not None
    assert again is not None
    assert first.event_id == again.event_id
