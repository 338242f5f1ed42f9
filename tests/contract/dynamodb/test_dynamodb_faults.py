"""When DynamoDB or the way to it fails: nothing is done twice, and no success is invented."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.contract.dynamodb.opening import Account
from tests.contract.dynamodb.proxy import (
    Fault,
    Proxy,
    damaged_answer,
    error,
    error_after_the_fact,
    gateway_page,
    half_of_a_batch_read,
    half_of_a_batch_write,
    lost_answer,
    none_of_a_batch_write,
)
from tests.support.ports import free_port

from crossdock.engines.items.conditions import Absent
from crossdock.engines.items.dynamodb import DynamoClient, DynamoItems, Target, create_tables
from crossdock.engines.items.dynamodb.signing import Credentials
from crossdock.engines.items.port import (
    Add,
    Item,
    OutcomeUnknown,
    Put,
    Query,
    Refused,
    Table,
    Update,
    Written,
)
from crossdock.kit.clock import SystemClock
from crossdock.kit.errors import Unavailable

pytestmark = pytest.mark.dynamodb

TABLE = Table("things", partition="id")
KEY = {"id": "a"}

THROTTLED = error("ProvisionedThroughputExceededException")
CONFLICT = error("TransactionConflictException")
CANCELLED_BY_CONFLICT = error(
    "TransactionCanceledException", CancellationReasons=[{"Code": "TransactionConflict"}, {"Code": "None"}]
)


@pytest.fixture
async def items(account: Account, proxy: Proxy, client: DynamoClient) -> AsyncIterator[DynamoItems]:
    """By way of the proxy."""
    await create_tables(client, [TABLE])
    items = account.items(TABLE, endpoint=proxy.endpoint)
    yield items
    await items.close()


async def count_of(items: DynamoItems) -> object:
    found = await items.get(TABLE, KEY)
    return None if found is None else found.get("n")


@pytest.mark.parametrize("fault", [lost_answer, error_after_the_fact])
async def test_a_write_that_may_have_happened_is_never_called_a_success_nor_done_again(
    items: DynamoItems, proxy: Proxy, fault: Fault
) -> None:
    proxy.next("UpdateItem", fault)

    with pytest.raises(OutcomeUnknown):
        await items.update(TABLE, KEY, Add("n", 1))

    assert await count_of(items) == 1
    assert proxy.count("UpdateItem") == 1


async def test_a_put_that_may_have_happened_is_not_repeated_over_what_others_wrote_since(
    items: DynamoItems, proxy: Proxy
) -> None:
    proxy.next("PutItem", lost_answer)
    with pytest.raises(OutcomeUnknown):
        await items.put(TABLE, {**KEY, "n": 1})

    proxy.next("BatchWriteItem", error_after_the_fact)
    with pytest.raises(OutcomeUnknown):
        await items.write_many(TABLE, [{"id": "b"}, {"id": "c"}])

    assert (proxy.count("PutItem"), proxy.count("BatchWriteItem")) == (1, 1)


@pytest.mark.parametrize("fault", [lost_answer, error_after_the_fact])
async def test_a_transaction_is_repeated_and_counts_once(
    items: DynamoItems, proxy: Proxy, fault: Fault
) -> None:
    proxy.next("TransactWriteItems", fault, fault)

    outcome = await items.transact(
        [Update(TABLE, KEY, (Add("n", 1),)), Put(TABLE, {"id": "b"}, Absent("id"))]
    )

    assert outcome == Written()
    assert await count_of(items) == 1
    tokens = [
        body["ClientRequestToken"] for operation, body in proxy.seen if operation == "TransactWriteItems"
    ]
    assert len(tokens) == 3
    assert len(set(tokens)) == 1


async def test_two_transactions_have_two_tokens(items: DynamoItems, proxy: Proxy) -> None:
    for _ in range(2):
        await items.transact([Update(TABLE, KEY, (Add("n", 1),)), Put(TABLE, {"id": "b"})])

    assert await count_of(items) == 2
    assert (
        len(
            {
                body["ClientRequestToken"]
                for operation, body in proxy.seen
                if operation == "TransactWriteItems"
            }
        )
        == 2
    )


async def test_a_transaction_whose_answers_stay_lost_is_unknown(items: DynamoItems, proxy: Proxy) -> None:
    proxy.next("TransactWriteItems", lost_answer, *[THROTTLED] * 20)
    with pytest.raises(OutcomeUnknown):
        await items.transact([Put(TABLE, {"id": "a"}), Put(TABLE, {"id": "b"})])


@pytest.mark.parametrize("fault", [THROTTLED, CONFLICT, gateway_page], ids=["throttle", "conflict", "503"])
async def test_a_write_that_surely_did_not_happen_is_sent_again(
    items: DynamoItems, proxy: Proxy, fault: Fault
) -> None:
    proxy.next("UpdateItem", fault, fault, fault)
    await items.update(TABLE, KEY, Add("n", 1))
    assert await count_of(items) == 1


async def test_a_throttle_that_does_not_end_is_unavailable_and_says_when_to_try_again(
    items: DynamoItems, proxy: Proxy
) -> None:
    proxy.next("UpdateItem", *[THROTTLED] * 50)
    with pytest.raises(Unavailable) as raised:
        await items.update(TABLE, KEY, Add("n", 1))
    assert not isinstance(raised.value, OutcomeUnknown)
    assert raised.value.retry_after_seconds
    assert proxy.count("UpdateItem") < 20


async def test_a_transaction_in_conflict_is_tried_again(items: DynamoItems, proxy: Proxy) -> None:
    proxy.next("TransactWriteItems", CANCELLED_BY_CONFLICT, CANCELLED_BY_CONFLICT)
    assert await items.transact([Put(TABLE, {"id": "a"}), Put(TABLE, {"id": "b"})]) == Written()


async def test_a_conflict_beside_a_failed_condition_hides_no_other_failure(
    items: DynamoItems, proxy: Proxy
) -> None:
    """The answer names every condition that did not hold, so the busy item is asked again."""
    await items.write_many(TABLE, [{"id": "a"}, {"id": "b"}])
    proxy.next(
        "TransactWriteItems",
        error(
            "TransactionCanceledException",
            CancellationReasons=[{"Code": "TransactionConflict"}, {"Code": "ConditionalCheckFailed"}],
        ),
    )

    outcome = await items.transact([Put(TABLE, {"id": name}, Absent("id")) for name in "ab"])

    assert isinstance(outcome, Refused)
    assert [failure.position for failure in outcome.failures] == [0, 1]


@pytest.mark.parametrize(
    "fault", [lost_answer, error_after_the_fact, damaged_answer, gateway_page, THROTTLED]
)
async def test_a_read_is_repeated_whatever_happened(items: DynamoItems, proxy: Proxy, fault: Fault) -> None:
    await items.put(TABLE, {**KEY, "n": 1})
    for operation in ("GetItem", "BatchGetItem", "Query"):
        proxy.next(operation, fault, fault)

    assert await items.get(TABLE, KEY) == {**KEY, "n": 1}
    assert await items.get_many(TABLE, [KEY, {"id": "b"}]) == [{**KEY, "n": 1}, None]
    assert (await items.query(Query(TABLE, "a"))).items == [{**KEY, "n": 1}]


async def test_what_a_batch_left_unprocessed_is_written_all_the_same(
    items: DynamoItems, proxy: Proxy
) -> None:
    proxy.next("BatchWriteItem", *[half_of_a_batch_write] * 8)
    rows: list[Item] = [{"id": f"{n:02}", "n": n} for n in range(60)]

    await items.write_many(TABLE, rows)

    assert await items.get_many(TABLE, [{"id": f"{n:02}"} for n in range(60)]) == rows


async def test_what_a_batch_left_unread_is_read_all_the_same(items: DynamoItems, proxy: Proxy) -> None:
    rows: list[Item] = [{"id": f"{n:03}", "n": n} for n in range(150)]
    await items.write_many(TABLE, rows)
    proxy.next("BatchGetItem", *[half_of_a_batch_read] * 6)

    assert await items.get_many(TABLE, [{"id": f"{n:03}"} for n in range(150)]) == rows


async def test_a_batch_of_which_nothing_is_taken_is_given_up(items: DynamoItems, proxy: Proxy) -> None:
    proxy.next("BatchWriteItem", *[none_of_a_batch_write] * 50)
    with pytest.raises(Unavailable):
        await items.write_many(TABLE, [{"id": "a"}, {"id": "b"}])
    assert proxy.count("BatchWriteItem") < 20


async def test_with_nothing_listening_a_write_is_unavailable_and_surely_not_written(account: Account) -> None:
    items = account.items(TABLE, endpoint=f"http://127.0.0.1:{free_port()}")
    with pytest.raises(Unavailable) as raised:
        await items.update(TABLE, KEY, Add("n", 1))
    await items.close()
    assert not isinstance(raised.value, OutcomeUnknown)


async def test_expired_credentials_are_asked_for_anew(
    account: Account, proxy: Proxy, client: DynamoClient
) -> None:
    await create_tables(client, [TABLE])
    source = RenewedCredentials(account.access_key)
    renewing = DynamoClient(Target("eu-central-1", proxy.endpoint), source, SystemClock(), lambda: 0.0)
    proxy.next("GetItem", error("ExpiredTokenException"))

    reply = await renewing.call(
        "GetItem", {"TableName": "things", "Key": {"id": {"S": "a"}}}, repeatable=True
    )

    await renewing.close()
    assert reply == {}
    assert source.given == ["expired", "renewed"]


class RenewedCredentials:
    def __init__(self, access_key: str) -> None:
        self.given: list[str] = []
        self._access_key = access_key
        self._token = "expired"

    async def current(self) -> Credentials:
        self.given.append(self._token)
        return Credentials(self._access_key, "secret", self._token)

    def forget(self) -> None:
        self._token = "renewed"
