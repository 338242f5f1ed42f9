"""From an ingest to its end: what is stored on the way, on both stores."""

from __future__ import annotations

import json

from standardwebhooks import Webhook
from tests.support.hooks_engine import HooksNode, HooksWorld, accepted, send
from tests.support.receiver import Receiver

from crossdock.hooks.model import DeliveryState, EventStatus
from crossdock.kit.clock import rfc3339


async def test_an_event_is_kept_delivered_and_signed(
    world: HooksWorld, node: HooksNode, receiver: Receiver
) -> None:
    source = await world.source()
    connection = await world.connection(source, receiver.url)
    body = b'{"type": "order.paid", "amount": 12.50}'
    event_id = await accepted(
        node, source, body, headers={"content-type": "application/json", "x-shop": "berlin"}
    )
    await node.settled()

    [got] = receiver.got
    assert got.body == body
    assert got.headers["x-shop"] == "berlin"
    assert got.headers["content-type"] == "application/json"
    assert got.message_id == event_id
    world_time = {**got.headers, "webhook-timestamp": got.headers["webhook-timestamp"]}
    Webhook(world.secrets[connection.connection_id]).verify(got.body, world_time)

    event = await world.event(source, event_id)
    assert event.status is EventStatus.DELIVERED
    assert (event.body, event.path, event.method) == (body, "", "POST")
    assert event.delivered_at is not None
    [delivery] = await world.deliveries(event_id)
    assert (delivery.state, delivery.attempts) == (DeliveryState.DELIVERED, 1)
    [attempt] = await world.attempts(event_id)
    assert (attempt.attempt_number, attempt.status_code, attempt.response_body) == (1, 200, "noted")
    assert await world.attempt_keys(event_id) == [f"ATT#01#{connection.connection_id}"]
    assert await world.due() == []


async def test_counts_agree_with_a_recount(world: HooksWorld, node: HooksNode, receiver: Receiver) -> None:
    source = await world.source()
    connection = await world.connection(source, receiver.url)
    for number in range(20):
        await accepted(node, source, json.dumps({"n": number}).encode())
    await node.settled()
    await world.counted()
    assert await world.check_counts(source) == {"delivered": 20}
    assert await world.usage() == 20
    stored = await world.stored_source(source)
    assert (stored.event_count, stored.last_event_at) == (20, rfc3339(world.clock.now_ms()))
    assert (await world.stored_connection(connection)).delivery_count == 20


async def test_a_failing_destination_is_called_again_on_schedule_until_it_is_mended(
    world: HooksWorld, node: HooksNode, receiver: Receiver
) -> None:
    source = await world.source()
    await world.connection(source, receiver.url, retry_config={"schedule_seconds": [0, 5, 300]})
    receiver.status = 500
    event_id = await accepted(node, source)
    await node.settled()
    assert (await world.event(source, event_id)).status is EventStatus.RETRYING
    await node.work_off()
    assert len(receiver.got) == 1, "it was called again at once"
    world.clock.advance(seconds=5)
    await node.work_off()
    assert len(receiver.got) == 2
    receiver.status = 200
    world.clock.advance(seconds=299)
    await node.work_off()
    assert len(receiver.got) == 2, "it was called before its time"
    world.clock.advance(seconds=1)
    await node.work_off()
    assert len(receiver.got) == 3
    assert (await world.event(source, event_id)).status is EventStatus.DELIVERED
    assert [each.status_code for each in await world.attempts(event_id)] == [500, 500, 200]
    assert [each.attempt_number for each in await world.attempts(event_id)] == [1, 2, 3]


async def test_attempts_used_up_end_it_as_failed(
    world: HooksWorld, node: HooksNode, receiver: Receiver
) -> None:
    source = await world.source()
    connection = await world.connection(source, receiver.url, retry_config={"schedule_seconds": [0, 1]})
    receiver.status = 503
    event_id = await accepted(node, source)
    await node.settled()
    world.clock.advance(seconds=2)
    await node.work_off()
    [delivery] = await world.deliveries(event_id)
    assert (delivery.state, delivery.reason) == (DeliveryState.EXHAUSTED, "attempts_exhausted")
    assert (await world.event(source, event_id)).status is EventStatus.FAILED
    await world.counted()
    assert (await world.stored_connection(connection)).failure_count == 1
    assert await world.due() == []


async def test_filters_are_asked_once_for_each_connection(
    world: HooksWorld, node: HooksNode, receiver: Receiver
) -> None:
    source = await world.source()
    wants = [{"on": "body", "match": {"type": "order.paid"}}]
    paid = await world.connection(source, receiver.url, filters=wants)
    everything = await world.connection(source, receiver.url)
    event_id = await accepted(node, source, b'{"type": "order.sent"}')
    await node.settled()
    states = {each.connection_id: each.state for each in await world.deliveries(event_id)}
    assert states == {
        paid.connection_id: DeliveryState.FILTERED,
        everything.connection_id: DeliveryState.DELIVERED,
    }
    assert (await world.event(source, event_id)).status is EventStatus.DELIVERED
    await world.counted()
    await world.check_counts(source)


async def test_an_event_that_nobody_wants_is_filtered(
    world: HooksWorld, node: HooksNode, receiver: Receiver
) -> None:
    source = await world.source()
    await world.connection(source, receiver.url, filters=[{"on": "body", "match": {"type": "x"}}])
    nobody = await world.source()
    for each in (source, nobody):
        event_id = await accepted(node, each)
        await node.settled()
        await node.work_off()
        assert (await world.event(each, event_id)).status is EventStatus.FILTERED
    assert receiver.got == []
    assert await world.due() == []


async def test_one_event_goes_to_every_connection_and_each_fails_alone(
    world: HooksWorld, node: HooksNode, receiver: Receiver
) -> None:
    source = await world.source()
    for _ in range(5):
        await world.connection(source, receiver.url)
    broken = await world.connection(source, "http://127.0.0.1:9/hook", retry_config={"schedule_seconds": [0]})
    event_id = await accepted(node, source)
    await node.settled()
    states = {each.connection_id: each.state for each in await world.deliveries(event_id)}
    assert states.pop(broken.connection_id) is DeliveryState.EXHAUSTED
    assert set(states.values()) == {DeliveryState.DELIVERED}
    assert receiver.ids() == [event_id] * 5
    assert (await world.event(source, event_id)).status is EventStatus.FAILED
    await world.counted()
    await world.check_counts(source)


async def test_a_transform_that_fails_ends_its_delivery_without_a_call(
    world: HooksWorld, node: HooksNode, receiver: Receiver
) -> None:
    source = await world.source()
    await world.connection(source, receiver.url, transform=[{"move": {"from": "a", "to": "b"}}])
    event_id = await accepted(node, source, b"no json")
    await node.settled()
    [delivery] = await world.deliveries(event_id)
    assert delivery.state is DeliveryState.FAILED
    assert "step 1 (move)" in str(delivery.reason)
    assert receiver.got == []
    assert await world.attempts(event_id) == []


async def test_a_transformed_body_is_what_is_signed_and_sent(
    world: HooksWorld, node: HooksNode, receiver: Receiver
) -> None:
    source = await world.source()
    connection = await world.connection(source, receiver.url, transform=[{"set": {"seen": True}}])
    await accepted(node, source, b'{"n": 1}')
    await node.settled()
    [got] = receiver.got
    assert json.loads(got.body) == {"n": 1, "seen": True}
    Webhook(world.secrets[connection.connection_id]).verify(got.body, dict(got.headers))


async def test_a_repeated_delivery_id_is_a_duplicate_and_goes_out_once(
    world: HooksWorld, node: HooksNode, receiver: Receiver
) -> None:
    source = await world.source(dedup={"header": "x-delivery"})
    await world.connection(source, receiver.url)
    first = await accepted(node, source, headers={"x-delivery": "7"})
    again = await send(node, source, b"other", headers={"x-delivery": "7"})
    assert (again.status, again.json()["event_id"]) == (200, first)
    other = await accepted(node, source, headers={"x-delivery": "8"})
    await node.settled()
    await world.counted()
    assert sorted(receiver.ids()) == sorted([first, other])
    assert await world.usage() == 2


async def test_what_a_dead_process_held_is_taken_over_and_its_calls_are_on_record(
    world: HooksWorld, receiver: Receiver
) -> None:
    source = await world.source()
    connection = await world.connection(source, receiver.url)
    dead = await world.node()
    dead.engine.acceptance._hand_over = lambda job: None  # it is killed before its call
    event_id = await accepted(dead, source)
    alive = await world.node()
    await alive.work_off()
    assert receiver.got == [], "its lease was not respected"
    world.clock.advance(seconds=61)
    await alive.work_off()
    assert receiver.ids() == [event_id]
    keys, attempts = await world.attempt_keys(event_id), await world.attempts(event_id)
    assert keys == [f"ATT#01#{connection.connection_id}", f"ATT#01#{connection.connection_id}#i0"]
    assert [(each.status_code, each.attempt_number) for each in attempts] == [(200, 1), (0, 1)]
    assert str(attempts[1].error).startswith("interrupted")
    assert (await world.event(source, event_id)).status is EventStatus.DELIVERED
