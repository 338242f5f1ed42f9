"""What processes tell one another, over a real PostgreSQL, and what it costs when nobody listens."""

from __future__ import annotations

import asyncio
import time

from tests.http.hooks.stream.listeners import World, delivery_of
from tests.support.waiting import eventually

from crossdock.engines.notifications import Notifications
from crossdock.engines.sql.target import PostgresTarget, connect
from crossdock.hooks.rules.listening import unpacked
from crossdock.hooks.service.live import FLUSH_SECONDS, LISTENING, REMEMBER_SECONDS, LiveFeed
from crossdock.kit.clock import SystemClock


async def cut_connections(database: PostgresTarget) -> None:
    connection = await connect(database)
    await connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    await connection.close()


async def test_what_one_process_accepts_the_streams_of_another_hear(world: World, source_id: str) -> None:
    here, there = await world.node(), await world.node()
    async with there.listening(source_id) as listener:
        await here.reaches(listener, lambda: world.event(source_id))
        event = world.event(source_id)
        here.feed.accepted(event)
        here.feed.moved(delivery_of(event), 204)
        await eventually(lambda: bool(listener.named("delivery")))
    assert listener.event_ids[-1] == event.event_id
    assert listener.named("delivery")[0].data["event_id"] == event.event_id
    assert listener.named("lagged") == []


async def test_every_stream_of_a_source_hears_wherever_it_is_open(world: World, source_id: str) -> None:
    here, there = await world.node(), await world.node()
    async with (
        here.listening(source_id) as first,
        here.listening(source_id) as second,
        there.listening(source_id) as third,
    ):
        event = world.event(source_id)
        here.feed.accepted(event)
        listeners = (first, second, third)
        await eventually(lambda: all(each.event_ids == [event.event_id] for each in listeners))


async def test_of_a_source_that_nobody_listens_to_nothing_is_told(world: World, source_id: str) -> None:
    node, tap = await world.node(), await world.tap()
    (_, other) = await world.served.any_source()
    async with node.listening(source_id) as listener:
        for _ in range(100):
            node.feed.accepted(world.event(other))
            node.feed.moved(delivery_of(world.event(other)), 200)
        node.feed.accepted(world.event(source_id))
        await eventually(lambda: len(listener.events) == 1 and len(tap.live) == 1)
    assert other not in tap.live[0]


async def test_a_source_is_announced_at_once_and_forgotten_by_who_leaves(
    world: World, source_id: str
) -> None:
    node, tap = await world.node(), await world.tap()
    async with node.listening(source_id):
        await eventually(lambda: any(source_id in payload for payload in tap.listening))
    said = len(tap.listening)
    async with node.listening((await world.served.any_source())[1]):
        await eventually(lambda: len(tap.listening) > said)
    assert not any(source_id in payload for payload in tap.listening[said:])


async def test_a_burst_is_a_few_commits_and_loses_nothing(world: World, source_id: str) -> None:
    node, tap = await world.node(), await world.tap()
    async with node.listening(source_id) as listener:
        events = [world.event(source_id) for _ in range(600)]
        began_at = time.monotonic()
        for event in events:
            node.feed.accepted(event)
        await eventually(lambda: len(listener.event_ids) == len(events))
        took_seconds = time.monotonic() - began_at
    assert listener.event_ids == [event.event_id for event in events]
    assert all(len(payload.encode()) < 8_000 for payload in tap.live)
    assert len(tap.live) < 40  # notifications: a commit has many
    assert took_seconds < 5


async def test_between_two_commits_lies_a_tenth_of_a_second(
    world: World, source_id: str, database: PostgresTarget
) -> None:
    node = await world.node()
    connection = await connect(database)
    async with node.listening(source_id) as listener:
        before = await connection.fetchval("SELECT txid_current()")
        began_at = time.monotonic()
        for n in range(30):
            node.feed.accepted(world.event(source_id))
            await eventually(lambda n=n: len(listener.events) > n)  # type: ignore[misc]
        commits = await connection.fetchval("SELECT txid_current()") - before - 1
        seconds = time.monotonic() - began_at
    await connection.close()
    assert commits <= seconds / FLUSH_SECONDS + 2


async def test_more_than_a_burst_may_have_is_dropped_and_told(world: World, source_id: str) -> None:
    node = await world.node()
    async with node.listening(source_id) as listener:
        for _ in range(5_000):
            node.feed.accepted(world.event(source_id))
        await eventually(lambda: bool(listener.named("lagged")))
        told = len(listener.event_ids)
        assert 900 < told < 2_000
        assert listener.events[-1].name == "lagged"
        node.feed.accepted(after := world.event(source_id))
        await eventually(lambda: listener.event_ids[-1] == after.event_id)


async def test_a_client_that_does_not_read_keeps_no_other_waiting_and_is_told_what_it_lost(
    world: World, source_id: str
) -> None:
    node = await world.node()
    path = "/" + "x" * 250
    async with node.listening(source_id) as slow, node.listening(source_id) as quick:
        slow.reads.clear()
        rounds, each_round = 6, 300
        for n in range(1, rounds + 1):
            for _ in range(each_round):
                node.feed.accepted(world.event(source_id, path=path, content_type="y" * 250))
            await eventually(lambda n=n: len(quick.event_ids) == n * each_round)  # type: ignore[misc]
        assert quick.named("lagged") == []
        slow.reads.set()
        await eventually(lambda: len(slow.named("lagged")) == 1)
        node.feed.accepted(last := world.event(source_id))
        await eventually(lambda: slow.event_ids[-1] == last.event_id)
    assert len(slow.event_ids) < rounds * each_round
    assert slow.event_ids[:-1] == quick.event_ids[: len(slow.event_ids) - 1]


async def test_a_lost_connection_is_made_anew_and_the_gap_told(
    world: World, source_id: str, database: PostgresTarget
) -> None:
    here, there = await world.node(), await world.node()
    async with there.listening(source_id) as listener:
        await here.reaches(listener, lambda: world.event(source_id))
        assert listener.named("lagged") == []
        await cut_connections(database)
        await eventually(lambda: bool(listener.named("lagged")))
        await eventually(lambda: here.notifications.listening and there.notifications.listening)
        event = world.event(source_id)
        here.feed.accepted(event)
        await eventually(lambda: event.event_id in listener.event_ids)


async def test_a_process_that_starts_learns_who_listens_and_what_it_accepted_before_is_told_as_missing(
    world: World, source_id: str
) -> None:
    there = await world.node()
    async with there.listening(source_id) as listener:
        late = await world.node()
        await eventually(lambda: bool(listener.named("lagged")))
        late.feed.accepted(event := world.event(source_id))
        await eventually(lambda: listener.event_ids == [event.event_id])
        assert len(listener.named("lagged")) == 1


async def test_a_source_that_is_listened_to_is_announced_again_and_again(
    world: World, source_id: str, database: PostgresTarget
) -> None:
    """A process that missed the first announcement is not left out for good."""
    node, tap = await world.node(announce_seconds=0.05), await world.tap()
    async with node.listening(source_id):
        await eventually(lambda: sum(source_id in payload for payload in tap.listening) > 3)


async def test_a_source_that_nobody_has_announced_for_a_while_is_forgotten(
    world: World, source_id: str
) -> None:
    node, tap = await world.node(announce_seconds=0.05), await world.tap()
    assert tap.notifications is not None
    await tap.notifications.notify(LISTENING, [f'["{source_id}"]'])

    async def is_told() -> bool:
        before = len(tap.live)
        node.feed.accepted(world.event(source_id))
        await asyncio.sleep(2 * FLUSH_SECONDS)
        return len(tap.live) > before

    async with asyncio.timeout(10):
        while not await is_told():
            pass
    node.clock.advance(seconds=REMEMBER_SECONDS + 1)
    await asyncio.sleep(0.2)  # for a few announcements
    assert not await is_told()


async def test_what_can_not_be_sent_is_told_as_lost_once_it_can(
    world: World, source_id: str, database: PostgresTarget
) -> None:
    """The sender alone lost its connection; those who listen could not know."""
    there = await world.node()
    lonely = Notifications(database, uniform=lambda: 0.1)
    feed = LiveFeed(lonely, SystemClock())
    connected: list[asyncio.Task[None]] = [asyncio.create_task(lonely.run()), asyncio.create_task(feed.run())]
    try:
        await eventually(lambda: lonely.listening)
        await asyncio.sleep(2 * FLUSH_SECONDS)  # it asks who listens, whose streams then lag
        async with there.listening(source_id) as listener:
            async with asyncio.timeout(10):
                while not listener.event_ids:
                    feed.accepted(world.event(source_id))
                    await asyncio.sleep(0.02)
            connected[0].cancel()
            await eventually(lambda: not lonely.listening)
            assert listener.named("lagged") == []
            feed.accepted(lost := world.event(source_id))
            await asyncio.sleep(2 * FLUSH_SECONDS)
            connected.append(asyncio.create_task(lonely.run()))
            await eventually(lambda: bool(listener.named("lagged")))
        assert lost.event_id not in listener.event_ids
    finally:
        for task in connected:
            task.cancel()
        await asyncio.gather(*connected, return_exceptions=True)


async def test_a_process_without_streams_reads_nothing_of_what_it_hears(world: World, source_id: str) -> None:
    """Nor does what somebody else puts on the channels do any harm."""
    node, tap = await world.node(), await world.tap()
    assert tap.notifications is not None
    for payload in ("", "{}", "nonsense", '["a", 1]', "null"):
        await tap.notifications.notify(LISTENING, [payload])
        await tap.notifications.notify("hooks_live", [payload])
    async with node.listening(source_id) as listener:
        await tap.notifications.notify("hooks_live", ["nonsense"])
        node.feed.accepted(event := world.event(source_id))
        await eventually(lambda: listener.event_ids == [event.event_id])
    assert [each.position[-20:] for each in unpacked(tap.live[-1])] == [event.event_id]


async def test_telling_takes_no_time_when_nobody_listens(world: World, source_id: str) -> None:
    node, event = await world.node(), world.event(source_id)
    began_at = time.perf_counter()
    for _ in range(100_000):
        node.feed.accepted(event)
    assert time.perf_counter() - began_at < 0.5  # 5 µs each, on a busy machine
