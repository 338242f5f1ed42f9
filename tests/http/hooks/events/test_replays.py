"""Many events sent again: planned, begun, looked after, cancelled, listed."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.asgi_client import AsgiClient
from tests.support.hooks_events import REPLAYS_PATH, Reading, bulk, data_of, every_page
from tests.support.receiver import Receiver

from crossdock.hooks.model import Connection, DeliveryState, EventStatus, Source
from crossdock.hooks.rules.replaying import generation_of
from crossdock.hooks.rules.searching import SearchBudget, moment
from crossdock.hooks.service.replays import RUNNING_MAX
from crossdock.hooks.store.connections import connection_deleted
from crossdock.hooks.store.sources import source_deleted
from crossdock.kit.pagination import encode_cursor

NOWHERE = "http://127.0.0.1:1/"
EXHAUSTED, DELIVERED = DeliveryState.EXHAUSTED, DeliveryState.DELIVERED


async def planned(reading: Reading, source: Source, **more: Any) -> dict[str, Any]:
    answer = await reading.owner.post(REPLAYS_PATH, bulk(source, dry_run=True, **more))
    assert answer.status == 200, answer
    found: dict[str, Any] = answer.json()
    return found


async def carried_out(reading: Reading, source: Source, **more: Any) -> dict[str, Any]:
    begun = await reading.replay(reading.owner, source, **more)
    await reading.work(begun["replay_id"])
    return await reading.progress(begun["replay_id"])


async def source_with(reading: Reading, count: int = 1, **more: Any) -> tuple[Source, list[Connection]]:
    source = await reading.world.source()
    return source, [await reading.world.connection(source, NOWHERE, **more) for _ in range(count)]


def in_state(state: DeliveryState, *connections: Connection) -> dict[str, DeliveryState]:
    return {each.connection_id: state for each in connections}


def done(looked_at: int, replayed: int, deliveries: int) -> dict[str, Any]:
    return {
        "state": "done",
        "looked_at": looked_at,
        "replayed": replayed,
        "skipped": looked_at - replayed,
        "deliveries": deliveries,
        "reason": None,
    }


# --- carried out -----------------------------------------------------------------------------------


async def test_what_failed_is_sent_again_to_where_it_failed(reading: Reading, receiver: Receiver) -> None:
    source = await reading.world.source()
    broken = await reading.world.connection(source, receiver.url)
    healthy = await reading.world.connection(source, NOWHERE)
    failed = await reading.events(
        source, [{} for _ in range(70)], in_state(EXHAUSTED, broken) | in_state(DELIVERED, healthy)
    )
    reading.clock.advance(ms=100)
    await reading.events(source, [{} for _ in range(10)], in_state(DELIVERED, broken, healthy))
    reading.clock.advance(ms=1)
    assert await planned(reading, source, status="failed") == {
        "would_replay": 70,
        "deliveries": 70,
        "looked_at": 80,
        "at_least": False,
    }
    begun = await reading.replay(reading.owner, source, status="failed")
    assert begun == {
        "replay_id": begun["replay_id"],
        "source_id": source.source_id,
        "user_id": source.user_id,
        "generation": generation_of(begun["replay_id"], reading.now_ms),
        "state": "running",
        "from": "2000-01-01T00:00:00.000Z",
        "to": moment(reading.now_ms),
        "status": "failed",
        "connection_id": None,
        "looked_at": 0,
        "replayed": 0,
        "skipped": 0,
        "deliveries": 0,
        "created_at": moment(reading.now_ms),
        "finished_at": None,
        "reason": None,
    }
    assert await reading.progress(begun["replay_id"]) == begun
    await reading.work(begun["replay_id"])
    assert await reading.progress(begun["replay_id"]) == begun | done(80, 70, 70) | {
        "finished_at": moment(reading.now_ms)
    }
    assert {each.status for each in (await reading.recount(source))[:70]} == {EventStatus.PROCESSING}
    await reading.node.work_off()
    assert sorted(receiver.ids()) == sorted(each.event_id for each in failed)
    assert {each.headers["crossdock-replay"] for each in receiver.got} == {begun["generation"]}
    assert {each.status for each in await reading.recount(source)} == {EventStatus.DELIVERED}
    assert (await planned(reading, source, status="failed"))["would_replay"] == 0


async def test_only_events_of_the_span_are_sent_again_and_none_that_came_after_it_was_asked_for(
    reading: Reading,
) -> None:
    source, connections = await source_with(reading)
    events = await reading.events(source, [{} for _ in range(10)], in_state(DELIVERED, *connections))
    span = {"from": moment(events[2].received_at), "to": moment(events[6].received_at)}
    assert (await planned(reading, source, **span))["would_replay"] == 5
    begun = await reading.replay(reading.owner, source, **span)
    everything = await reading.replay(reading.owner, source, to="2200-01-01T00:00:00Z")
    reading.clock.advance(ms=1)
    late = await reading.event(source, in_state(DELIVERED, *connections))
    await reading.work(begun["replay_id"])
    again = [each for each in await reading.recount(source) if each.status is EventStatus.PROCESSING]
    assert [each.event_id for each in again] == [each.event_id for each in events[2:7]]
    await reading.work(everything["replay_id"])
    assert (await reading.stored(late)).status is EventStatus.DELIVERED
    assert (await reading.progress(everything["replay_id"]))["looked_at"] == 10


async def test_a_new_connection_gets_what_came_before_it_as_far_as_its_filters_match(
    reading: Reading,
) -> None:
    source, connections = await source_with(reading)
    fields = [{"body": b'{"n": %d}' % number} for number in range(40)]
    events = await reading.events(source, fields, in_state(DELIVERED, *connections))
    rule = {"on": "body", "match": {"n": {"$gte": 25}}}
    late = await reading.world.connection(source, NOWHERE, filters=[rule])
    more = {"connection_id": late.connection_id}
    assert (await planned(reading, source, **more))["deliveries"] == 15
    progress = await carried_out(reading, source, **more)
    assert progress == progress | done(40, 15, 15)
    recounted = await reading.recount(source)
    assert [each.counts for each in recounted[:25]] == [{"delivered": 1}] * 25
    assert [each.counts for each in recounted[25:]] == [{"delivered": 1, "open": 1}] * 15
    assert (await reading.delivery(events[30], late)).state is DeliveryState.PENDING


@pytest.mark.parametrize("state", [each for each in DeliveryState if each is not DeliveryState.CANCELLED])
async def test_without_a_status_deliveries_in_any_state_are_sent_again(
    reading: Reading, state: DeliveryState
) -> None:
    source, [connection] = await source_with(reading)
    states = in_state(state, connection) | {"conn_gone": DeliveryState.CANCELLED}
    await reading.events(source, [{} for _ in range(3)], states)
    progress = await carried_out(reading, source)
    assert progress == progress | done(3, 3, 3)
    assert [each.counts for each in await reading.recount(source)] == [{"open": 1}] * 3


async def test_what_has_a_later_generation_is_skipped(reading: Reading) -> None:
    source, [connection] = await source_with(reading)
    events = await reading.events(source, [{} for _ in range(4)], in_state(EXHAUSTED, connection))
    begun = await reading.replay(reading.owner, source)
    reading.clock.advance(ms=5)
    path = f"/v1/hooks/events/{events[1].event_id}/replay"
    generation = (await reading.owner.post(path, {})).json()["generation"]
    await reading.work(begun["replay_id"])
    progress = await reading.progress(begun["replay_id"])
    assert progress == progress | done(4, 3, 3)
    assert (await reading.delivery(events[1], connection)).generation == generation
    await reading.recount(source)


async def test_events_on_their_way_for_the_first_time_and_those_about_to_go_are_skipped(
    reading: Reading,
) -> None:
    source, [connection] = await source_with(reading)
    await reading.event(source, status=EventStatus.RECEIVED)
    await reading.event(source, in_state(EXHAUSTED, connection), expires_at=reading.now_ms // 1000 + 30)
    await reading.event(source, in_state(EXHAUSTED, connection))
    assert (await planned(reading, source))["would_replay"] == 1
    progress = await carried_out(reading, source)
    assert progress == progress | done(3, 1, 1)


async def test_a_replay_of_nothing_is_done_at_once(reading: Reading) -> None:
    source, _ = await source_with(reading)
    progress = await carried_out(reading, source)
    assert progress == progress | done(0, 0, 0)
    past = await carried_out(reading, source, to="2000-01-02T00:00:00Z")
    assert past == past | done(0, 0, 0)


# --- planned ---------------------------------------------------------------------------------------


async def test_a_plan_looks_at_so_many_events_and_says_at_least(reading: Reading) -> None:
    source, [connection] = await source_with(reading)
    await reading.events(source, [{} for _ in range(50)], in_state(EXHAUSTED, connection))
    for budget, looked_at, at_least in ((40, 40, True), (50, 50, False), (60, 50, False)):
        planning = await reading.another(budget=SearchBudget(events=budget))
        assert await planned(planning, source) == {
            "would_replay": looked_at,
            "deliveries": looked_at,
            "looked_at": looked_at,
            "at_least": at_least,
        }


async def test_a_plan_changes_nothing_and_begins_nothing(reading: Reading) -> None:
    source, [connection] = await source_with(reading)
    event = await reading.event(source, in_state(EXHAUSTED, connection))
    before = await reading.delivery(event, connection)
    for _ in range(2):
        answer = await reading.owner.post(
            REPLAYS_PATH, bulk(source, dry_run=True), headers={"idempotency-key": "plan"}
        )
        assert (answer.status, answer.header("idempotency-replayed")) == (200, None)
    assert await reading.delivery(event, connection) == before
    assert data_of(await every_page(reading.owner, REPLAYS_PATH, source_id=source.source_id)) == []


# --- begun, shown, listed --------------------------------------------------------------------------


async def test_a_repeat_with_its_idempotency_key_begins_one_replay(reading: Reading) -> None:
    source, _ = await source_with(reading)
    key = {"idempotency-key": source.source_id}
    first = await reading.owner.post(REPLAYS_PATH, bulk(source), headers=key)
    second = await reading.owner.post(REPLAYS_PATH, bulk(source), headers=key)
    assert (first.status, second.status, second.json()) == (201, 201, first.json())
    assert second.header("idempotency-replayed") == "true"
    other = await reading.owner.post(REPLAYS_PATH, bulk(source, status="failed"), headers=key)
    assert (other.status, other.code) == (409, "idempotency_conflict")
    assert len(data_of(await every_page(reading.owner, REPLAYS_PATH, source_id=source.source_id))) == 1


@pytest.mark.parametrize("limit", [1, 2, 50])
async def test_replays_are_listed_newest_first(reading: Reading, limit: int) -> None:
    source, _ = await source_with(reading)
    begun = []
    for _ in range(5):
        begun.append(await reading.replay(reading.owner, source))
        reading.clock.advance(ms=1)
    pages = await every_page(reading.owner, REPLAYS_PATH, source_id=source.source_id, limit=limit)
    assert data_of(pages) == begun[::-1]
    assert len(pages) == -(-5 // limit)


async def test_a_source_has_so_many_replays_running_and_no_more(reading: Reading) -> None:
    source, _ = await source_with(reading)
    begun = [await reading.replay(reading.owner, source) for _ in range(RUNNING_MAX)]
    answer = await reading.owner.post(REPLAYS_PATH, bulk(source))
    assert (answer.status, answer.code) == (409, "too_many_replays")
    await reading.work(begun[3]["replay_id"])
    assert (await reading.owner.post(REPLAYS_PATH, bulk(source))).status == 201


# --- ended before its time -------------------------------------------------------------------------


async def test_a_replay_that_is_cancelled_replays_nothing_more(reading: Reading) -> None:
    source, [connection] = await source_with(reading)
    event = await reading.event(source, in_state(EXHAUSTED, connection))
    begun = await reading.replay(reading.owner, source)
    cancel = f"{REPLAYS_PATH}/{begun['replay_id']}/cancel"
    first = await reading.owner.post(cancel)
    assert first.status == 200
    assert first.json() == begun | {"state": "cancelled", "finished_at": moment(reading.now_ms)}
    assert (await reading.owner.post(cancel)).json() == first.json()
    await reading.work(begun["replay_id"])
    assert await reading.progress(begun["replay_id"]) == first.json()
    assert (await reading.delivery(event, connection)).generation == ""


async def test_a_replay_that_has_ended_can_not_be_cancelled(reading: Reading) -> None:
    source, _ = await source_with(reading)
    progress = await carried_out(reading, source)
    answer = await reading.owner.post(f"{REPLAYS_PATH}/{progress['replay_id']}/cancel")
    assert (answer.status, answer.code) == (409, "replay_ended")
    assert await reading.progress(progress["replay_id"]) == progress


@pytest.mark.parametrize("what", ["source", "connection"])
async def test_a_replay_fails_when_what_it_is_for_is_deleted(reading: Reading, what: str) -> None:
    source, [connection] = await source_with(reading)
    await reading.events(source, [{}], in_state(EXHAUSTED, connection))
    begun = await reading.replay(reading.owner, source, connection_id=connection.connection_id)
    write = source_deleted(source, 0) if what == "source" else connection_deleted(connection, "")
    await reading.items.transact([write])
    reading.clock.advance(seconds=2)
    await reading.work(begun["replay_id"])
    item = await reading.progress(begun["replay_id"])
    assert (item["state"], item["reason"]) == ("failed", f"{what}_deleted")
    assert item["finished_at"] == moment(reading.now_ms)


# --- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "fields"),
    [
        ({"from": "yesterday"}, [("from", "wrong_format")]),
        ({"from": 7}, [("from", "wrong_type")]),
        ({"to": "2025-01-01"}, [("to", "wrong_format")]),
        ({"from": "2025-01-02T00:00:00Z", "to": "2025-01-01T00:00:00Z"}, [("from", "out_of_range")]),
        ({"status": "received"}, [("status", "not_a_choice")]),
        ({"status": "lost"}, [("status", "not_a_choice")]),
        ({"dry_run": "yes"}, [("dry_run", "wrong_type")]),
        ({"source_id": None}, [("source_id", "wrong_type")]),
        ({"event_id": "evt_1"}, [("event_id", "unknown_field")]),
    ],
)
async def test_a_body_that_is_no_replay_is_refused(
    reading: Reading, changed: dict[str, Any], fields: list[tuple[str, str]]
) -> None:
    source, _ = await source_with(reading)
    answer = await reading.owner.post(REPLAYS_PATH, bulk(source) | changed)
    assert (answer.status, answer.code, answer.fields) == (422, "invalid_input", fields)


@pytest.mark.parametrize("missing", ["source_id", "from", "to"])
async def test_what_is_missing_is_said(reading: Reading, missing: str) -> None:
    source, _ = await source_with(reading)
    body = bulk(source)
    del body[missing]
    answer = await reading.owner.post(REPLAYS_PATH, body)
    assert (answer.status, answer.fields) == (422, [(missing, "required")])


@pytest.mark.parametrize("dry_run", [True, False])
async def test_a_source_or_connection_that_is_not_there_is_not_replayed(
    reading: Reading, dry_run: bool
) -> None:
    source, _ = await source_with(reading)
    _, [elsewhere] = await source_with(reading)
    stranger = reading.client(await reading.world.user())
    body = bulk(source, dry_run=dry_run)
    assert (await stranger.post(REPLAYS_PATH, body)).code == "source_not_found"
    unknown = await reading.owner.post(REPLAYS_PATH, body | {"source_id": "src_0123456789abcdef"})
    assert (unknown.status, unknown.code) == (404, "source_not_found")
    wrong = await reading.owner.post(REPLAYS_PATH, body | {"connection_id": elsewhere.connection_id})
    assert (wrong.status, wrong.code) == (404, "connection_not_found")


async def test_a_replay_of_somebody_else_is_not_there(lagging: Reading) -> None:
    source, _ = await source_with(lagging)
    begun = await lagging.replay(lagging.owner, source)
    stranger, reader = lagging.client(await lagging.world.user()), lagging.client(source.user_id, "read")
    path, listing = f"{REPLAYS_PATH}/{begun['replay_id']}", f"{REPLAYS_PATH}?source_id={source.source_id}"

    async def code(client: AsgiClient, method: str, target: str) -> int:
        return (await client.request(method, target)).status

    for target in (path, listing):
        assert [
            await code(client, "GET", target) for client in (lagging.owner, lagging.operator, reader)
        ] == [
            200,
            200,
            200,
        ]
        assert await code(stranger, "GET", target) == 404
        assert await code(lagging.client(source.user_id, "none"), "GET", target) == 403
        assert await code(lagging.operator.with_key(None), "GET", target) == 401
    assert await code(stranger, "POST", f"{path}/cancel") == 404
    assert await code(reader, "POST", f"{path}/cancel") == 403
    assert (await reader.post(REPLAYS_PATH, bulk(source))).status == 403
    for unknown in ("rpl_0123456789abcdef", "rpl_1", "evt_0123456789abcdef"):
        answer = await lagging.owner.get(f"{REPLAYS_PATH}/{unknown}")
        assert (answer.status, answer.code) == (404, "replay_not_found")


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("", 422, "invalid_input"),
        ("source_id={id}&cursor=x", 400, "invalid_cursor"),
        ("source_id={id}&cursor=" + encode_cursor({"after": "x"}), 400, "invalid_cursor"),
        (
            "source_id={id}&cursor=" + encode_cursor({"created_ms": -1, "replay_id": "rpl_0123456789abcdef"}),
            400,
            "invalid_cursor",
        ),
        (
            "source_id={id}&cursor=" + encode_cursor({"created_ms": 1, "replay_id": "x" * 3000}),
            400,
            "invalid_cursor",
        ),
        ("source_id=src_1", 404, "source_not_found"),
    ],
)
async def test_a_list_that_can_not_be_made_is_refused(
    reading: Reading, query: str, status: int, code: str
) -> None:
    source, _ = await source_with(reading)
    answer = await reading.owner.get(f"{REPLAYS_PATH}?{query.format(id=source.source_id)}")
    assert (answer.status, answer.code) == (status, code)
