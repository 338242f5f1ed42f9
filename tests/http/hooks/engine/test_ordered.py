"""Connections that get their events in the order in which they were received."""

from __future__ import annotations

import asyncio

from tests.support.hooks_engine import HooksNode, HooksWorld, accepted
from tests.support.receiver import Got, Receiver

from crossdock.hooks.model import Connection, DeliveryState, Source, Status
from crossdock.hooks.store.connections import ordered_from


async def ordered(world: HooksWorld, source: Source, url: str, **more: object) -> Connection:
    cursor = ordered_from(source.source_id, world.clock.now_ms())
    return await world.connection(source, url, ordered=True, ordered_cursor=cursor, **more)


async def walk(node: HooksNode, world: HooksWorld, receiver: Receiver, count: int) -> None:
    for _ in range(200):
        await node.engine.parking.look()
        await asyncio.sleep(0.02)
        world.clock.advance(ms=500)
        if len(receiver.got) >= count:
            break
    await asyncio.sleep(0.05)


async def test_events_arrive_in_order_one_at_a_time(
    world: HooksWorld, node: HooksNode, receiver: Receiver
) -> None:
    source = await world.source()
    await ordered(world, source, receiver.url)
    receiver.delay_seconds = 0.005
    event_ids = []
    for _ in range(15):
        event_ids.append(await accepted(node, source))
        world.clock.advance(ms=3)
    await node.settled()
    world.clock.advance(seconds=3)
    await walk(node, world, receiver, 15)
    assert receiver.ids() == event_ids
    assert receiver.in_flight_max == 1
    assert await world.check_counts(source) == {"delivered": 15}


async def test_an_event_that_fails_holds_up_those_behind_it(
    world: HooksWorld, node: HooksNode, receiver: Receiver
) -> None:
    source = await world.source()
    await ordered(world, source, receiver.url, retry_config={"schedule_seconds": [0, 2, 2, 2]})
    first = await accepted(node, source)
    world.clock.advance(ms=5)
    second = await accepted(node, source)
    await node.settled()
    calls: list[str] = []

    def answer(got: Got) -> int:
        calls.append(got.message_id)
        return 500 if len(calls) < 3 else 200

    receiver.answer = answer
    world.clock.advance(seconds=3)
    await walk(node, world, receiver, 4)
    assert calls == [first, first, first, second]


async def test_an_event_that_is_given_up_pauses_its_connection(
    world: HooksWorld, node: HooksNode, receiver: Receiver
) -> None:
    source = await world.source()
    connection = await ordered(world, source, receiver.url, retry_config={"schedule_seconds": [0, 1]})
    first = await accepted(node, source)
    world.clock.advance(ms=5)
    second = await accepted(node, source)
    await node.settled()
    receiver.status = 500
    world.clock.advance(seconds=3)
    await walk(node, world, receiver, 2)
    for _ in range(20):
        await asyncio.sleep(0.02)
        if (await world.stored_connection(connection)).status is Status.PAUSED:
            break
    assert (await world.stored_connection(connection)).status is Status.PAUSED
    assert receiver.ids() == [first, first]
    [behind] = await world.deliveries(second)
    assert behind.state is DeliveryState.HELD
