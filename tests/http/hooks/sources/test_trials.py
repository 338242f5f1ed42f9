"""Filters and transforms tried out: on samples, on events that came, and on what makes them fail."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.support.asgi_client import Answer
from tests.support.hooks_sources import Served, shown

from crossdock.hooks.service.trials import Sample

FILTERS = "/v1/hooks/filters/test"
TRANSFORMS = "/v1/hooks/transforms/test"
PAID = [{"on": "body", "match": {"type": "order.paid"}}]


async def filtered(served: Served, filters: list[Any], sample: dict[str, Any]) -> dict[str, Any]:
    return shown(await served.operator.post(FILTERS, {"filters": filters, "sample": sample}))


async def transform(served: Served, steps: list[Any], sample: dict[str, Any]) -> Answer:
    return await served.operator.post(TRANSFORMS, {"transform": steps, "sample": sample})


# --- filters ---------------------------------------------------------------------------------------


async def test_a_verdict_says_of_each_rule_whether_and_where_it_failed(shared: Served) -> None:
    filters = [*PAID, {"on": "body", "match": {"order": {"amount": {"$gte": 100}}}}]
    body = {"type": "order.paid", "order": {"amount": 99}}
    assert await filtered(shared, filters, {"body": body}) == {
        "matches": False,
        "rules": [{"matches": True}, {"matches": False, "path": "body.order.amount.$gte"}],
    }
    body["order"] = {"amount": 100}
    assert await filtered(shared, filters, {"body": body}) == {
        "matches": True,
        "rules": [{"matches": True}, {"matches": True}],
    }


async def test_no_rules_match_everything(shared: Served) -> None:
    assert await filtered(shared, [], {"body": None}) == {"matches": True, "rules": []}


@pytest.mark.parametrize(
    ("rule", "sample", "matches"),
    [
        ({"on": "headers", "match": {"x-kind": "a"}}, {"headers": {"X-Kind": "a"}}, True),
        ({"on": "headers", "match": {"x-kind": "a"}}, {}, False),
        ({"on": "query", "match": {"a": "1"}}, {"query": "a=1&b=2"}, True),
        ({"on": "query", "match": {"a": "1 2"}}, {"query": {"a": "1 2"}}, True),
        ({"on": "query", "match": {"a": ["1", "2"]}}, {"query": {"a": ["1", "2"]}}, True),
        ({"on": "query", "match": {"a": "1"}}, {}, False),
        ({"on": "path", "match": {"$startsWith": "/in"}}, {"path": "/in/x"}, True),
        ({"on": "method", "match": "POST"}, {}, True),
        ({"on": "method", "match": "PUT"}, {"method": "put"}, True),
        ({"on": "body", "match": {"a": 1}}, {"body": '{"a":1}'}, True),
        ({"on": "body", "match": {"$startsWith": "hello"}}, {"body": "hello there"}, True),
        ({"on": "body", "match": None}, {"body": None}, True),
    ],
)
async def test_every_part_of_a_sample_is_looked_at(
    shared: Served, rule: dict[str, Any], sample: dict[str, Any], matches: bool
) -> None:
    verdict = await filtered(shared, [rule], {"body": {}} | sample)
    assert verdict["matches"] is matches


async def test_an_event_that_came_may_be_the_sample(shared: Served) -> None:
    user_id, client = await shared.user_and_client()
    shared.events.known[user_id, "evt_1"] = Sample(
        b'{"type": "order.paid"}', (("X-Kind", "a"),), "q=1", "/in/x", "PUT"
    )
    filters = [
        *PAID,
        {"on": "headers", "match": {"x-kind": "a"}},
        {"on": "query", "match": {"q": "1"}},
        {"on": "path", "match": "/in/x"},
        {"on": "method", "match": "PUT"},
    ]
    verdict = shown(await client.post(FILTERS, {"filters": filters, "event_id": "evt_1"}))
    assert verdict["matches"] is True
    steps = [{"remove": ["type"]}]
    answer = shown(await client.post(TRANSFORMS, {"transform": steps, "event_id": "evt_1"}))
    assert answer == {"body": {}, "headers": {"X-Kind": "a", "Content-Type": "application/json"}}


# --- transforms ------------------------------------------------------------------------------------


async def test_a_transform_shows_body_and_headers_as_they_would_go_out(shared: Served) -> None:
    steps: list[Any] = [{"move": {"from": "data.order", "to": "order"}}, {"set_headers": {"X-Kind": "order"}}]
    sample = {"body": {"data": {"order": {"id": 1}}}, "headers": {"X-A": "b"}}
    assert shown(await transform(shared, steps, sample)) == {
        "body": {"data": {}, "order": {"id": 1}},
        "headers": {"X-A": "b", "X-Kind": "order", "Content-Type": "application/json"},
    }


async def test_a_text_is_shown_as_text_and_may_be_a_sample_again(shared: Served) -> None:
    steps = [{"template": "order {{id}}"}]
    written = shown(await transform(shared, steps, {"body": {"id": 7}}))
    assert written["body"] == "order 7"
    bodies: list[Any] = ["order 7", '"a JSON text"', 5, None, [1], {"a": [True]}]
    for body in bodies:
        assert shown(await transform(shared, [], {"body": body}))["body"] == body


async def test_a_body_that_is_no_text_is_shown_as_far_as_it_is(shared: Served) -> None:
    user_id, client = await shared.user_and_client()
    shared.events.known[user_id, "evt_2"] = Sample(b"\xff\x00x")
    answer = shown(await client.post(TRANSFORMS, {"transform": [], "event_id": "evt_2"}))
    assert answer["body"] == "\ufffd\0x"


async def test_headers_that_came_twice_are_shown_joined(shared: Served) -> None:
    user_id, client = await shared.user_and_client()
    shared.events.known[user_id, "evt_3"] = Sample(b"{}", (("X-A", "1"), ("X-A", "2")))
    answer = shown(await client.post(TRANSFORMS, {"transform": [], "event_id": "evt_3"}))
    assert answer["headers"] == {"X-A": "1, 2"}


async def test_a_transform_that_fails_is_422_and_says_at_which_step(shared: Served) -> None:
    steps = [{"set": {"a": 1}}, {"move": {"from": "not.there", "to": "b"}}]
    answer = await transform(shared, steps, {"body": {}})
    assert (answer.status, answer.code) == (422, "transform_failed")
    assert "step 2 (move)" in answer.json()["detail"]


async def test_the_loop_is_free_for_others_while_a_transform_is_at_work(shared: Served) -> None:
    steps = [{"jmespath": "[?contains(@, 'x')]"}] * 20
    slow = asyncio.create_task(transform(shared, steps, {"body": ["x" * 100] * 2000}))
    turns = 0
    while not slow.done():
        await asyncio.sleep(0.001)
        turns += 1
    assert slow.result().code == "transform_failed"
    assert turns > 5


# --- refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        (FILTERS, {"sample": {"body": 1}}, ("filters", "required")),
        (FILTERS, {"filters": {}, "sample": {"body": 1}}, ("filters", "wrong_type")),
        (FILTERS, {"filters": [1], "sample": {"body": 1}}, ("filters[0]", "wrong_type")),
        (TRANSFORMS, {"sample": {"body": 1}}, ("transform", "required")),
        (TRANSFORMS, {"transform": [{}], "sample": {"body": 1}}, ("transform[0]", "required")),
        (FILTERS, {"filters": []}, ("sample", "required")),
        (TRANSFORMS, {"transform": []}, ("sample", "required")),
        (FILTERS, {"filters": [], "sample": {"body": 1}, "event_id": "x"}, ("event_id", "not_together")),
        (FILTERS, {"filters": [], "sample": {}}, ("sample.body", "required")),
        (FILTERS, {"filters": [], "sample": {"body": 1, "url": ""}}, ("sample.url", "unknown_field")),
        (FILTERS, {"filters": [], "sample": {"body": "x" * 262_145}}, ("sample.body", "too_large")),
        (FILTERS, {"filters": [], "sample": {"body": 1, "query": 1}}, ("sample.query", "wrong_type")),
    ],
)
async def test_a_wrong_trial_is_422_and_named(
    shared: Served, path: str, body: dict[str, Any], expected: tuple[str, str]
) -> None:
    answer = await shared.operator.post(path, body)
    assert (answer.status, answer.code, answer.fields) == (422, "invalid_input", [expected])


async def test_an_event_that_is_not_there_or_somebody_elses_is_404(shared: Served) -> None:
    user_id, client = await shared.user_and_client()
    shared.events.known[user_id, "evt_4"] = Sample(b"{}")
    _, other = await shared.user_and_client()
    for each, event_id in ((client, "evt_no"), (other, "evt_4")):
        for path, field in ((FILTERS, "filters"), (TRANSFORMS, "transform")):
            answer = await each.post(path, {field: [], "event_id": event_id})
            assert (answer.status, answer.code) == (404, "event_not_found")


@pytest.mark.parametrize(("permission", "status"), [("none", 403), ("read", 200)])
async def test_who_may_look_may_try(shared: Served, permission: str, status: int) -> None:
    client = shared.client(await shared.user(), permission)
    sample: dict[str, Any] = {"body": {}}
    assert (await client.post(FILTERS, {"filters": [], "sample": sample})).status == status
    assert (await client.post(TRANSFORMS, {"transform": [], "sample": sample})).status == status
    assert (await client.with_key(None).post(FILTERS, {"filters": [], "sample": sample})).status == 401
