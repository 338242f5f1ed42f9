"""One event sent again while others do the same, or while it is being sent."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from tests.support.hooks_engine import accepted
from tests.support.hooks_events import Reading, replay, replayed
from tests.support.receiver import Receiver
from tests.support.waiting import eventually

from crossdock.hooks.model import DeliveryState, EventStatus
from crossdock.hooks.rules.replaying import generation_of
from crossdock.hooks.store.deliveries import delivery_changed

NOWHERE = "http://127.0.0.1:1/"


# --- again -----------------------------------------------------------------------------------------


async def test_each_replay_begins_anew_even_if_an_earlier_one_was_made_by_a_clock_ahead(
    reading: Reading,
) -> None:
    source = await reading.world.source()
    connection = await reading.world.connection(source, NOWHERE)
    event = await reading.event(source, {connection.connection_id: DeliveryState.DELIVERED})
    before = await reading.delivery(event, connection)
    ahead = generation_of("rpl_~", reading.now_ms + 1_500)
    from_ahead = msgspec.structs.replace(before, generation=ahead, fence=1)
    await reading.items.transact([delivery_changed(before, from_ahead)])
    generations = [ahead] + [(await replayed(reading, event))["generation"] for _ in range(3)]
    assert generations == sorted(set(generations))
    found = await reading.delivery(event, connection)
    assert (found.generation, found.fence) == (generations[-1], 4)


async def test_a_repeat_with_its_idempotency_key_is_answered_again_and_done_once(reading: Reading) -> None:
    source = await reading.world.source()
    connection = await reading.world.connection(source, NOWHERE)
    event = await reading.event(source, {connection.connection_id: DeliveryState.EXHAUSTED})
    key = {"idempotency-key": "again"}
    first = await replay(reading, event, headers=key)
    reading.clock.advance(seconds=5)
    second = await replay(reading, event, headers=key)
    assert (second.status, second.json()) == (201, first.json())
    assert second.header("idempotency-replayed") == "true"
    assert (await reading.delivery(event, connection)).fence == 1
    other = await replay(reading, event, connection, headers=key)
    assert (other.status, other.code) == (409, "idempotency_conflict")


async def test_repeats_at_the_same_time_are_one_replay(reading: Reading) -> None:
    source = await reading.world.source()
    connection = await reading.world.connection(source, NOWHERE)
    event = await reading.event(source, {connection.connection_id: DeliveryState.EXHAUSTED})
    key = {"idempotency-key": "at once"}
    answers = await asyncio.gather(*(replay(reading, event, headers=key) for _ in range(8)))
    done = [answer.json() for answer in answers if answer.status == 201]
    assert done
    assert all(each == done[0] for each in done)
    assert all(answer.code == "idempotency_in_progress" for answer in answers if answer.status != 201)
    assert (await reading.delivery(event, connection)).fence == 1


async def test_replays_at_the_same_time_all_take_effect_one_after_the_other(reading: Reading) -> None:
    source = await reading.world.source()
    connections = [await reading.world.connection(source, NOWHERE) for _ in range(3)]
    states = dict.fromkeys((each.connection_id for each in connections), DeliveryState.DELIVERED)
    event = await reading.event(source, states)
    answers = await asyncio.gather(*(replay(reading, event) for _ in range(5)))
    generations = {answer.json()["generation"] for answer in answers}
    assert [answer.status for answer in answers] == [201] * 5
    for connection in connections:
        found = await reading.delivery(event, connection)
        assert (found.fence, found.generation) == (5, max(generations))
    assert (await reading.recount(source))[0].counts == {"open": 3}


# --- while an earlier call is in flight ------------------------------------------------------------


@pytest.mark.parametrize("late_status", [200, 500])
async def test_the_late_result_of_an_earlier_call_is_kept_as_an_attempt_and_moves_nothing(
    reading: Reading, receiver: Receiver, late_status: int
) -> None:
    await reading.node.work_off()  # what others have left takes no slots here
    source = await reading.world.source()
    slow = await reading.world.connection(source, receiver.url)
    other = await reading.world.connection(source, NOWHERE)
    event = await reading.event(
        source, {slow.connection_id: DeliveryState.DELIVERED, other.connection_id: DeliveryState.DELIVERED}
    )
    first = (await replayed(reading, event, slow))["generation"]
    receiver.status, receiver.delay_seconds = late_status, 0.4
    await reading.node.engine.puller.pull()
    await eventually(lambda: receiver.in_flight == 1)
    reading.clock.advance(ms=1)
    second = (await replayed(reading, event, slow))["generation"]
    waiting = await reading.delivery(event, slow)
    assert receiver.in_flight == 1
    await reading.node.settled()
    assert await reading.delivery(event, slow) == waiting
    [found] = await reading.recount(source)
    assert (found.status, found.counts) == (EventStatus.PROCESSING, {"open": 1, "delivered": 1})
    [late] = await reading.world.attempts(event.event_id)
    assert (late.generation, late.status_code, late.attempt_number) == (first, late_status, 1)
    receiver.status, receiver.delay_seconds = 200, 0.0
    await reading.node.work_off()
    assert (await reading.recount(source))[0].status is EventStatus.DELIVERED
    assert [each.generation for each in await reading.world.attempts(event.event_id)] == [first, second]
    assert receiver.got[-1].headers["crossdock-replay"] == second
    await reading.world.counted()
    assert (await reading.world.stored_connection(slow)).delivery_count == 1


async def test_an_event_on_its_way_for_the_first_time_is_not_replayed_yet(
    reading: Reading, receiver: Receiver
) -> None:
    source = await reading.world.source()
    await reading.world.connection(source, receiver.url)
    receiver.delay_seconds = 0.3
    event_id = await accepted(reading.node, source)
    refused = await replay(reading, event_id)
    assert (refused.status, refused.code) == (409, "event_not_sent_yet")
    assert refused.header("retry-after") == "1"
    await reading.node.settled()
    assert (await replay(reading, event_id)).status == 201
