"""Connections as items: what is stored is what is read, and no update holds where it must not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.engines.items.apply import changed
from crossdock.engines.items.conditions import holds
from crossdock.engines.items.limits import encode_item
from crossdock.engines.items.port import Item, SortPrefix, Update
from crossdock.hooks.model import Connection, HeldSecret, Status
from crossdock.hooks.store import connections as store
from crossdock.hooks.store.tables import MAIN, event_key
from crossdock.kit.sealing import Sealer, SealError

SEALER = Sealer(bytes(32))
NOW_MS = 1_735_732_800_000
CONNECTION = Connection(
    connection_id="conn_0123456789abcdef",
    source_id="src_0123456789abcdef",
    user_id="usr_0123456789abcdef",
    name="billing",
    destination_url="https://api.example.org/hook",
    status=Status.ACTIVE,
    created_at="2025-01-01T12:00:00Z",
    updated_at="2025-01-01T12:00:00Z",
    secrets=(HeldSecret("v1.sealed"),),
)
LATER = "2025-01-01T13:00:00Z"

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
objects = st.dictionaries(texts, values, min_size=1, max_size=3)
previous = st.builds(HeldSecret, texts, st.integers(1, 2**45))
connections = st.builds(
    Connection,
    connection_id=st.just(CONNECTION.connection_id),
    source_id=st.just(CONNECTION.source_id),
    user_id=st.just(CONNECTION.user_id),
    name=texts,
    destination_url=texts,
    status=st.sampled_from([Status.ACTIVE, Status.PAUSED]),
    created_at=st.just(CONNECTION.created_at),
    updated_at=st.just(CONNECTION.updated_at),
    secrets=st.builds(
        lambda current, earlier: (HeldSecret(current), *earlier), texts, st.lists(previous, max_size=5)
    ),
    filters=st.none() | st.lists(objects, max_size=3),
    transform=st.none() | st.lists(objects, max_size=3),
    retry_config=st.none() | objects,
    headers=st.dictionaries(texts, texts, max_size=3),
    rate_limit=st.none() | objects,
    max_in_flight=st.none() | st.integers(1, 1000),
    ordered=st.booleans(),
    ordered_cursor=st.none() | texts,
    timeout_seconds=st.integers(1, 60),
    delivery_count=st.integers(0, 2**40),
    failure_count=st.integers(0, 2**40),
    breaker=st.none() | objects,
    paused_reason=st.none() | texts,
)


def stored(connection: Connection = CONNECTION, **attributes: Any) -> Item:
    return {**store.new_connection(connection).item, **attributes}


def applied(update: Update, item: Item) -> Item | None:
    """The item after the update; None: refused."""
    return changed(item, update.key, update.changes) if holds(update.condition, item) else None


def with_(**fields: Any) -> Connection:
    return msgspec.structs.replace(CONNECTION, **fields)


@given(connections)
def test_a_connection_is_read_as_it_was_stored(connection: Connection) -> None:
    item = stored(connection)
    assert store.connection_of(item) == connection
    encode_item(MAIN, item)


def test_the_item_has_the_contracts_attributes() -> None:
    item = stored(with_(filters=[{"on": "body"}], transform=[{"remove": ["a"]}], retry_config={"b": 1}))
    assert {
        "PK": "SRC#src_0123456789abcdef",
        "SK": "CONN#conn_0123456789abcdef",
        "GSI3PK": "CONNID#conn_0123456789abcdef",
        "GSI3SK": "CONNECTION",
        "connectionId": "conn_0123456789abcdef",
        "sourceId": "src_0123456789abcdef",
        "userId": "usr_0123456789abcdef",
        "name": "billing",
        "destinationUrl": "https://api.example.org/hook",
        "signingSecret": "v1.sealed",
        "filters": '[{"on":"body"}]',
        "transform": '[{"remove":["a"]}]',
        "retryConfig": '{"b":1}',
        "status": "active",
        "deliveryCount": 0,
        "failureCount": 0,
        "createdAt": "2025-01-01T12:00:00Z",
        "updatedAt": "2025-01-01T12:00:00Z",
    }.items() <= item.items()


@given(connections, connections)
def test_a_change_makes_the_connection_what_it_shall_be(before: Connection, after: Connection) -> None:
    update = store.connection_changed(before, after)
    item = stored(before, deliveryCount=7, failureCount=8)
    found = applied(update, item) if update.changes else item
    assert found is not None
    assert store.connection_of(found) == msgspec.structs.replace(after, delivery_count=7, failure_count=8)


def test_a_change_says_when_it_was_and_nothing_changed_says_nothing() -> None:
    update = store.connection_changed(CONNECTION, with_(name="other", updated_at=LATER))
    assert [change.attribute for change in update.changes] == ["name", "updatedAt"]
    assert store.connection_changed(CONNECTION, with_(updated_at=LATER)).changes == ()


def test_true_and_1_are_not_taken_for_the_same() -> None:
    before, after = with_(filters=[{"match": 1}]), with_(filters=[{"match": True}])
    assert before == after
    assert store.connection_changed(before, after).changes


ORDERED = with_(ordered=True)
UPDATES = {
    "changed": store.connection_changed(ORDERED, with_(name="other", ordered=True)),
    "rotated": store.connection_changed(ORDERED, with_(secrets=(HeldSecret("v1.new"),), ordered=True)),
    "paused": store.connection_paused(ORDERED, "gone", LATER),
    "breaker": store.breaker_changed(ORDERED, {"consecutive_failures": 1}),
    "walked": store.walked_to(ORDERED, "EVT#1#x"),
    "deleted": store.connection_deleted(ORDERED, LATER),
}


@pytest.mark.parametrize("update", UPDATES.values(), ids=UPDATES)
def test_no_update_makes_a_connection_or_touches_a_deleted_one(update: Update) -> None:
    assert holds(update.condition, stored(ORDERED))
    assert not holds(update.condition, None)
    assert not holds(update.condition, stored(ORDERED, status="deleted"))


@pytest.mark.parametrize(
    ("after", "meanwhile"),
    [
        (with_(secrets=(HeldSecret("v1.new"),)), with_(secrets=(HeldSecret("v1.other"),))),
        (with_(ordered=True), with_(ordered=True)),
        (with_(headers={"a": "v1.new"}), with_(headers={"a": "v1.other"})),
    ],
)
def test_what_was_decided_by_what_it_was_holds_only_from_there(
    after: Connection, meanwhile: Connection
) -> None:
    update = store.connection_changed(CONNECTION, after)
    assert applied(update, stored()) is not None
    assert applied(update, stored(meanwhile)) is None


def test_only_an_active_connection_is_paused_for_a_reason() -> None:
    update = store.connection_paused(CONNECTION, "gone", LATER)
    paused = applied(update, stored())
    assert paused is not None
    assert store.connection_of(paused) == with_(status=Status.PAUSED, paused_reason="gone", updated_at=LATER)
    assert applied(update, paused) is None


def test_a_breaker_changes_only_from_what_was_read() -> None:
    first, second = {"consecutive_failures": 1}, {"consecutive_failures": 2}
    once = applied(store.breaker_changed(CONNECTION, first), stored())
    assert once is not None
    assert store.connection_of(once).breaker == first
    assert applied(store.breaker_changed(CONNECTION, second), once) is None
    healed = applied(store.breaker_changed(store.connection_of(once), {}), once)
    assert healed == stored()


@pytest.mark.parametrize(("walked", "holds_"), [("EVT#2#x", True), ("EVT#1#x", False), ("EVT#0#x", False)])
def test_a_walk_only_goes_forward(walked: str, holds_: bool) -> None:
    item = stored(with_(ordered=True, ordered_cursor="EVT#1#x"))
    assert (applied(store.walked_to(ORDERED, walked), item) is not None) is holds_


def test_who_is_not_ordered_is_not_walked_for() -> None:
    assert applied(store.walked_to(CONNECTION, "EVT#2#x"), stored()) is None


def test_an_order_that_begins_now_leaves_out_no_event_that_comes_from_now_on() -> None:
    cursor = store.ordered_from("src_x", NOW_MS)
    assert cursor < event_key("src_x", NOW_MS, "evt_x")["SK"]
    assert cursor > event_key("src_x", NOW_MS - 600_000, "evt_x")["SK"]


def test_a_deleted_connection_has_no_secrets_and_no_headers() -> None:
    full = with_(secrets=(HeldSecret("v1.a"), HeldSecret("v1.b", 5)), headers={"a": "v1.c"})
    item = applied(store.connection_deleted(full, LATER), stored(full))
    assert item is not None
    deleted = with_(status=Status.DELETED, secrets=(), headers={}, updated_at=LATER)
    assert store.connection_of(item) == deleted


def test_headers_are_sealed_each_for_its_connection_and_name() -> None:
    headers = {"Authorization": "Bearer tök", "X-Empty": ""}
    sealed = store.sealed_headers(CONNECTION.connection_id, headers, SEALER)
    assert "tök" not in str(sealed)
    assert dict(store.unsealed_headers(with_(headers=sealed), SEALER)) == headers
    moved = {"X-Other": sealed["Authorization"]}
    for wrong in (with_(headers=moved), with_(headers=sealed, connection_id="conn_other")):
        with pytest.raises(SealError):
            store.unsealed_headers(wrong, SEALER)


def test_queries_name_their_partition_and_where_they_go_on() -> None:
    by_id = store.connection_by_id("conn_x")
    assert (by_id.index, by_id.partition) == ("GSI3", "CONNID#conn_x")
    listed = store.connections_of_source("src_x", 10, "conn_x")
    assert (listed.partition, listed.sort, listed.limit) == ("SRC#src_x", SortPrefix("CONN#"), 10)
    assert listed.after == {"PK": "SRC#src_x", "SK": "CONN#conn_x"}
    assert store.connections_of_source("src_x", 10, None).after is None
