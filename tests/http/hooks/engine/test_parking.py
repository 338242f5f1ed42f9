"""Connections that may not be called just so: paused, failing, limited, deleted; and what waits for them."""

from __future__ import annotations

import asyncio

from tests.support.hooks_engine import HooksNode, HooksWorld, accepted
from tests.support.receiver import Receiver
from tests.support.waiting import eventually

from crossdock.delivery import breaker
from crossdock.engines.items.port import Remove, Set
from crossdock.hooks.model import Connection, DeliveryState, EventStatus, Status
from crossdock.hooks.settings import HooksSettings
from crossdock.hooks.store.tables import MAIN, connection_key


async def set_status(world: HooksWorld, connection: Connection, status: Status) -> None:
    key = connection_key(connection.source_id, connection.connection_id)
    await world.items.update(MAIN, key, Set("status", status.value), Remove("breaker"))
    world.clock.advance(seconds=2)  # what is kept of it is old by then


async def test_deliveries_wait_while_their_connection_is_paused_and_go_when_it_is_resumed(
    world: HooksWorld, node: HooksNode, receiver: Receiver
) -> None:
    source = await world.source()
    connection = await world.connection(source, receiver.url, status=Status.PAUSED)
    event_ids = [await accepted(node, source) for _ in range(3)]
    await node.settled()
    await node.work_off()
    assert receiver.got == []
    assert {(await world.event(source, each)).status for each in event_ids} == {EventStatus.PROCESSING}
    assert await world.due() == [], "what is parked is in nobody's way"
    await set_status(world, connection, Status.ACTIVE)
    await node.work_off()
    assert sorted(receiver.ids()) == sorted(event_ids)
    assert await world.check_counts(source) == {"delivered": 3}


async def test_a_pause_uses_up_no_attempt(world: HooksWorld, node: HooksNode, receiver: Receiver) -> None:
    source = await world.source()
    connection = await world.connection(source, receiver.url, retry_config={"schedule_seconds": [0, 5]})
    receiver.status = 500
    event_id = await accepted(node, source)
    await node.settled()
    await set_status(world, connection, Status.PAUSED)
    world.clock.advance(seconds=10)
    await node.work_off()
    [delivery] = await world.deliveries(event_id)
    assert (delivery.state, delivery.attempts) == (DeliveryState.HELD, 1)
    receiver.status = 200
    await set_status(world, connection, Status.ACTIVE)
    await node.work_off()
    [delivery] = await world.deliveries(event_id)
    assert (delivery.state, delivery.attempts) == (DeliveryState.DELIVERED, 2)


async def test_ten_failures_open_the_circuit_and_one_probe_closes_it(
    world: HooksWorld, node: HooksNode, receiver: Receiver
) -> None:
    source = await world.source()
    connection = await world.connection(source, receiver.url, retry_config={"schedule_seconds": [0, 1, 1, 1]})
    receiver.status = 500
    for _ in range(10):
        await accepted(node, source)
        await node.settled()
    calls = len(receiver.got)
    assert calls == 10
    world.clock.advance(seconds=2)
    await accepted(node, source)
    await node.settled()
    await node.work_off()
    assert len(receiver.got) == calls, "it was called while its circuit was open"
    receiver.status = 200
    world.clock.advance(seconds=60)
    receiver.delay_seconds = 0.05
    await node.engine.parking.look()
    await node.settled()
    assert receiver.in_flight_max == 1, "there was more than one probe"
    world.clock.advance(seconds=2)
    for _ in range(4):
        await node.work_off()
        world.clock.advance(seconds=2)
    assert await world.check_counts(source) == {"delivered": 11}
    stored = await world.stored_connection(connection)
    assert stored.breaker in (None, {}), stored.breaker


async def test_five_days_of_failures_pause_the_connection_and_say_so(
    world: HooksWorld, node: HooksNode, receiver: Receiver
) -> None:
    source = await world.source()
    days_ago_ms = world.clock.now_ms() - 5 * 86_400_000
    state = {
        "consecutive_failures": 50,
        "failing_since_ms": days_ago_ms,
        "last_failed_ms": world.clock.now_ms() - 1000,
        "times_opened": 9,
        "opened_at_ms": world.clock.now_ms() - 1000,
        "open_until_ms": world.clock.now_ms() - 500,
    }
    connection = await world.connection(source, receiver.url, breaker=state)
    receiver.status = 500
    await accepted(node, source)
    await node.settled()
    await node.work_off()
    stored = await world.stored_connection(connection)
    assert len(receiver.got) == 1
    assert stored.status is Status.PAUSED
    assert stored.paused_reason == "Every call has failed for five days."


async def test_410_pauses_the_connection(world: HooksWorld, node: HooksNode, receiver: Receiver) -> None:
    source = await world.source()
    connection = await world.connection(source, receiver.url)
    receiver.status = 410
    event_id = await accepted(node, source)
    await node.settled()
    [delivery] = await world.deliveries(event_id)
    assert (delivery.state, delivery.reason) == (DeliveryState.EXHAUSTED, "gone")
    assert (await world.stored_connection(connection)).status is Status.PAUSED


async def test_calls_at_a_time_stay_within_the_connections_limit(
    world: HooksWorld, node: HooksNode, receiver: Receiver
) -> None:
    source = await world.source()
    await world.connection(source, receiver.url, max_in_flight=2)
    receiver.delay_seconds = 0.03
    event_ids = [await accepted(node, source) for _ in range(12)]
    for _ in range(20):
        await node.work_off()
        world.clock.advance(seconds=2)
    assert sorted(receiver.ids()) == sorted(event_ids)
    assert receiver.in_flight_max == 2


async def test_calls_in_a_while_stay_within_the_connections_rate(
    world: HooksWorld, node: HooksNode, receiver: Receiver
) -> None:
    source = await world.source()
    await world.connection(source, receiver.url, rate_limit={"requests": 3, "per_seconds": 10})
    for _ in range(7):
        await accepted(node, source)
    await node.settled()
    reached = []
    for _ in range(3):
        await node.work_off()
        reached.append(len(receiver.got))
        world.clock.advance(seconds=11)
    assert reached == [3, 6, 7]


async def test_what_is_parked_in_order_goes_in_that_order(
    world: HooksWorld, node: HooksNode, receiver: Receiver
) -> None:
    source = await world.source()
    await world.connection(source, receiver.url, max_in_flight=1)
    event_ids = []
    for _ in range(10):
        event_ids.append(await accepted(node, source))
        await node.settled()
        world.clock.advance(seconds=1)
    for _ in range(20):
        await node.work_off()
        world.clock.advance(seconds=2)
    assert receiver.ids() == event_ids


async def test_deliveries_of_a_deleted_connection_end_cancelled_and_uncounted(
    world: HooksWorld, node: HooksNode, receiver: Receiver
) -> None:
    source = await world.source()
    kept = await world.connection(source, receiver.url)
    paused = await world.connection(source, receiver.url, status=Status.PAUSED)
    failing = await world.connection(source, "http://127.0.0.1:9/")
    event_id = await accepted(node, source)
    await node.settled()
    await set_status(world, paused, Status.DELETED)
    await set_status(world, failing, Status.DELETED)
    world.clock.advance(seconds=10)
    await node.work_off()
    states = {each.connection_id: each.state for each in await world.deliveries(event_id)}
    assert states == {
        kept.connection_id: DeliveryState.DELIVERED,
        paused.connection_id: DeliveryState.CANCELLED,
        failing.connection_id: DeliveryState.CANCELLED,
    }
    assert await world.check_counts(source) == {"delivered": 1}


async def test_what_waits_until_its_event_is_about_to_go_ends_exhausted(
    world: HooksWorld, node: HooksNode, receiver: Receiver
) -> None:
    source = await world.source()
    await world.connection(source, receiver.url, status=Status.PAUSED)
    event_id = await accepted(node, source)
    await node.settled()
    world.clock.advance(seconds=86_400 - 50)
    await node.work_off()
    [delivery] = await world.deliveries(event_id)
    assert (delivery.state, delivery.reason) == (DeliveryState.EXHAUSTED, "retention")
    assert (await world.event(source, event_id)).status is EventStatus.FAILED


async def test_a_slow_destination_takes_half_of_the_slots_at_most(
    world: HooksWorld, receiver: Receiver
) -> None:
    node = await world.node(settings=HooksSettings(deliveries_at_once=8))
    slow_source, source = await world.source(), await world.source()
    async with Receiver() as slow:
        slow.delay_seconds = 1.0
        await world.connection(slow_source, slow.url)
        await world.connection(source, receiver.url)
        for _ in range(20):
            await accepted(node, slow_source)
        for _ in range(20):
            await accepted(node, source)
            await asyncio.sleep(0.01)
        # In less than the slow one takes for its first answer.
        await eventually(lambda: len(receiver.got) == 20, patience_seconds=0.7)
        assert slow.in_flight_max <= 4
        for _ in range(10):
            await node.work_off()
            world.clock.advance(seconds=2)
        assert len(slow.got) == 20


async def test_a_breaker_is_shared_by_nodes(world: HooksWorld, receiver: Receiver) -> None:
    one, two = await world.node(), await world.node(await world.open_items())
    source = await world.source()
    connection = await world.connection(source, receiver.url)
    receiver.status = 500
    for number in range(10):
        await accepted((one, two)[number % 2], source)
        await one.settled()
        await two.settled()
    stored = (await world.stored_connection(connection)).breaker
    assert stored is not None
    assert stored["consecutive_failures"] == 10
    assert stored.get("open_until_ms") is not None
    assert breaker.BreakerPolicy().failures_max == 10
