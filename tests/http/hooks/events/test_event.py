"""One event: shown with its deliveries, its body byte for byte, and every call that was made for it."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from tests.support.asgi_client import Answer
from tests.support.hooks_engine import accepted, send
from tests.support.hooks_events import (
    EVENTS_PATH,
    Reading,
    data_of,
    event_item,
    every_page,
    made_delivery,
    made_event,
    source_path,
)
from tests.support.hooks_sources import KeysByHeart, key_of
from tests.support.receiver import Receiver

from crossdock.hooks.model import Attempt, DeliveryState, Event
from crossdock.hooks.rules.searching import moment
from crossdock.hooks.service.trials import Sample
from crossdock.hooks.store.deliveries import new_attempt, new_delivery
from crossdock.hooks.store.duplicates import RefusedRequest, refused_request
from crossdock.hooks.store.sources import source_deleted
from crossdock.hooks.store.tables import EVENTS
from crossdock.kit.pagination import encode_cursor

KB = 1024


async def shown(reading: Reading, event: Event | str) -> dict[str, Any]:
    event_id = event if isinstance(event, str) else event.event_id
    answer = await reading.owner.get(f"{EVENTS_PATH}/{event_id}")
    assert answer.status == 200, answer
    found: dict[str, Any] = answer.json()
    return found


async def body_of(reading: Reading, event: Event) -> Answer:
    return await reading.owner.get(f"{EVENTS_PATH}/{event.event_id}/body")


# --- shown -----------------------------------------------------------------------------------------


async def test_an_event_is_found_right_after_its_acceptance(lagging: Reading, receiver: Receiver) -> None:
    source = await lagging.world.source()
    await lagging.world.connection(source, receiver.url)
    event_id = await accepted(lagging.node, source, b'{"n": 7}')
    found = await shown(lagging, event_id)
    assert (found["event_id"], found["body"]) == (event_id, '{"n": 7}')
    await lagging.node.settled()
    assert (await shown(lagging, event_id))["status"] == "delivered"


async def test_an_event_that_no_index_has_is_found_by_its_deliveries(reading: Reading) -> None:
    source = await reading.world.source()
    event = made_event(source, received_at=reading.now_ms)
    unindexed = {name: value for name, value in event_item(event).items() if not name.startswith("GSI")}
    await reading.items.put(EVENTS, unindexed)
    assert (await reading.owner.get(f"{EVENTS_PATH}/{event.event_id}")).status == 404
    record = new_delivery(made_delivery(event, "conn_a", DeliveryState.FILTERED))
    await reading.items.put(record.table, record.item)
    assert (await shown(reading, event))["event_id"] == event.event_id


async def test_an_event_is_shown_with_its_request_and_its_deliveries(
    reading: Reading, receiver: Receiver
) -> None:
    source = await reading.world.source()
    good = await reading.world.connection(source, receiver.url)
    bad = await reading.world.connection(source, "http://127.0.0.1:1/")
    headers = [("X-Shop", "north"), ("x-shop", "south"), ("authorization", "Bearer secret")]
    answer = await reading.node.client.request(
        "POST", f"/in/{source.source_id}/orders/7?a=1&a=2", body=b"text", headers=headers
    )
    await reading.node.settled()
    found = await shown(reading, answer.json()["event_id"])
    assert (found["method"], found["path"], found["query"]) == ("POST", "/orders/7", "a=1&a=2")
    assert found["headers"] == [
        ["host", "test"],
        ["x-shop", "north"],
        ["x-shop", "south"],
        ["authorization", "[redacted]"],
    ]
    assert (found["body"], found["body_encoding"], found["body_truncated"]) == ("text", "utf-8", False)
    assert (found["source_ip"], found["size"], found["status"]) == ("127.0.0.1", 4, "retrying")
    by_connection = {each.pop("connection_id"): each for each in found["deliveries"]}
    assert by_connection[good.connection_id] == {
        "state": "delivered",
        "attempts": 1,
        "next_attempt_at": None,
        "generation": "",
        "reason": None,
    }
    retrying = by_connection[bad.connection_id]
    assert (retrying["state"], retrying["attempts"]) == ("retrying", 1)
    assert retrying["next_attempt_at"] == moment(reading.now_ms + 5_000)


@pytest.mark.parametrize(
    ("body", "text", "encoding"),
    [
        (b"", "", "utf-8"),
        ("größe €".encode(), "größe €", "utf-8"),
        (b"a\0b", "a\0b", "utf-8"),
        (b"\xff\xfe", base64.b64encode(b"\xff\xfe").decode(), "base64"),
        (b"x" * (64 * KB), "x" * (64 * KB), "utf-8"),
        (b"x" * (64 * KB + 1), None, "utf-8"),
        (b"\xff" * (256 * KB), None, "base64"),
    ],
    ids=["empty", "text", "nul", "bytes", "64 KB", "over 64 KB", "256 KB of bytes"],
)
async def test_a_body_is_shown_as_text_or_base64_and_downloaded_byte_for_byte(
    reading: Reading, body: bytes, text: str | None, encoding: str
) -> None:
    event = await reading.event(await reading.world.source(), body=body)
    found = await shown(reading, event)
    assert (found["body"], found["body_encoding"], found["size"]) == (text, encoding, len(body))
    assert found["body_truncated"] is (text is None)
    download = await reading.owner.get(found["body_url"])
    assert (download.status, download.body) == (200, body)


@pytest.mark.parametrize(
    ("content_type", "answered"),
    [
        ("application/json", "application/json"),
        ("text/html", "text/html"),
        ('multipart/form-data; boundary="a b"', 'multipart/form-data; boundary="a b"'),
        ("", "application/octet-stream"),
        ("text/plain\r\nset-cookie: a=b", "application/octet-stream"),
        ("text/größe", "application/octet-stream"),
        ("x" * 300, "application/octet-stream"),
    ],
)
async def test_a_body_comes_as_what_it_was_sent_as_and_no_browser_shows_it_as_ours(
    reading: Reading, content_type: str, answered: str
) -> None:
    event = await reading.event(await reading.world.source(), content_type=content_type, body=b"<script>")
    answer = await body_of(reading, event)
    assert answer.all("content-type") == [answered]
    assert answer.header("content-disposition") == f'attachment; filename="{event.event_id}"'
    assert answer.header("x-content-type-options") == "nosniff"
    assert answer.header("content-security-policy") == "default-src 'none'; sandbox"
    assert answer.header("set-cookie") is None
    assert answer.header("cache-control") == "no-store"


async def test_more_deliveries_than_a_page_has_are_all_shown(reading: Reading) -> None:
    states = {f"conn_{number:03}": DeliveryState.CANCELLED for number in range(230)}
    event = await reading.event(await reading.world.source(), states)
    found = await shown(reading, event)
    assert [each["connection_id"] for each in found["deliveries"]] == sorted(states)


@pytest.mark.parametrize("rest", ["", "/body", "/attempts"])
async def test_an_event_that_is_not_ones_own_is_not_there(lagging: Reading, rest: str) -> None:
    event = await lagging.event(await lagging.world.source())
    stranger = lagging.client(await lagging.world.user())
    path = f"{EVENTS_PATH}/{event.event_id}{rest}"
    assert (await lagging.owner.get(path)).status == 200
    assert (await lagging.operator.get(path)).status == 200
    assert (await lagging.client(lagging.world.user_id, "read").get(path)).status == 200
    assert (await lagging.client(lagging.world.user_id, "none").get(path)).status == 403
    assert (await lagging.operator.with_key(None).get(path)).status == 401
    assert (await stranger.get(path)).code == "event_not_found"
    for unknown in ("evt_0123456789abcdef", "evt_1", "src_0123456789abcdef", "evt_%C3%BC23456789abcde"):
        answer = await lagging.owner.get(f"{EVENTS_PATH}/{unknown}{rest}")
        assert (answer.status, answer.code) == (404, "event_not_found")


async def test_an_event_is_gone_when_its_retention_ends(reading: Reading) -> None:
    event = await reading.event(await reading.world.source())
    path = f"{EVENTS_PATH}/{event.event_id}"
    reading.clock.advance(ms=event.expires_at * 1000 - 1 - reading.now_ms)
    assert (await reading.owner.get(path)).status == 200
    reading.clock.advance(ms=1)
    assert (await reading.owner.get(path)).code == "event_not_found"


async def test_what_is_tried_out_on_an_event_gets_its_request(reading: Reading) -> None:
    source = await reading.world.source()
    event = await reading.event(
        source, body=b"\xff", headers=(("a", "b"),), query="x=1", path="/p", method="PUT"
    )
    find = reading.services.history.find_sample
    owner = await KeysByHeart().resolve(key_of(source.user_id))
    stranger = await KeysByHeart().resolve(key_of(await reading.world.user()))
    assert owner is not None
    assert stranger is not None
    assert await find(owner, event.event_id) == Sample(b"\xff", (("a", "b"),), "x=1", "/p", "PUT")
    assert await find(stranger, event.event_id) is None
    assert await find(owner, "evt_0123456789abcdef") is None


# --- attempts --------------------------------------------------------------------------------------


def attempt(event: Event, connection_id: str, number: int, at_ms: int, **more: Any) -> Attempt:
    values: dict[str, Any] = {
        "event_id": event.event_id,
        "connection_id": connection_id,
        "attempt_number": number,
        "destination_url": "https://example.com/hook",
        "status_code": 500,
        "response_body": "no",
        "latency_ms": 12,
        "error": None,
        "attempted_at": at_ms,
        **more,
    }
    return Attempt(**values)


async def keep(reading: Reading, event: Event, *attempts: tuple[Attempt, str]) -> None:
    items = [new_attempt(each, event.expires_at, mark).item for each, mark in attempts]
    await reading.items.write_many(EVENTS, items)


async def attempts_of(reading: Reading, event: Event, limit: int = 50) -> list[dict[str, Any]]:
    path = f"{EVENTS_PATH}/{event.event_id}/attempts"
    return data_of(await every_page(reading.owner, path, limit=limit))


@pytest.mark.parametrize("limit", [1, 2, 50])
async def test_attempts_are_listed_in_the_order_in_which_they_were_made(reading: Reading, limit: int) -> None:
    event = await reading.event(await reading.world.source())
    at, generation = event.received_at, "1735732800000-rpl_1"
    await keep(
        reading,
        event,
        (attempt(event, "conn_a", 1, at + 100), ""),
        (attempt(event, "conn_b", 1, at + 100), ""),
        (attempt(event, "conn_a", 2, at + 5000), "i1"),
        (attempt(event, "conn_a", 2, at + 6000), ""),
        (attempt(event, "conn_b", 1, at + 7000, generation=generation), ""),
        (attempt(event, "conn_a", 3, at + 8000, status_code=0, error="timeout: No answer."), ""),
    )
    found = await attempts_of(reading, event, limit)
    assert [(each["connection_id"], each["attempt_number"]) for each in found] == [
        ("conn_a", 1),
        ("conn_b", 1),
        ("conn_a", 2),
        ("conn_a", 2),
        ("conn_b", 1),
        ("conn_a", 3),
    ]
    assert found[4]["generation"] == generation
    assert found[5] == {
        "connection_id": "conn_a",
        "attempt_number": 3,
        "generation": "",
        "destination_url": "https://example.com/hook",
        "status_code": 0,
        "response_body": "no",
        "latency_ms": 12,
        "error": "timeout: No answer.",
        "attempted_at": moment(at + 8000),
    }


async def test_pages_of_attempts_have_each_once_while_more_are_made(reading: Reading) -> None:
    event = await reading.event(await reading.world.source())
    at = event.received_at
    await keep(reading, event, *((attempt(event, f"conn_{n:03}", 1, at + n % 7), "") for n in range(220)))
    path = f"{EVENTS_PATH}/{event.event_id}/attempts"
    first = await reading.owner.get(f"{path}?limit=150")
    await keep(reading, event, (attempt(event, "conn_000", 2, at + 60_000), ""))
    cursor = first.json()["next_cursor"]
    rest = await reading.owner.get(f"{path}?limit=150&cursor={cursor}")
    found = data_of([first, rest])
    assert len(found) == len({(each["connection_id"], each["attempt_number"]) for each in found}) == 221
    assert [each["attempted_at"] for each in found] == sorted(each["attempted_at"] for each in found)
    assert rest.json()["next_cursor"] is None


async def test_an_event_that_was_never_sent_has_no_attempts(reading: Reading) -> None:
    event = await reading.event(await reading.world.source())
    assert await attempts_of(reading, event) == []


async def test_a_cursor_of_another_list_is_refused(reading: Reading) -> None:
    event = await reading.event(await reading.world.source())
    cursor = encode_cursor({"after": "EVT#1735732800000#evt_0123456789abcdef"})
    answer = await reading.owner.get(f"{EVENTS_PATH}/{event.event_id}/attempts?cursor={cursor}")
    assert (answer.status, answer.code) == (400, "invalid_cursor")


# --- refused ---------------------------------------------------------------------------------------


async def test_what_a_source_refused_is_listed_newest_first_with_the_reason(reading: Reading) -> None:
    source = await reading.world.source(secret="right")
    assert (await send(reading.node, source, b"{}", headers={"content-type": "a/b"})).status == 401
    first_ms = reading.now_ms
    reading.clock.advance(seconds=3)
    assert (await send(reading.node, source, b"x" * (256 * KB + 1))).status == 413
    answer = await reading.owner.get(source_path(source, "refused"))
    assert answer.json()["next_cursor"] is None
    entries = answer.json()["data"]
    assert [each["reason"] for each in entries] == ["body_too_large", "signature_missing"]
    assert entries[1] == {
        "refused_at": moment(first_ms),
        "reason": "signature_missing",
        "detail": entries[1]["detail"],
        "method": "POST",
        "path": f"/in/{source.source_id}",
        "source_ip": "127.0.0.1",
        "content_type": "a/b",
        "content_length": None,
    }
    assert entries[1]["detail"]


async def test_the_last_hundred_refused_requests_are_listed(reading: Reading) -> None:
    source = await reading.world.source()
    for number in range(120):
        refused = RefusedRequest(
            refused_at=reading.now_ms + number,
            reason="paused",
            detail="",
            method="POST",
            path="",
            source_ip="",
            content_type="",
            content_length=number,
        )
        put = refused_request(source.source_id, number, refused, reading.now_ms // 1000 + 60)
        await reading.items.put(put.table, put.item)
    entries = (await reading.owner.get(source_path(source, "refused"))).json()["data"]
    assert [each["content_length"] for each in entries] == list(range(119, 19, -1))


async def test_an_event_stays_when_its_source_is_deleted(reading: Reading) -> None:
    source = await reading.world.source()
    event = await reading.event(source)
    await reading.items.transact([source_deleted(source, 0)])
    assert (await shown(reading, event))["source_id"] == source.source_id
    assert (await body_of(reading, event)).status == 200
    answer = await reading.owner.get(source_path(source, "events"))
    assert (answer.status, answer.code) == (404, "source_not_found")
