"""Sources as items: what is stored is what is read, and no update holds where it must not."""

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
from crossdock.hooks.model import CONNECTIONS_MAX, HeldSecret, Source, Status
from crossdock.hooks.store import sources as store
from crossdock.hooks.store.tables import MAIN

SOURCE = Source(
    source_id="src_0123456789abcdef",
    user_id="usr_0123456789abcdef",
    name="Stripe Prod",
    provider="stripe",
    status=Status.ACTIVE,
    created_at="2025-01-01T12:00:00Z",
    secrets=(HeldSecret("v1.sealed"),),
)

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
documents = st.none() | st.dictionaries(
    texts, st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | texts, st.lists, max_leaves=5)
)
previous = st.builds(HeldSecret, texts, st.integers(1, 2**45))
secrets = st.just(()) | st.builds(
    lambda current, earlier: (HeldSecret(current), *earlier), texts, st.lists(previous, max_size=5)
)
sources = st.builds(
    Source,
    source_id=st.just(SOURCE.source_id),
    user_id=st.just(SOURCE.user_id),
    name=texts,
    provider=st.sampled_from(["stripe", "custom"]),
    status=st.sampled_from([Status.ACTIVE, Status.PAUSED]),
    created_at=st.just(SOURCE.created_at),
    secrets=secrets,
    signing=documents,
    dedup=documents,
    response=documents,
    event_count=st.integers(0, 2**40),
)


def stored(source: Source = SOURCE, **attributes: Any) -> Item:
    return {**store.new_source(source, "hmac-sha256").item, **attributes}


def applied(update: Update, item: Item) -> Item | None:
    """The item after the update; None: refused."""
    return changed(item, update.key, update.changes) if holds(update.condition, item) else None


def with_(**fields: Any) -> Source:
    return msgspec.structs.replace(SOURCE, **fields)


@given(sources)
def test_a_source_is_read_as_it_was_stored(source: Source) -> None:
    item = stored(source)
    assert store.source_of(item) == source
    encode_item(MAIN, item)


def test_the_item_has_the_contracts_attributes() -> None:
    item = stored(with_(signing={"a": 1}))
    assert {
        "PK": "USER#usr_0123456789abcdef",
        "SK": "SRC#src_0123456789abcdef",
        "GSI3PK": "SRCID#src_0123456789abcdef",
        "GSI3SK": "SOURCE",
        "sourceId": "src_0123456789abcdef",
        "userId": "usr_0123456789abcdef",
        "name": "Stripe Prod",
        "provider": "stripe",
        "signingSecret": "v1.sealed",
        "signingAlgorithm": "hmac-sha256",
        "signing": '{"a":1}',
        "status": "active",
        "eventCount": 0,
        "createdAt": "2025-01-01T12:00:00Z",
    }.items() <= item.items()


def test_an_item_with_the_contracts_attributes_alone_can_be_read() -> None:
    item = stored()
    for attribute in ("connectionCount", "connectionsMade", "signingSecret", "signingAlgorithm"):
        del item[attribute]
    item["lastEventAt"] = "2025-01-02T12:00:00Z"
    assert store.source_of(item) == with_(secrets=(), last_event_at="2025-01-02T12:00:00Z")


@given(sources, sources)
def test_a_change_makes_the_source_what_it_shall_be(before: Source, after: Source) -> None:
    update = store.source_changed(before, after, "ed25519")
    item = applied(update, stored(before, eventCount=7)) if update.changes else stored(before, eventCount=7)
    assert item is not None
    assert store.source_of(item) == msgspec.structs.replace(after, event_count=7)


def test_a_change_touches_only_what_differs() -> None:
    update = store.source_changed(SOURCE, with_(name="Other"))
    assert [change.attribute for change in update.changes] == ["name"]
    assert store.source_changed(SOURCE, SOURCE).changes == ()


def test_true_and_1_are_not_taken_for_the_same() -> None:
    before, after = with_(dedup={"enabled": 1}), with_(dedup={"enabled": True})
    assert before == after
    assert store.source_changed(before, after).changes


UPDATES = {
    "changed": store.source_changed(SOURCE, with_(name="Other")),
    "secret": store.source_changed(SOURCE, with_(secrets=()), "hmac-sha256"),
    "deleted": store.source_deleted(SOURCE, 0),
    "counted": store.connection_counted(SOURCE),
}


@pytest.mark.parametrize("update", UPDATES.values(), ids=UPDATES)
def test_no_update_makes_a_source_or_touches_a_deleted_one(update: Update) -> None:
    assert holds(update.condition, stored())
    assert not holds(update.condition, None)
    assert not holds(update.condition, stored(status="deleted"))


def test_a_connection_less_does_not_make_a_source() -> None:
    update = store.connection_uncounted(SOURCE.user_id, SOURCE.source_id)
    assert not holds(update.condition, None)


@pytest.mark.parametrize(
    "other", [with_(provider="github"), with_(signing={"a": 2}), with_(secrets=(HeldSecret("v1.other"),))]
)
def test_how_it_is_signed_changes_only_from_what_was_read(other: Source) -> None:
    update = store.source_changed(SOURCE, with_(secrets=(HeldSecret("v1.new"),)), "hmac-sha256")
    assert applied(update, stored()) is not None
    assert applied(update, stored(other)) is None


def test_a_new_name_does_not_mind_another_secret() -> None:
    update = store.source_changed(SOURCE, with_(name="Other"))
    assert applied(update, stored(with_(secrets=(HeldSecret("v1.other"),)))) is not None


def test_the_50th_connection_is_counted_and_the_51st_is_not() -> None:
    item: Item | None = stored()
    for _ in range(CONNECTIONS_MAX):
        assert item is not None
        item = applied(store.connection_counted(SOURCE), item)
    assert item is not None
    assert (item["connectionCount"], item["connectionsMade"]) == (50, 50)
    assert applied(store.connection_counted(SOURCE), item) is None
    one_less = applied(store.connection_uncounted(SOURCE.user_id, SOURCE.source_id), item)
    assert one_less is not None
    again = applied(store.connection_counted(SOURCE), one_less)
    assert again is not None
    assert (again["connectionCount"], again["connectionsMade"]) == (50, 51)


def test_a_source_without_counters_has_room_and_can_be_deleted() -> None:
    item = stored()
    del item["connectionCount"], item["connectionsMade"]
    counted = applied(store.connection_counted(SOURCE), item)
    assert counted is not None
    assert counted["connectionCount"] == 1
    assert applied(store.source_deleted(SOURCE, 0), item) is not None


@pytest.mark.parametrize(
    ("made_when_read", "made_now", "holds_"), [(0, 0, True), (3, 3, True), (3, 4, False)]
)
def test_a_source_is_deleted_only_if_no_connection_was_made_since(
    made_when_read: int, made_now: int, holds_: bool
) -> None:
    update = store.source_deleted(SOURCE, made_when_read)
    assert holds(update.condition, stored(connectionsMade=made_now)) is holds_


def test_a_deleted_source_has_no_secrets_and_no_connections() -> None:
    full = with_(secrets=(HeldSecret("v1.a"), HeldSecret("v1.b", 5)))
    item = applied(store.source_deleted(full, 0), stored(full, connectionCount=3))
    assert item is not None
    assert item["connectionCount"] == 0
    assert store.source_of(item) == with_(status=Status.DELETED, secrets=())


def test_queries_name_their_partition_and_where_they_go_on() -> None:
    by_id = store.source_by_id("src_x")
    assert (by_id.index, by_id.partition) == ("GSI3", "SRCID#src_x")
    listed = store.sources_of_user("usr_x", 10, "src_x")
    assert (listed.partition, listed.sort, listed.limit) == ("USER#usr_x", SortPrefix("SRC#"), 10)
    assert listed.after == {"PK": "USER#usr_x", "SK": "SRC#src_x"}
    assert store.sources_of_user("usr_x", 10, None).after is None
