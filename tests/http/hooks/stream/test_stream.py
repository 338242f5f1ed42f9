"""What a client of GET /v1/hooks/stream gets, and who may be one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.http.hooks.stream.listeners import ServerEvent, World, asking, delivery_of
from tests.support.hooks_sources import (
    OPERATOR_KEY,
    SOURCES,
    Served,
    key_of,
    serving_dynamodb,
    serving_postgres,
)
from tests.support.waiting import eventually

from crossdock.hooks.model import DeliveryState
from crossdock.hooks.rules.listening import Position
from crossdock.hooks.rules.searching import moment
from crossdock.hooks.service.live_streams import OVERLAP_MS, RESUMED_MAX
from crossdock.http.sse import BEGINNING, KEEP_ALIVE
from crossdock.kit.errors import Unavailable


@pytest.fixture(scope="module", params=["postgres", pytest.param("dynamodb", marks=pytest.mark.dynamodb)])
async def served(request: pytest.FixtureRequest) -> AsyncIterator[Served]:
    """What a client missed comes from the store."""
    if request.param == "dynamodb":
        opening = serving_dynamodb(request.getfixturevalue("dynamodb_endpoint"))
    else:
        opening = serving_postgres(request.getfixturevalue("postgres"))
    async with opening as found:
        yield found


# --- what it tells ---------------------------------------------------------------------------------


async def test_a_stream_begins_with_the_place_to_come_back_to(world: World, source_id: str) -> None:
    """Or who loses the connection before anything happened would not know since when."""
    node = await world.node()
    await world.kept(world.event(source_id, world.served.now_ms - 1))
    async with node.listening(source_id) as listener:
        assert listener.text.encode().startswith(BEGINNING)
        await eventually(lambda: len(listener.everything) == 1)
    [beginning] = listener.everything
    assert (beginning.name, beginning.data) == ("listening", {"source_id": source_id})
    meanwhile = await world.kept(world.event(source_id))
    async with node.listening(source_id, last_event_id=beginning.id) as listener:
        await eventually(lambda: len(listener.everything) == 2)
    assert listener.event_ids == [meanwhile.event_id]
    assert [(each.name, each.id) for each in listener.everything][-1] == ("listening", None)


async def test_an_accepted_event_is_told_with_its_place(world: World, source_id: str) -> None:
    node, event = await world.node(), world.event(source_id)
    async with node.listening(source_id) as listener:
        assert listener.status == 200
        node.feed.accepted(event)
        await eventually(lambda: len(listener.events) == 1)
    assert listener.events == [
        ServerEvent(
            "event",
            {
                "event_id": event.event_id,
                "source_id": source_id,
                "method": "POST",
                "path": "/orders",
                "content_type": "application/json",
                "received_at": moment(event.received_at),
                "size": 8,
            },
            f"{event.received_at}-{event.event_id}",
        )
    ]


async def test_a_delivery_is_told_without_a_place(world: World, source_id: str) -> None:
    node, event = await world.node(), world.event(source_id)
    async with node.listening(source_id) as listener:
        node.feed.moved(delivery_of(event, DeliveryState.RETRYING), 500)
        node.feed.moved(delivery_of(event, DeliveryState.DELIVERED), 200)
        await eventually(lambda: len(listener.events) == 2)
    assert [
        (each.name, each.data["state"], each.data["status_code"], each.id) for each in listener.events
    ] == [
        ("delivery", "retrying", 500, None),
        ("delivery", "delivered", 200, None),
    ]


async def test_another_source_is_not_heard(world: World, source_id: str) -> None:
    node, (_, other) = await world.node(), await world.served.any_source()
    async with node.listening(source_id) as listener, node.listening(other) as other_listener:
        node.feed.accepted(world.event(other))
        await eventually(lambda: len(other_listener.events) == 1)
        assert listener.events == []


async def test_a_silent_source_is_kept_alive(world: World, source_id: str) -> None:
    node = await world.node(keep_alive_seconds=0.01)
    async with node.listening(source_id) as listener:
        await eventually(lambda: listener.text.encode().endswith(KEEP_ALIVE * 3))


# --- who may listen --------------------------------------------------------------------------------


async def test_a_user_may_listen_to_its_own_source_with_a_key_that_may_look(world: World) -> None:
    user_id, client = await world.served.user_and_client()
    source_id = (await world.served.source(client))["source_id"]
    node = await world.node()
    async with node.listening(source_id, key_of(user_id, "read")) as listener:
        node.feed.accepted(world.event(source_id))
        await eventually(lambda: len(listener.events) == 1)


async def test_who_may_not_look_is_403(world: World, source_id: str) -> None:
    async with (await world.node()).listening(source_id, key_of("usr_x", "none")) as listener:
        assert (listener.status, listener.problem_code) == (403, "permission_denied")


@pytest.mark.parametrize("key", [None, "fh_", "nothing like it"])
async def test_without_a_good_key_it_is_401(world: World, source_id: str, key: str | None) -> None:
    node = await world.node()
    node.keys.revoked.add("fh_")
    async with node.listening(source_id, key) as listener:
        assert listener.status == 401


async def test_somebody_elses_source_is_404_as_one_that_there_is_not(world: World, source_id: str) -> None:
    node, stranger = await world.node(), key_of(await world.served.user())
    for asked in (source_id, "src_0000000000000000", "nonsense"):
        async with node.listening(asked, stranger) as listener:
            assert (listener.status, listener.problem_code) == (404, "source_not_found")


async def test_a_source_must_be_named(world: World) -> None:
    node = await world.node()
    async with asking(node.app, "", OPERATOR_KEY) as listener:
        assert (listener.status, listener.problem_code) == (422, "invalid_input")


async def test_a_process_has_a_limit_of_streams_and_a_place_is_given_back(
    world: World, source_id: str
) -> None:
    node = await world.node(streams_max=1)
    async with node.listening(source_id) as first, node.listening(source_id) as second:
        assert first.status == 200
        assert (second.status, second.problem_code) == (503, "too_many_streams")
        assert (b"retry-after", b"5") in second.messages[0]["headers"]
    async with node.listening(source_id) as third:
        assert third.status == 200


# --- how it ends -----------------------------------------------------------------------------------


async def test_a_revoked_key_ends_its_streams_and_no_others(world: World) -> None:
    user_id, client = await world.served.user_and_client()
    source_id, node = (await world.served.source(client))["source_id"], await world.node()
    async with (
        node.listening(source_id, key_of(user_id, "read")) as revoked,
        node.listening(source_id, key_of(user_id, "write")) as still_good,
    ):
        node.keys.revoked.add(key_of(user_id, "read"))
        await eventually(lambda: revoked.ended)
        await asyncio.sleep(0.1)  # as long as several checks take
        assert not still_good.ended


async def test_a_deleted_source_ends_its_streams(world: World) -> None:
    _, client = await world.served.user_and_client()
    source_id, node = (await world.served.source(client))["source_id"], await world.node()
    async with node.listening(source_id) as listener:
        assert (await client.request("DELETE", f"{SOURCES}/{source_id}")).status == 204
        await eventually(lambda: listener.ended)


async def test_a_store_that_is_away_ends_no_stream(world: World) -> None:
    user_id, client = await world.served.user_and_client()
    source_id, node = (await world.served.source(client))["source_id"], await world.node()
    async with node.listening(source_id, key_of(user_id)) as listener:
        node.keys.failing = Unavailable("database_unavailable", "Away.")
        await asyncio.sleep(0.1)  # as long as several checks take
        node.feed.accepted(world.event(source_id))
        await eventually(lambda: len(listener.events) == 1)
        assert not listener.ended


async def test_a_check_that_fails_for_no_known_reason_ends_the_stream(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    user_id, client = await world.served.user_and_client()
    source_id, node = (await world.served.source(client))["source_id"], await world.node()
    async with node.listening(source_id, key_of(user_id)) as listener:
        node.keys.failing = RuntimeError("odd")
        await eventually(lambda: listener.ended)
    assert "the right to a live stream could not be checked" in caplog.text


async def test_a_process_that_stops_ends_its_streams_properly_and_opens_no_more(
    world: World, source_id: str
) -> None:
    node = await world.node()
    async with node.listening(source_id) as listener:
        node.running.cancel()
        await eventually(lambda: listener.ended)
        assert listener.messages[-1]["more_body"] is False
    async with node.listening(source_id) as late:
        assert (late.status, late.problem_code) == (503, "server_stopping")


# --- coming back -----------------------------------------------------------------------------------


async def test_who_comes_back_gets_what_came_since_in_order_and_then_what_happens(
    world: World, source_id: str
) -> None:
    node, now_ms = await world.node(), world.served.now_ms
    events = [await world.kept(world.event(source_id, now_ms - 10_000 + n * 100)) for n in range(5)]
    last = Position(events[1].received_at, events[1].event_id).text
    async with node.listening(source_id, last_event_id=last) as listener:
        await eventually(lambda: len(listener.event_ids) == 4)
        new = world.event(source_id)
        node.feed.accepted(new)
        await eventually(lambda: len(listener.event_ids) == 5)
    wanted = [events[0], *events[2:], new]  # the first is a little before the last one known
    assert listener.event_ids == [event.event_id for event in wanted]
    assert [each.id for each in listener.events] == [
        Position(event.received_at, event.event_id).text for event in wanted
    ]


async def test_what_is_long_before_is_not_repeated(world: World, source_id: str) -> None:
    node, now_ms = await world.node(), world.served.now_ms
    old = await world.kept(world.event(source_id, now_ms - 10_000 - OVERLAP_MS - 1))
    known = await world.kept(world.event(source_id, now_ms - 10_000))
    new = await world.kept(world.event(source_id, now_ms - 5_000))
    last = Position(known.received_at, known.event_id).text
    async with node.listening(source_id, last_event_id=last) as listener:
        await eventually(lambda: len(listener.event_ids) == 1)
    assert listener.event_ids == [new.event_id]
    assert old.event_id not in listener.text


async def test_of_events_of_one_millisecond_none_is_left_out(world: World, source_id: str) -> None:
    node, at_ms = await world.node(), world.served.now_ms - 10_000
    events = [await world.kept(world.event(source_id, at_ms)) for _ in range(9)]
    events.sort(key=lambda event: event.event_id)
    last = Position(at_ms, events[4].event_id).text
    async with node.listening(source_id, last_event_id=last) as listener:
        await eventually(lambda: len(listener.event_ids) == 8)
    assert sorted(listener.event_ids) == [each.event_id for each in events if each is not events[4]]


async def test_more_than_the_limit_says_lagged_and_coming_back_goes_on(world: World, source_id: str) -> None:
    node, now_ms = await world.node(), world.served.now_ms
    events = [
        await world.kept(world.event(source_id, now_ms - 100_000 + n, body=b""))
        for n in range(RESUMED_MAX + 30)
    ]
    before = Position(now_ms - 200_000, events[0].event_id).text
    async with node.listening(source_id, last_event_id=before) as listener:
        await eventually(lambda: bool(listener.named("lagged")))
        assert listener.event_ids == [each.event_id for each in events[:RESUMED_MAX]]
        assert listener.events[-1].name == "lagged"
        last = listener.named("event")[-1].id
    async with node.listening(source_id, last_event_id=last) as listener:
        await eventually(lambda: listener.event_ids[-1:] == [events[-1].event_id])
        assert listener.named("lagged") == []
    assert set(listener.event_ids) > {each.event_id for each in events[RESUMED_MAX:]}


@pytest.mark.parametrize("last_event_id", ["", "42", "1735732800000-evt_0123", "x" * 5000])
async def test_a_place_that_never_was_given_out_is_none(
    world: World, source_id: str, last_event_id: str
) -> None:
    node = await world.node()
    await world.kept(world.event(source_id))
    async with node.listening(source_id, last_event_id=last_event_id) as listener:
        node.feed.accepted(new := world.event(source_id))
        await eventually(lambda: len(listener.events) == 1)
    assert listener.event_ids == [new.event_id]


async def test_a_place_in_the_future_is_one_with_nothing_after_it_yet(world: World, source_id: str) -> None:
    node = await world.node()
    await world.kept(world.event(source_id))
    last = "9999999999999-evt_0123456789abcdef"
    async with node.listening(source_id, last_event_id=last) as listener:
        node.feed.accepted(new := world.event(source_id))
        await eventually(lambda: len(listener.events) == 1)
    assert listener.event_ids == [new.event_id]


async def test_another_sources_events_are_never_given_out_by_their_place(
    world: World, source_id: str
) -> None:
    node, (_, other) = await world.node(), await world.served.any_source()
    foreign = await world.kept(world.event(other, world.served.now_ms - 10_000))
    before = Position(foreign.received_at - 1, foreign.event_id).text
    async with node.listening(source_id, last_event_id=before) as listener:
        node.feed.accepted(new := world.event(source_id))
        await eventually(lambda: len(listener.events) == 1)
    assert listener.event_ids == [new.event_id]
