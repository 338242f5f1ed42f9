"""What is rejected before it is sent, and what is sent."""

from typing import Any

import pytest

from crossdock.engines.items.conditions import Absent, Exists
from crossdock.engines.items.dynamodb.requests import (
    check_transaction,
    replacing_request,
    write_request,
)
from crossdock.engines.items.port import (
    Add,
    Check,
    Delete,
    Index,
    ItemRejected,
    Put,
    Remove,
    Set,
    SetIfAbsent,
    Table,
    Update,
    Write,
)

PLAIN = Table("plain", partition="id", indexes=(Index("by_owner", "owner"),), wide=("body",))
EXPIRING = Table("expiring", partition="id", ttl="ends")
KEY = {"id": "a"}


@pytest.mark.parametrize(
    "write",
    [
        Put(PLAIN, {"id": ""}),
        Put(PLAIN, {"other": "a"}),
        Put(PLAIN, {"id": "a", "owner": 1}),
        Put(PLAIN, {"id": "a", "body": 1}),
        Put(PLAIN, {"id": "a", "n": float("nan")}),
        Update(PLAIN, {"id": "a", "more": "b"}, ()),
        Update(PLAIN, KEY, (Set("n", 1), Remove("n"))),
        Update(PLAIN, KEY, (Set("id", "b"),)),
        Update(PLAIN, KEY, (Remove("id"),)),
        Update(PLAIN, KEY, (Set("owner", ""),)),
        Update(PLAIN, KEY, (SetIfAbsent("owner", None),)),
        Update(PLAIN, KEY, (Add("owner", 1),)),
        Update(PLAIN, KEY, (Set("body", {"a": 1}),)),
        Update(PLAIN, KEY, (Set("text", "x" * 500_000),)),
        Delete(PLAIN, {}),
        Check(PLAIN, {"id": "x" * 3000}, Exists("id")),
    ],
    ids=repr,
)
def test_a_write_that_breaks_a_limit_is_rejected(write: Write) -> None:
    with pytest.raises(ItemRejected):
        check_transaction([write])


@pytest.mark.parametrize(
    "writes",
    [
        [],
        [Put(PLAIN, {"id": str(n)}) for n in range(101)],
        [Put(PLAIN, {"id": "a"}), Delete(PLAIN, KEY)],
        [Check(PLAIN, KEY, Exists("id")), Update(PLAIN, KEY, ())],
    ],
    ids=["none", "101", "an item twice", "checked and updated"],
)
def test_a_transaction_has_1_to_100_writes_each_of_another_item(writes: list[Write]) -> None:
    with pytest.raises(ItemRejected):
        check_transaction(writes)


def test_one_key_in_two_tables_is_two_items() -> None:
    check_transaction([Put(PLAIN, {"id": "a"}), Put(EXPIRING, {"id": "a"})])


@pytest.mark.parametrize(
    ("write", "kind", "request_without_placeholders"),
    [
        (Put(PLAIN, {"id": "a", "n": 1}), "Put", {"Item": {"id": {"S": "a"}, "n": {"N": "1"}}}),
        (Delete(PLAIN, KEY), "Delete", {"Key": {"id": {"S": "a"}}}),
        (Update(PLAIN, KEY, ()), "Update", {"Key": {"id": {"S": "a"}}}),
        (
            Update(PLAIN, KEY, (Set("n", 1),)),
            "Update",
            {"Key": {"id": {"S": "a"}}, "UpdateExpression": "SET #n0 = :v0"},
        ),
        (
            Check(PLAIN, KEY, Exists("n")),
            "ConditionCheck",
            {"Key": {"id": {"S": "a"}}, "ConditionExpression": "attribute_exists(#n0)"},
        ),
        (
            Put(EXPIRING, {"id": "a"}, Absent("id")),
            "Put",
            {"Item": {"id": {"S": "a"}}, "ConditionExpression": "(#n1 < :v0 OR attribute_not_exists(#n0))"},
        ),
    ],
    ids=repr,
)
def test_a_write_is_sent_as(write: Any, kind: str, request_without_placeholders: dict[str, Any]) -> None:
    found, request = write_request(write, "prefix-name", 99)
    for part in (
        "ExpressionAttributeNames",
        "ExpressionAttributeValues",
        "ReturnValuesOnConditionCheckFailure",
    ):
        request.pop(part, None)
    assert found == kind
    assert request == {"TableName": "prefix-name", **request_without_placeholders}


def test_a_condition_asks_for_the_item_that_it_met() -> None:
    assert write_request(Put(PLAIN, {"id": "a"}, Absent("id")), "t", 0)[1][
        "ReturnValuesOnConditionCheckFailure"
    ]
    assert "ReturnValuesOnConditionCheckFailure" not in write_request(Put(PLAIN, {"id": "a"}), "t", 0)[1]


def test_an_expired_item_is_replaced_by_what_the_update_makes_of_an_absent_one() -> None:
    changes = (Add("n", 2), SetIfAbsent("kept", "x"), Remove("gone"))
    kind, request = replacing_request(Update(EXPIRING, KEY, changes), "t", 99)
    assert kind == "Put"
    assert request["Item"] == {"id": {"S": "a"}, "n": {"N": "2"}, "kept": {"S": "x"}}
    assert request["ConditionExpression"] == "#n0 < :v0"
    assert request["ExpressionAttributeNames"] == {"#n0": "ends"}
    assert request["ExpressionAttributeValues"] == {":v0": {"N": "100"}}
