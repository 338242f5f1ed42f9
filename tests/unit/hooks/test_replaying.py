"""What a replay makes of deliveries: which begin anew, as what, and which are left alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.delivery.breaker import HEALTHY, BreakerState
from crossdock.delivery.schedule import parse_retry_policy
from crossdock.engines.items.port import Put, Update
from crossdock.hooks.model import (
    OPEN_STATES,
    Connection,
    Delivery,
    DeliveryState,
    Event,
    EventStatus,
    Source,
    Status,
)
from crossdock.hooks.rules.filters import parse_filters
from crossdock.hooks.rules.placement import Placement
from crossdock.hooks.rules.progress import counts_of, status_of
from crossdock.hooks.rules.providers.recipes import recipe_of
from crossdock.hooks.rules.replaying import (
    NotNow,
    Progress,
    Replay,
    ReplayState,
    Restart,
    generation_of,
    next_generation,
    not_now,
    placement_of_replay,
    restarted,
    status_of_delivery,
    takes,
)
from crossdock.hooks.rules.usage import Period
from crossdock.hooks.service.in_use import ConnectionInUse, SourceInUse
from crossdock.hooks.service.replaying import Planned, Wanted, plan
from crossdock.hooks.store.replays import event_replayed, new_replay, replay_of

NOW_MS = 1_735_732_800_000
EARLIER, OURS, LATER = (
    generation_of(f"rpl_{name}", NOW_MS + ms) for name, ms in (("a", -1), ("b", 0), ("c", 1))
)
STATES = list(DeliveryState)


def event(status: EventStatus = EventStatus.DELIVERED, **more: Any) -> Event:
    values: dict[str, Any] = {
        "event_id": "evt_1",
        "source_id": "src_1",
        "user_id": "usr_1",
        "status": status,
        "method": "POST",
        "path": "",
        "query": "",
        "headers": (),
        "body": b'{"kind":"paid"}',
        "content_type": "",
        "source_ip": "",
        "verified": True,
        "received_at": NOW_MS - 1000,
        "expires_at": NOW_MS // 1000 + 86_400,
        **more,
    }
    return Event(**values)


def delivery(
    state: DeliveryState = DeliveryState.DELIVERED, connection_id: str = "conn_1", **more: Any
) -> Delivery:
    values: dict[str, Any] = {
        "event_id": "evt_1",
        "connection_id": connection_id,
        "source_id": "src_1",
        "user_id": "usr_1",
        "received_at": NOW_MS - 1000,
        "expires_at": NOW_MS // 1000 + 86_400,
        "state": state,
        **more,
    }
    return Delivery(**values)


def connection(connection_id: str = "conn_1", **more: Any) -> Connection:
    values: dict[str, Any] = {
        "connection_id": connection_id,
        "source_id": "src_1",
        "user_id": "usr_1",
        "name": "billing",
        "destination_url": "https://example.com",
        "status": Status.ACTIVE,
        "created_at": "",
        "updated_at": "",
        **more,
    }
    return Connection(**values)


def in_use(connection_id: str = "conn_1", wants: str | None = None, **more: Any) -> ConnectionInUse:
    filters = None if wants is None else parse_filters([{"on": "body", "match": {"kind": wants}}])
    return ConnectionInUse(
        connection(connection_id, **more), filters, None, parse_retry_policy(None), (), (), HEALTHY
    )


def source(*connections: ConnectionInUse) -> SourceInUse:
    return SourceInUse(
        source=Source(
            source_id="src_1",
            user_id="usr_1",
            name="",
            provider="github",
            status=Status.ACTIVE,
            created_at="",
        ),
        recipe=recipe_of("github", None),
        secrets=(),
        dedup=None,
        reply=None,
        period=Period("2025-01-01", "2025-02-01"),
        over_limit=False,
        retention_seconds=86_400,
        connections=connections,
    )


# --- generations -----------------------------------------------------------------------------------


@given(st.integers(0, 9_999_999_999_999), st.integers(0, 9_999_999_999_999), st.text("az-_", min_size=1))
def test_of_two_generations_the_later_one_is_the_greater_text(first: int, second: int, name: str) -> None:
    earlier, later = sorted((first, second))
    if earlier < later:
        assert generation_of("zzz" + name, earlier) < generation_of(name, later)


@given(st.lists(st.integers(0, NOW_MS * 2), max_size=4), st.integers(0, NOW_MS))
def test_the_next_generation_is_after_all_there_are_and_not_before_now(times: list[int], now_ms: int) -> None:
    earlier = [generation_of("rpl_~", each) for each in times]
    made = next_generation("rpl_0", now_ms, ["", *earlier])
    assert all(made > each for each in earlier)
    assert int(made[:13]) >= now_ms
    assert made.endswith("-rpl_0")


@pytest.mark.parametrize(
    ("record", "takes_ours"),
    [
        (None, True),
        (delivery(generation=""), True),
        (delivery(generation=EARLIER), True),
        (delivery(generation=OURS), False),
        (delivery(generation=LATER), False),
    ],
    ids=["no record", "first delivery", "earlier", "ours", "later"],
)
def test_a_delivery_takes_a_generation_once_and_none_before_its_own(
    record: Delivery | None, takes_ours: bool
) -> None:
    assert takes(record, OURS) is takes_ours


# --- one delivery ----------------------------------------------------------------------------------


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("where", [Placement.SEND, Placement.HOLD])
def test_a_delivery_in_any_state_begins_anew_from_its_first_attempt(
    state: DeliveryState, where: Placement
) -> None:
    before = delivery(
        state, attempts=5, fence=7, next_attempt_at=NOW_MS + 9, lease_until=NOW_MS + 5, reason="gone"
    )
    after = restarted(before, OURS, where, NOW_MS)
    assert after.state is (DeliveryState.HELD if where is Placement.HOLD else DeliveryState.PENDING)
    assert (after.attempts, after.generation, after.fence) == (0, OURS, 8)
    assert (after.next_attempt_at, after.lease_until, after.reason) == (NOW_MS, None, None)


@pytest.mark.parametrize(
    ("fields", "state", "where"),
    [
        ({}, HEALTHY, Placement.SEND),
        ({"ordered": True}, HEALTHY, Placement.SEND),
        ({"status": Status.PAUSED}, HEALTHY, Placement.HOLD),
        ({"status": Status.PAUSED, "ordered": True}, HEALTHY, Placement.HOLD),
        ({"ordered": True, "max_in_flight": 1}, HEALTHY, Placement.HOLD),
        ({"rate_limit": {"requests": 1, "per_seconds": 1}}, HEALTHY, Placement.HOLD),
        ({}, BreakerState(open_until_ms=NOW_MS + 1), Placement.HOLD),
        ({"status": Status.DELETED, "ordered": True}, HEALTHY, Placement.NOWHERE),
    ],
)
def test_a_replay_waits_for_leave_to_call_but_never_for_its_turn(
    fields: dict[str, Any], state: BreakerState, where: Placement
) -> None:
    assert placement_of_replay(connection(**fields), state, NOW_MS) is where


@pytest.mark.parametrize("state", STATES)
def test_a_delivery_stands_as_its_event_would_if_it_were_the_only_one(state: DeliveryState) -> None:
    assert status_of_delivery(delivery(state)) is status_of(counts_of([state]))


def test_a_delivery_without_a_record_stands_as_one_that_was_not_wanted() -> None:
    assert status_of_delivery(None) is EventStatus.FILTERED


# --- one event -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (event(EventStatus.RECEIVED), NotNow.NOT_SENT_YET),
        (event(expires_at=NOW_MS // 1000 + 60), NotNow.EXPIRING),
        (event(expires_at=NOW_MS // 1000 + 61), None),
        *((event(status), None) for status in EventStatus if status is not EventStatus.RECEIVED),
    ],
)
def test_an_event_can_be_replayed_once_it_was_sent_and_as_long_as_there_is_time(
    found: Event, why: NotNow | None
) -> None:
    assert not_now(found, NOW_MS) is why


def planned(
    found: Event, records: Sequence[Delivery], to: SourceInUse, **wanted: Any
) -> tuple[list[str], int]:
    """The connections at which it begins anew, and how many it had."""
    by_connection = {each.connection_id: each for each in records}
    result = plan(found, by_connection, to, Wanted(OURS, **wanted), NOW_MS)
    assert all(
        restart.before is by_connection.get(restart.after.connection_id) for restart in result.restarts
    )
    assert result.deliveries == len(result.restarts) + result.had
    return [restart.after.connection_id for restart in result.restarts], result.had


def test_filters_are_asked_again_unless_they_are_not_to_be() -> None:
    to = source(in_use("conn_1", wants="paid"), in_use("conn_2", wants="refunded"), in_use("conn_3"))
    records = [delivery(DeliveryState.FILTERED, each) for each in ("conn_1", "conn_2")]
    assert planned(event(), records, to) == (["conn_1", "conn_3"], 0)
    assert planned(event(), records, to, asks_filters=False) == (["conn_1", "conn_2", "conn_3"], 0)
    assert planned(event(), records, to, connection_id="conn_2", asks_filters=False) == (["conn_2"], 0)
    assert planned(event(), records, to, connection_id="conn_2") == ([], 0)
    assert planned(event(), records, to, connection_id="conn_9") == ([], 0)


def test_what_a_replay_has_moved_is_counted_and_left_alone_whatever_became_of_it() -> None:
    to = source(in_use("conn_1"), in_use("conn_2"), in_use("conn_3"))
    records = [delivery(generation=OURS), delivery(connection_id="conn_2", generation=LATER)]
    assert planned(event(), records, to) == (["conn_3"], 1)
    assert planned(event(EventStatus.DELIVERED), records, to, status=EventStatus.FAILED) == ([], 1)
    assert planned(event(expires_at=NOW_MS // 1000), records, to) == ([], 1)


@pytest.mark.parametrize(
    ("status", "states", "again"),
    [
        (EventStatus.FAILED, ["delivered", "exhausted", "failed", "filtered"], ["conn_2", "conn_3"]),
        (EventStatus.RETRYING, ["delivered", "retrying", "exhausted", "pending"], ["conn_2"]),
        (EventStatus.PROCESSING, ["delivered", "held", "pending", "filtered"], ["conn_2", "conn_3"]),
        (EventStatus.DELIVERED, ["delivered", "filtered", "delivered", "filtered"], ["conn_1", "conn_3"]),
        (
            EventStatus.FILTERED,
            ["filtered", "filtered", "cancelled", None],
            ["conn_1", "conn_2", "conn_3", "conn_4"],
        ),
    ],
)
def test_with_a_status_only_those_begin_anew_that_stand_so_themselves(
    status: EventStatus, states: list[str | None], again: list[str]
) -> None:
    ids = [f"conn_{number}" for number in range(1, 5)]
    pairs = zip(ids, states, strict=True)
    records = [delivery(DeliveryState(state), each) for each, state in pairs if state is not None]
    found = event(status_of(counts_of(each.state for each in records)))
    assert found.status is status
    to = source(*map(in_use, ids))
    assert planned(found, records, to, status=status) == (again, 0)
    others = (other for other in EventStatus if other is not status)
    assert all(planned(found, records, to, status=other) == ([], 0) for other in others)


def test_an_event_on_its_way_for_the_first_time_is_left_alone() -> None:
    assert plan(event(EventStatus.RECEIVED), {}, source(in_use()), Wanted(OURS), NOW_MS) == Planned()


# --- what is written -------------------------------------------------------------------------------


@given(st.lists(st.sampled_from([None, *STATES]), min_size=1, max_size=6), st.data())
def test_an_event_replayed_counts_as_if_its_records_were_counted_anew(
    states: list[DeliveryState | None], data: st.DataObject
) -> None:
    befores = [
        None if state is None else delivery(state, f"conn_{number}") for number, state in enumerate(states)
    ]
    chosen = data.draw(st.lists(st.sampled_from(range(len(states))), min_size=1, unique=True))
    found = event(counts=counts_of(each.state for each in befores if each), version=4)
    restarts = [
        Restart(
            befores[number],
            restarted(befores[number] or delivery(connection_id=f"conn_{number}"), OURS, where, NOW_MS),
        )
        for number in chosen
        for where in [data.draw(st.sampled_from([Placement.SEND, Placement.HOLD]))]
    ]
    writes = event_replayed(found, restarts, NOW_MS)
    for write, restart in zip(writes, restarts, strict=False):
        assert isinstance(write, Put if restart.before is None else Update)
    after = [each.state for number, each in enumerate(befores) if each and number not in chosen]
    recounted = counts_of([*after, *(restart.after.state for restart in restarts)])
    if recounted == found.counts:
        assert len(writes) == len(restarts)
        assert all(restart.before and restart.before.state in OPEN_STATES for restart in restarts)
        return
    moved = writes[-1]
    assert isinstance(moved, Update)
    assert len(writes) == len(restarts) + 1
    changes = {change.attribute: getattr(change, "value", None) for change in moved.changes}
    assert changes["deliveryCounts"] == recounted
    assert changes["status"] == status_of(recounted).value
    assert changes["version"] == 5


@pytest.mark.parametrize(
    "fields",
    [{}, {"status": EventStatus.FAILED, "connection_id": "conn_1", "to_ms": 9}],
    ids=["bare", "full"],
)
def test_a_replay_is_read_as_it_was_written(fields: dict[str, Any]) -> None:
    values: dict[str, Any] = {
        "replay_id": "rpl_1",
        "source_id": "src_1",
        "user_id": "usr_1",
        "generation": OURS,
        "state": ReplayState.RUNNING,
        "created_at": NOW_MS,
        "from_ms": 1,
        "to_ms": 2,
        **fields,
    }
    replay = Replay(**values)
    put = new_replay(replay)
    assert replay_of(put.item) == replay
    assert msgspec.json.decode(msgspec.json.encode(put.item)) == put.item


def test_what_was_looked_at_was_replayed_or_skipped() -> None:
    assert Progress(looked_at=7, replayed=3, deliveries=5).skipped == 4
