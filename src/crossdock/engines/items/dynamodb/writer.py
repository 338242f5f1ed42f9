"""Single writes and transactions.

A single write that DynamoDB may or may not have applied is `OutcomeUnknown`: sending it again could undo what
somebody wrote in between. A transaction carries a token and is sent again, which DynamoDB recognises.

An update of an expired item that is still there takes two steps: the update refuses to build on it, then a
put of what the update makes of an absent item takes its place, provided that it is still expired. If somebody
was faster, the update is tried again.

Tallies become one more put, of a record that `tally_folder` counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from crossdock.engines.items.apply import Place, changed, narrow, place_of
from crossdock.engines.items.conditions import ALWAYS
from crossdock.engines.items.dynamodb.batch_writer import BatchWriter
from crossdock.engines.items.dynamodb.cancellations import Cancellation, read_cancellation
from crossdock.engines.items.dynamodb.client import ATTEMPTS_MAX, DynamoClient, Reply
from crossdock.engines.items.dynamodb.errors import ServiceError, domain_error, unavailable
from crossdock.engines.items.dynamodb.expiry import is_expired
from crossdock.engines.items.dynamodb.marshal import marshal, unmarshal
from crossdock.engines.items.dynamodb.requests import (
    Request,
    check_item,
    check_transaction,
    replacing_request,
    write_request,
)
from crossdock.engines.items.dynamodb.tally_records import recording
from crossdock.engines.items.port import (
    Delete,
    Item,
    Outcome,
    Put,
    Refused,
    Tally,
    Transaction,
    Update,
    Write,
    Written,
)
from crossdock.engines.items.tallies import divided
from crossdock.kit.clock import Clock
from crossdock.kit.errors import CrossdockError
from crossdock.kit.ids import Random, uuid4_text

TRANSACTIONS_AT_ONCE = 32

_CALLS = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem"}
_RETURNED = {"Update": "ALL_NEW", "Delete": "ALL_OLD"}
_NOTHING: frozenset[int] = frozenset()


class Writer:
    def __init__(
        self, client: DynamoClient, batches: BatchWriter, clock: Clock, random: Random, table_prefix: str
    ) -> None:
        self._client = client
        self._batches = batches
        self._clock = clock
        self._random = random
        self._table_prefix = table_prefix

    async def transact(self, transaction: Transaction) -> Outcome:
        writes, tallies = divided(transaction)
        check_transaction(writes)
        if tallies:
            writes = (*writes, recording(tallies, self._clock.now_ms(), self._random))
        first = writes[0]
        if len(writes) == 1 and isinstance(first, Put) and first.condition is ALWAYS:
            await self._batches.put(first.table, first.item)
            return Written()
        return await self._commit(writes)

    async def transact_many(self, transactions: Sequence[Transaction]) -> list[Outcome | CrossdockError]:
        """Side by side, except that a transaction waits for earlier ones that name an item of its own."""
        seats = asyncio.Semaphore(TRANSACTIONS_AT_ONCE)
        last_at: dict[Place, asyncio.Task[Outcome | CrossdockError]] = {}
        tasks: list[asyncio.Task[Outcome | CrossdockError]] = []
        for transaction in transactions:
            writes = [each for each in transaction if not isinstance(each, Tally)]
            places = [place for place in map(_place, writes) if place is not None]
            earlier = {last_at[place] for place in places if place in last_at}
            task = asyncio.create_task(self._transact_after(earlier, transaction, seats))
            tasks.append(task)
            last_at.update(dict.fromkeys(places, task))
        return list(await asyncio.gather(*tasks))

    async def _transact_after(
        self,
        earlier: set[asyncio.Task[Outcome | CrossdockError]],
        transaction: Transaction,
        seats: asyncio.Semaphore,
    ) -> Outcome | CrossdockError:
        if earlier:
            await asyncio.wait(earlier)
        try:
            async with seats:
                return await self.transact(transaction)
        except CrossdockError as error:
            return error

    async def _commit(self, writes: Sequence[Write]) -> Outcome:
        replaced = _NOTHING
        reason = ""
        for attempt in range(1, ATTEMPTS_MAX + 1):
            now_seconds = self._clock.now_ms() // 1000
            try:
                reply = await self._send(self._requests(writes, replaced, now_seconds))
            except ServiceError as error:
                reasons = _cancellation_reasons(error)
                if reasons is None:
                    raise domain_error(error) from error
                cancellation = read_cancellation(writes, reasons, replaced, now_seconds)
                _raise_defect(cancellation, error)
                reason = error.internal
            else:
                return Written(_result(writes, replaced, reply, now_seconds))
            # A busy item hides whether its own condition holds: an answer should name every failure.
            if cancellation.failures and (not cancellation.is_passing or attempt == ATTEMPTS_MAX):
                return Refused(cancellation.failures)
            replaced = (replaced - cancellation.outdated) | cancellation.replaceable
            if cancellation.is_passing and attempt < ATTEMPTS_MAX:
                await self._client.pause(attempt)
        raise unavailable(reason, busy=True)

    def _requests(
        self, writes: Sequence[Write], replaced: frozenset[int], now_seconds: int
    ) -> list[tuple[str, Request]]:
        requests: list[tuple[str, Request]] = []
        for position, write in enumerate(writes):
            name = self._table_prefix + write.table.name
            if position in replaced and isinstance(write, Update):
                check_item(write.table, changed(None, write.key, write.changes))
                requests.append(replacing_request(write, name, now_seconds))
            else:
                requests.append(write_request(write, name, now_seconds))
        return requests

    async def _send(self, requests: Sequence[tuple[str, Request]]) -> Reply:
        kind, request = requests[0]
        if len(requests) == 1 and kind in _CALLS:
            if kind in _RETURNED:
                request["ReturnValues"] = _RETURNED[kind]
            return await self._client.call(_CALLS[kind], request, repeatable=False)
        return await self._client.call(
            "TransactWriteItems",
            {
                "TransactItems": [{kind: request} for kind, request in requests],
                "ClientRequestToken": uuid4_text(self._random),
            },
            repeatable=True,
        )


def _place(write: Write) -> Place | None:
    """None for a write without a whole key, which is refused when its turn comes."""
    try:
        return place_of(write)
    except KeyError:
        return None


def _cancellation_reasons(error: ServiceError) -> Sequence[Mapping[str, Any]] | None:
    """A single write's failed condition reads like a transaction's with one reason."""
    if error.service_code == "ConditionalCheckFailedException":
        return [{"Code": "ConditionalCheckFailed", "Item": error.body.get("Item")}]
    if error.service_code == "TransactionCanceledException":
        reasons: Sequence[Mapping[str, Any]] | None = error.body.get("CancellationReasons")
        return reasons
    return None


def _raise_defect(cancellation: Cancellation, error: ServiceError) -> None:
    if cancellation.defect is not None:
        code, message = cancellation.defect
        raise domain_error(
            ServiceError("TransactWriteItems", error.status, code, message, error.body)
        ) from error


def _result(writes: Sequence[Write], replaced: frozenset[int], reply: Reply, now_seconds: int) -> Item | None:
    """What a lone update or delete tells its caller."""
    write = writes[0]
    if len(writes) > 1 or not isinstance(write, (Update, Delete)):
        return None
    if isinstance(write, Update) and replaced:
        # As it will be read: 1.0 comes back as 1.
        return narrow(write.table, unmarshal(marshal(changed(None, write.key, write.changes))))
    attributes = reply.get("Attributes")
    item = unmarshal(attributes) if attributes else None
    if item is None or (isinstance(write, Delete) and is_expired(write.table, item, now_seconds)):
        return None
    return narrow(write.table, item)
