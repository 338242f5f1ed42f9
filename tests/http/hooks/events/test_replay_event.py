"""One event sent again: to whom, as what, once, and with counts that stay right."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.support.asgi_client import AsgiClient
from tests.support.hooks_engine import accepted
from tests.support.hooks_events import Reading, replay, replay_path, replayed
from tests.support.receiver import Receiver

from crossdock.hooks.model import Delivery, DeliveryState, Event, EventStatus, Status
from crossdock.hooks.rules.replaying import generation_of
from crossdock.hooks.store.connections import connection_changed, connection_deleted, connection_paused
from crossdock.hooks.store.deliveries import parked
from crossdock.hooks.store.events import shard_of
from crossdock.hooks.store.sources import source_deleted

NOWHERE = "http://127.0.0.1:1/"
STATES = list(DeliveryState)


def orders_over(amount: int) -> list[Any]:
    return [{"on": "body", "match": {"amount": {"$gt": amount}}}]


async def places(reading: Reading, event: Event | str) -> list[str]:
    """Where its deliveries wait to be taken."""
    event_id = event if isinstance(event, str) else event.event_id
    return sorted(
        str(item["GSI2SK"]).split("#")[2]
        for item in await reading.world.due()
        if event_id in str(item["GSI2SK"])
    )


# --- what it does ----------------------------------------------------------------------------------


async def test_a_delivered_event_is_sent_again_byte_for_byte_and_says_that_it_is_a_replay(
    reading: Reading, receiver: Receiver
) -> None:
    source = await reading.world.source()
    connection = await reading.world.connection(source, receiver.url)
    event_id = await accepted(reading.node, source, b'{"amount":  7}')
    await reading.node.settled()
    reading.clock.advance(seconds=60)
    answer = await replayed(reading, event_id)
    assert answer == {
        "event_id": event_id,
        "replay_id": answer["replay_id"],
        "generation": generation_of(answer["replay_id"], reading.now_ms),
        "connections": [connection.connection_id],
    }
    [waiting] = await reading.recount(source)
    assert waiting.status is EventStatus.PROCESSING
    await reading.node.work_off()
    first, again = receiver.got
    assert (again.body, again.message_id) == (first.body, event_id)
    assert "crossdock-replay" not in first.headers
    assert again.headers["crossdock-replay"] == answer["generation"]
    [delivered] = await reading.recount(source)
    assert delivered.status is EventStatus.DELIVERED
    attempts = await reading.world.attempts(event_id)
    assert [(each.attempt_number, each.generation) for each in attempts] == [
        (1, ""),
        (1, answer["generation"]),
    ]
    await reading.world.counted()
    assert (await reading.world.stored_connection(connection)).delivery_count == 2


@pytest.mark.parametrize("state", [state for state in STATES if state is not DeliveryState.CANCELLED])
async def test_a_delivery_in_any_state_begins_anew(reading: Reading, state: DeliveryState) -> None:
    source = await reading.world.source()
    connection = await reading.world.connection(source, NOWHERE)
    event = await reading.event(
        source, {connection.connection_id: state, "conn_gone": DeliveryState.CANCELLED}
    )
    answer = await replayed(reading, event, connection)
    [found] = await reading.recount(source)
    assert (found.status, found.counts) == (EventStatus.PROCESSING, {"open": 1})
    assert await reading.delivery(event, connection) == Delivery(
        event_id=event.event_id,
        connection_id=connection.connection_id,
        source_id=source.source_id,
        user_id=source.user_id,
        received_at=event.received_at,
        expires_at=event.expires_at,
        state=DeliveryState.PENDING,
        next_attempt_at=reading.now_ms,
        fence=1,
        generation=answer["generation"],
    )
    assert await places(reading, event) == [connection.connection_id]


async def test_a_replay_that_fails_is_retried_by_the_schedule_from_its_beginning(
    reading: Reading, receiver: Receiver
) -> None:
    source = await reading.world.source()
    connection = await reading.world.connection(
        source, receiver.url, retry_config={"schedule_seconds": [0, 10]}
    )
    receiver.status = 500
    event_id = await accepted(reading.node, source)
    await reading.node.settled()
    reading.clock.advance(seconds=11)
    await reading.node.work_off()
    assert (await reading.recount(source))[0].status is EventStatus.FAILED
    for expected in (EventStatus.FAILED, EventStatus.DELIVERED):
        receiver.status = 500
        generation = (await replayed(reading, event_id))["generation"]
        await reading.node.work_off()
        assert (await reading.recount(source))[0].status is EventStatus.RETRYING
        receiver.status = 500 if expected is EventStatus.FAILED else 200
        reading.clock.advance(seconds=11)
        await reading.node.work_off()
        assert (await reading.recount(source))[0].status is expected
        attempts = await reading.world.attempts(event_id)
        ours = [each.attempt_number for each in attempts if each.generation == generation]
        assert sorted(ours) == [1, 2]
    delivery = await reading.delivery(event_id, connection)
    assert (delivery.attempts, delivery.state) == (2, DeliveryState.DELIVERED)


async def test_without_a_name_the_filters_of_all_live_connections_are_asked_again(reading: Reading) -> None:
    world, source = reading.world, await reading.world.source()
    matching = await world.connection(source, NOWHERE, filters=orders_over(5))
    other = await world.connection(source, NOWHERE, filters=orders_over(50))
    late = await world.connection(source, NOWHERE)
    gone = await world.connection(source, NOWHERE)
    await reading.items.transact([connection_deleted(gone, "")])
    states = {
        matching.connection_id: DeliveryState.FILTERED,
        other.connection_id: DeliveryState.DELIVERED,
        gone.connection_id: DeliveryState.CANCELLED,
    }
    event = await reading.event(source, states, body=b'{"amount": 7}')
    answer = await replayed(reading, event)
    assert set(answer["connections"]) == {matching.connection_id, late.connection_id}
    found = {each.connection_id: each for each in await world.deliveries(event.event_id)}
    assert {each: record.state.value for each, record in found.items()} == {
        matching.connection_id: "pending",
        late.connection_id: "pending",
        other.connection_id: "delivered",
        gone.connection_id: "cancelled",
    }
    assert found[late.connection_id].generation == answer["generation"]
    [recounted] = await reading.recount(source)
    assert recounted.counts == {"open": 2, "delivered": 1}


async def test_a_connection_whose_filters_do_not_match_gets_the_event_when_it_is_named(
    reading: Reading, receiver: Receiver
) -> None:
    source = await reading.world.source()
    connection = await reading.world.connection(source, receiver.url, filters=orders_over(50))
    event_id = await accepted(reading.node, source, b'{"amount": 7}')
    await reading.node.settled()
    assert (await reading.recount(source))[0].status is EventStatus.FILTERED
    refused = await replay(reading, event_id)
    assert (refused.status, refused.code) == (409, "nothing_to_replay")
    assert (await replayed(reading, event_id, connection))["connections"] == [connection.connection_id]
    await reading.node.work_off()
    assert receiver.ids() == [event_id]
    assert (await reading.recount(source))[0].status is EventStatus.DELIVERED


async def test_a_connection_made_a_moment_ago_gets_the_event(reading: Reading) -> None:
    source = await reading.world.source()
    await reading.world.connection(source, NOWHERE)
    event = await reading.event(source)
    assert len((await replayed(reading, event))["connections"]) == 1
    late = await reading.world.connection(source, NOWHERE)
    reading.clock.advance(ms=1)
    assert (await replayed(reading, event, late))["connections"] == [late.connection_id]
    reading.clock.advance(ms=1)
    assert len((await replayed(reading, event))["connections"]) == 2
    await reading.recount(source)


@pytest.mark.parametrize("why", ["paused", "limited"])
async def test_a_connection_that_may_not_be_called_just_now_gets_the_event_when_it_may(
    reading: Reading, receiver: Receiver, why: str
) -> None:
    source = await reading.world.source()
    more = {"max_in_flight": 1} if why == "limited" else {}
    connection = await reading.world.connection(source, receiver.url, **more)
    event = await reading.event(source, {connection.connection_id: DeliveryState.DELIVERED})
    if why == "paused":
        await reading.items.transact([connection_paused(connection, "asked", "")])
    await replayed(reading, event)
    assert (await reading.delivery(event, connection)).state is DeliveryState.HELD
    assert await places(reading, event) == []
    page = await reading.items.query(parked(connection.connection_id, shard_of(event.event_id), 10))
    assert len(page.items) == 1
    if why == "paused":
        stored = await reading.world.stored_connection(connection)
        resumed = msgspec.structs.replace(stored, status=Status.ACTIVE, paused_reason=None)
        await reading.items.transact([connection_changed(stored, resumed)])
        reading.clock.advance(seconds=2)
    await reading.node.work_off()
    assert receiver.ids() == [event.event_id]
    assert (await reading.recount(source))[0].status is EventStatus.DELIVERED


async def test_a_replay_to_an_ordered_connection_is_due_to_anybody(reading: Reading) -> None:
    source = await reading.world.source()
    connection = await reading.world.connection(source, NOWHERE, ordered=True)
    event = await reading.event(source, {connection.connection_id: DeliveryState.HELD})
    await replayed(reading, event)
    assert (await reading.delivery(event, connection)).state is DeliveryState.PENDING
    assert await places(reading, event) == [connection.connection_id]


async def test_fifty_connections_begin_anew_in_one_go(reading: Reading) -> None:
    source = await reading.world.source()
    connections = [await reading.world.connection(source, NOWHERE) for _ in range(50)]
    states = {each.connection_id: STATES[n % len(STATES)] for n, each in enumerate(connections[:40])}
    event = await reading.event(source, states)
    answer = await replay(reading, event, headers={"idempotency-key": "fifty"})
    assert set(answer.json()["connections"]) == {each.connection_id for each in connections}
    assert (await reading.recount(source))[0].counts == {"open": 50}


# --- what is refused -------------------------------------------------------------------------------


async def test_an_event_about_to_go_is_not_replayed(reading: Reading) -> None:
    source = await reading.world.source()
    await reading.world.connection(source, NOWHERE)
    event = await reading.event(source, expires_at=reading.now_ms // 1000 + 59)
    answer = await replay(reading, event)
    assert (answer.status, answer.code) == (409, "event_expiring")
    gone = await reading.event(source, expires_at=reading.now_ms // 1000)
    answer = await replay(reading, gone)
    assert (answer.status, answer.code) == (404, "event_not_found")


async def test_there_is_nobody_to_replay_to_without_a_live_connection(reading: Reading) -> None:
    source = await reading.world.source()
    event = await reading.event(source)
    assert (await replay(reading, event)).code == "nothing_to_replay"
    connection = await reading.world.connection(source, NOWHERE)
    await reading.items.transact([connection_deleted(connection, "")])
    assert (await replay(reading, event)).code == "nothing_to_replay"
    named = await replay(reading, event, connection)
    assert (named.status, named.code) == (404, "connection_not_found")
    await reading.items.transact([source_deleted(source, 0)])
    assert (await replay(reading, event)).code == "nothing_to_replay"
    assert (await replay(reading, event, connection)).code == "connection_not_found"


async def test_a_connection_of_another_source_is_not_there(reading: Reading) -> None:
    source, another = await reading.world.source(), await reading.world.source()
    await reading.world.connection(source, NOWHERE)
    elsewhere = await reading.world.connection(another, NOWHERE)
    event = await reading.event(source)
    answer = await replay(reading, event, elsewhere)
    assert (answer.status, answer.code) == (404, "connection_not_found")


@pytest.mark.parametrize(
    ("body", "status", "code", "fields"),
    [
        (b"", 400, "body_required", None),
        (b"{", 400, "malformed_json", None),
        (b'{"connection_id": 7}', 422, "invalid_input", [("connection_id", "wrong_type")]),
        (b'{"connection": "conn_1"}', 422, "invalid_input", [("connection", "unknown_field")]),
        (b'{"connection_id": "nothing"}', 404, "connection_not_found", None),
        (b'{"connection_id": "%s"}' % (b"x" * 65), 422, "invalid_input", [("connection_id", "wrong_length")]),
    ],
)
async def test_a_body_that_is_no_replay_is_refused(
    reading: Reading, body: bytes, status: int, code: str, fields: list[tuple[str, str]] | None
) -> None:
    source = await reading.world.source()
    await reading.world.connection(source, NOWHERE)
    event = await reading.event(source)
    answer = await reading.owner.request("POST", replay_path(event), body=body)
    assert (answer.status, answer.code) == (status, code)
    if fields is not None:
        assert answer.fields == fields


async def test_only_who_may_change_an_event_that_is_theirs_replays_it(lagging: Reading) -> None:
    source = await lagging.world.source()
    await lagging.world.connection(source, NOWHERE)
    event = await lagging.event(source)

    async def status(client: AsgiClient) -> int:
        return (await client.post(replay_path(event), {})).status

    assert await status(lagging.operator.with_key(None)) == 401
    assert await status(lagging.client(source.user_id, "read")) == 403
    assert await status(lagging.client(await lagging.world.user())) == 404
    assert (await lagging.owner.post(replay_path("evt_0123456789abcdef"), {})).code == "event_not_found"
    assert await status(lagging.owner) == 201
    assert await status(lagging.operator) == 201
