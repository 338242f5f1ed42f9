"""A source's events: listed newest first, by status and time, and searched, in pages that hold still."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from tests.support.asgi_client import Answer
from tests.support.hooks_events import EVENTS_PATH, Reading, data_of, every_page, made_event, source_path

from crossdock.hooks.model import DeliveryState, EventStatus, Source
from crossdock.hooks.rules.searching import SearchBudget, moment
from crossdock.hooks.store.events import new_event
from crossdock.kit.clock import Clock
from crossdock.kit.pagination import encode_cursor

FAILED, DELIVERED = DeliveryState.EXHAUSTED, DeliveryState.DELIVERED


def ids(entries: list[dict[str, Any]]) -> list[str]:
    return [each["event_id"] for each in entries]


def q(*rules: dict[str, Any]) -> str:
    return quote(msgspec.json.encode(rules).decode())


async def listed(reading: Reading, source: Source, **query: object) -> list[dict[str, Any]]:
    """All pages. `from` is a word of Python's: it is given as `since`."""
    if "since" in query:
        query["from"] = query.pop("since")
    return data_of(await every_page(reading.owner, source_path(source, "events"), **query))


async def asked(reading: Reading, source: Source, query: str) -> Answer:
    return await reading.owner.get(source_path(source, f"events?{query}"))


# --- what an entry says ----------------------------------------------------------------------------


async def test_an_entry_says_what_came_and_what_became_of_it_without_its_body(reading: Reading) -> None:
    source = await reading.world.source()
    event = await reading.event(
        source,
        {"conn_a": DELIVERED, "conn_b": FAILED},
        method="PUT",
        path="/orders",
        body="größe".encode(),
        content_type="text/plain",
        verified=False,
    )
    assert await listed(reading, source) == [
        {
            "event_id": event.event_id,
            "source_id": source.source_id,
            "user_id": source.user_id,
            "status": "failed",
            "method": "PUT",
            "path": "/orders",
            "content_type": "text/plain",
            "size": 7,
            "verified": False,
            "received_at": moment(event.received_at),
            "processed_at": moment(event.received_at),
            "delivered_at": None,
            "expires_at": moment(event.expires_at * 1000),
            "counts": {"delivered": 1, "failed": 1},
        }
    ]


async def test_a_source_without_events_has_an_empty_list(reading: Reading) -> None:
    source = await reading.world.source()
    answer = await asked(reading, source, "")
    assert (answer.status, answer.json()) == (200, {"data": [], "next_cursor": None})


# --- pages -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 7, 25, 60, 200])
async def test_pages_of_any_size_have_every_event_once_newest_first(reading: Reading, limit: int) -> None:
    source = await reading.world.source()
    events = await reading.events(source, [{} for _ in range(60)])
    pages = await every_page(reading.owner, source_path(source, "events"), limit=limit)
    assert ids(data_of(pages)) == [each.event_id for each in reversed(events)]
    assert len(pages) == -(-60 // limit)


async def test_pages_hold_still_while_events_come_and_move_on(reading: Reading) -> None:
    source = await reading.world.source()
    connection = await reading.world.connection(source, "http://127.0.0.1:1/")
    before = await reading.events(source, [{} for _ in range(40)], {connection.connection_id: DELIVERED})
    seen: list[str] = []
    stop = False

    async def others() -> int:
        moves = 0
        while not stop:
            reading.clock.advance(ms=10)
            await reading.events(source, [{}, {}])
            replay = f"{EVENTS_PATH}/{before[moves % 40].event_id}/replay"
            assert (await reading.owner.post(replay, {})).status == 201
            moves += 1
        return moves

    writer = asyncio.create_task(others())
    cursor: str | None = None
    try:
        while True:
            page = await asked(reading, source, "limit=3" + (f"&cursor={cursor}" if cursor else ""))
            seen += ids(page.json()["data"])
            await asyncio.sleep(0.01)
            cursor = page.json()["next_cursor"]
            if cursor is None:
                break
    finally:
        stop = True
    assert await writer > 3
    assert len(seen) == len(set(seen))
    assert seen[-40:] == [each.event_id for each in reversed(before)]
    await reading.recount(source)


async def test_large_bodies_are_listed_as_well(reading: Reading) -> None:
    source = await reading.world.source()
    events = await reading.events(source, [{"body": b"x" * 200_000} for _ in range(30)])
    entries = await listed(reading, source, limit=30)
    assert ids(entries) == [each.event_id for each in reversed(events)]
    assert {each["size"] for each in entries} == {200_000}


# --- by time and status ----------------------------------------------------------------------------


async def test_times_are_inclusive_to_the_millisecond(reading: Reading) -> None:
    source = await reading.world.source()
    events = await reading.events(source, [{} for _ in range(6)])
    since, until = moment(events[1].received_at), moment(events[4].received_at)
    assert ids(await listed(reading, source, since=since)) == [each.event_id for each in events[:0:-1]]
    assert ids(await listed(reading, source, to=until)) == [each.event_id for each in events[4::-1]]
    both = await listed(reading, source, since=since, to=until, limit=2)
    assert ids(both) == [each.event_id for each in events[4:0:-1]]
    berlin = "2025-01-01T00:00:00%2B01:00"
    assert await listed(reading, source, to=berlin) == []


async def test_only_events_of_a_status_are_listed_when_one_is_asked_for(reading: Reading) -> None:
    source = await reading.world.source()
    events = [
        await reading.event(source, {"conn_a": state}, received_at=reading.now_ms + number)
        for number, state in enumerate([*DeliveryState, *DeliveryState])
    ]
    fresh = made_event(source, received_at=reading.now_ms, status=EventStatus.RECEIVED)
    await reading.items.put((put := new_event(fresh, reading.now_ms)).table, put.item)
    by_status = {
        status: ids(await listed(reading, source, status=status, limit=2))
        for status in ("received", "processing", "filtered", "delivered", "retrying", "failed")
    }
    assert by_status.pop("received") == [fresh.event_id]
    for status, found in by_status.items():
        assert found == [each.event_id for each in reversed(events) if each.status.value == status]
        assert found


# --- searching -------------------------------------------------------------------------------------


async def test_a_search_asks_filters_of_body_headers_query_path_and_method(reading: Reading) -> None:
    source = await reading.world.source()
    fields: list[dict[str, Any]] = [
        {"body": b'{"order": {"total": 90}}'},
        {"body": b'{"order": {"total": 120}}', "headers": (("X-Shop", "north"),)},
        {"query": "shop=north&page=2", "path": "/orders/7", "method": "PUT"},
        {"body": b"plain text"},
        {"body": b"\xff\x00\xfe"},
    ]
    events = await reading.events(source, fields)

    async def found(*rules: dict[str, Any]) -> list[int]:
        entries = await listed(reading, source, q=q(*rules))
        return [next(n for n, each in enumerate(events) if each.event_id == i) for i in ids(entries)]

    over_100 = {"on": "body", "match": {"order": {"total": {"$gt": 100}}}}
    assert await found(over_100) == [1]
    assert await found({"on": "headers", "match": {"x-shop": "north"}}) == [1]
    assert await found(over_100, {"on": "headers", "match": {"x-shop": "south"}}) == []
    assert await found({"on": "query", "match": {"shop": "north"}}) == [2]
    assert await found({"on": "path", "match": {"$startsWith": "/orders/"}}) == [2]
    assert await found({"on": "method", "match": "PUT"}) == [2]
    assert await found({"on": "body", "match": {"$in": "plain"}}) == [3]
    assert await found() == [4, 3, 2, 1, 0]


async def test_a_search_ends_a_page_at_its_budget_and_goes_on_from_there(reading: Reading) -> None:
    searching = await reading.another(budget=SearchBudget(events=10))
    source = await reading.world.source()
    fields = [{"body": b'{"n": %d}' % number} for number in range(35)]
    events = await reading.events(source, fields)
    rule = q({"on": "body", "match": {"n": {"$in": [3, 4, 33]}}})
    pages = await every_page(searching.owner, source_path(source, "events"), q=rule, limit=5)
    assert [len(page.json()["data"]) for page in pages] == [1, 0, 0, 2]
    assert ids(data_of(pages)) == [events[number].event_id for number in (33, 4, 3)]
    assert [page.json()["next_cursor"] is None for page in pages] == [False, False, False, True]


class Hurrying:
    """Every look at it takes longer than a page may."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._passed = 0.0

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def monotonic(self) -> float:
        self._passed += 3.0
        return self._passed


async def test_a_search_ends_a_page_when_its_time_is_up_but_never_without_a_look(reading: Reading) -> None:
    searching = await reading.another(clock=Hurrying(reading.clock))
    source = await reading.world.source()
    events = await reading.events(source, [{} for _ in range(4)])
    pages = await every_page(searching.owner, source_path(source, "events"), status="filtered")
    assert ids(data_of(pages)) == [each.event_id for each in reversed(events)]
    assert len(pages) == len(events)


async def test_a_full_page_is_all_that_is_looked_at(reading: Reading) -> None:
    source = await reading.world.source()
    events = await reading.events(source, [{"body": b'{"n": %d}' % (number % 2)} for number in range(12)])
    rule = q({"on": "body", "match": {"n": 0}})
    pages = await every_page(reading.owner, source_path(source, "events"), q=rule, limit=3)
    assert [len(page.json()["data"]) for page in pages] == [3, 3]
    assert ids(data_of(pages)) == [each.event_id for each in events[10::-2]]


# --- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "status", "code", "fields"),
    [
        ("status=lost", 422, "invalid_input", [("status", "not_a_choice")]),
        ("from=yesterday", 422, "invalid_input", [("from", "wrong_format")]),
        ("to=2025-01-01T00:00:00+01:00", 422, "invalid_input", [("to", "wrong_format")]),
        (
            "from=2025-01-02T00:00:00Z&to=2025-01-01T00:00:00Z",
            422,
            "invalid_input",
            [("from", "out_of_range")],
        ),
        ("q=%5B", 422, "invalid_input", [("q", "wrong_format")]),
        ("q=7", 422, "invalid_input", [("q", "wrong_type")]),
        (
            "q=%5B%7B%22on%22%3A%22tail%22%2C%22match%22%3A1%7D%5D",
            422,
            "invalid_input",
            [("q[0].on", "not_a_choice")],
        ),
        ("q=" + "%5B" * 5000, 422, "invalid_input", [("q", "wrong_format")]),
        ("limit=0", 422, "invalid_input", [("limit", "out_of_range")]),
        ("limit=201", 422, "invalid_input", [("limit", "out_of_range")]),
        ("cursor=nonsense", 400, "invalid_cursor", None),
        ("cursor=" + encode_cursor({"after": "REF#01"}), 400, "invalid_cursor", None),
        ("cursor=" + encode_cursor({"after_id": "x"}), 400, "invalid_cursor", None),
        (
            "from=2025-01-01T00:00:00Z&cursor="
            + encode_cursor({"after": "EVT#0000000000000#evt_0123456789abcdef"}),
            400,
            "invalid_cursor",
            None,
        ),
    ],
)
async def test_a_list_that_can_not_be_made_is_refused_with_the_reason(
    reading: Reading, query: str, status: int, code: str, fields: list[tuple[str, str]] | None
) -> None:
    answer = await asked(reading, await reading.world.source(), query)
    assert (answer.status, answer.code) == (status, code)
    if fields is not None:
        assert answer.fields == fields


async def test_a_source_that_is_not_ones_own_is_not_there(lagging: Reading) -> None:
    source = await lagging.world.source()
    await lagging.event(source)
    stranger = lagging.client(await lagging.world.user())
    for rest in ("events", "refused"):
        path = source_path(source, rest)
        assert (await lagging.owner.get(path)).status == 200
        assert (await lagging.operator.get(path)).status == 200
        assert (await stranger.get(path)).code == "source_not_found"
        assert (await lagging.client(lagging.world.user_id, "read").get(path)).status == 200
        assert (await lagging.client(lagging.world.user_id, "none").get(path)).status == 403
        assert (await lagging.operator.with_key(None).get(path)).status == 401
        for unknown in ("src_0123456789abcdef", "src_1", "nothing"):
            answer = await lagging.owner.get(f"/v1/hooks/sources/{unknown}/{rest}")
            assert (answer.status, answer.code) == (404, "source_not_found")
