"""Replays meet deliveries: outside the order, and beside calls that were taken over."""

from __future__ import annotations

import pytest
from tests.support.hooks_events import Reading, replayed
from tests.support.receiver import Receiver

from crossdock.delivery.model import CallResult, RetryAt
from crossdock.hooks.model import DeliveryState, EventStatus
from crossdock.hooks.rules.outcomes import after_call, attempt_of_call
from crossdock.hooks.service.finishing import Kept, OpenEvent
from crossdock.hooks.store.connections import ordered_from


@pytest.mark.parametrize("limited", [False, True])
async def test_a_replay_to_an_ordered_connection_is_sent_outside_the_order(
    reading: Reading, receiver: Receiver, limited: bool
) -> None:
    await reading.node.work_off()
    source = await reading.world.source()
    more = {"max_in_flight": 1} if limited else {}
    cursor = ordered_from(source.source_id, reading.now_ms + 60_000)
    connection = await reading.world.connection(
        source, receiver.url, ordered=True, ordered_cursor=cursor, **more
    )
    receiver.answer = lambda _: 200 if len(receiver.got) > 1 else 500
    event = await reading.event(source, {connection.connection_id: DeliveryState.DELIVERED})
    await replayed(reading, event)
    await reading.node.work_off()
    assert receiver.ids() == [event.event_id]
    reading.clock.advance(seconds=6)
    await reading.node.work_off()
    reading.clock.advance(seconds=2)
    await reading.node.work_off()
    assert receiver.ids() == [event.event_id] * 2
    assert [each.status for each in await reading.recount(source)] == [EventStatus.DELIVERED]


async def test_the_late_result_of_one_taken_over_leaves_the_number_to_who_took_over(reading: Reading) -> None:
    source = await reading.world.source()
    connection = await reading.world.connection(source, "http://127.0.0.1:1/")
    event = await reading.event(source, {connection.connection_id: DeliveryState.PENDING})
    engine = reading.node.engine
    used = await engine.sources.find(source.source_id)
    assert used is not None
    in_use = used.connection(connection.connection_id)
    assert in_use is not None
    jobs = []
    for _ in range(2):
        delivery = await reading.delivery(event, connection)
        job = await engine.claims.claim(OpenEvent(await reading.stored(event)), delivery, used, in_use)
        assert job is not None
        jobs.append(job)
    ended = []
    for job in jobs:
        attempt, mark = attempt_of_call(job.delivery, "https://x", CallResult(500, "", 1), 0)
        after = after_call(job.delivery, RetryAt(reading.now_ms, True))
        ended.append(await engine.finisher.finish(job.opened, job.delivery, after, Kept(attempt, mark)))
    assert ended == [False, True]
    assert len(await reading.world.attempts(event.event_id)) == 3
    await reading.recount(source)
