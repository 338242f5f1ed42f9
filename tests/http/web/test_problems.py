"""Every error is a problem with a stable code, whoever raised it: a slice, Litestar, or nobody knowingly."""

from __future__ import annotations

import logging
from uuid import UUID

import pytest
from tests.support.asgi_client import AsgiClient

THINGS = "/v1/toys/things"
THING = f"{THINGS}/{UUID(int=1)}"
JSON = {"content-type": "application/json"}


async def test_an_unknown_path_is_404(client: AsgiClient) -> None:
    for target in (
        "/",
        "/nope",
        f"{THINGS}/x/y",
        "/v1/toys/echo/more",
        "/in",
        "/%00",
        f"{THINGS}/%00",
        f"{THINGS}/named/a%00",
    ):
        answer = await client.get(target)
        assert (answer.status, answer.code) == (404, "not_found"), target


async def test_a_wrong_method_is_405_and_names_the_right_ones(client: AsgiClient) -> None:
    answer = await client.request("DELETE", THINGS)
    assert (answer.status, answer.code) == (405, "method_not_allowed")
    assert answer.header("allow") == "GET, OPTIONS, POST"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "body_required"),
        (b"{", "malformed_json"),
        (b"\xff", "malformed_json"),
        (b"{}{}", "malformed_json"),
        (b"name=a&size=1", "malformed_json"),
    ],
)
async def test_what_is_no_json_is_400(client: AsgiClient, body: bytes, code: str) -> None:
    answer = await client.post(THINGS, body=body, headers=JSON)
    assert (answer.status, answer.code) == (400, code)


@pytest.mark.parametrize(
    "kind", ["text/plain", "multipart/form-data; boundary=x", "application/xml", "", "json"]
)
async def test_a_body_that_says_it_is_no_json_is_415(client: AsgiClient, kind: str) -> None:
    answer = await client.post(THINGS, body=b'{"name":"a"}', headers={"content-type": kind})
    assert (answer.status, answer.code) == (415, "unsupported_media_type")


FORM = {"content-type": "application/x-www-form-urlencoded"}


@pytest.mark.parametrize("headers", [{}, JSON, {"content-type": "Application/JSON; charset=utf-8"}, FORM])
async def test_json_is_taken_however_it_is_announced(client: AsgiClient, headers: dict[str, str]) -> None:
    assert (await client.post(THINGS, body=b'{"name":"a"}', headers=headers)).status == 201


async def test_a_body_over_a_megabyte_is_413(client: AsgiClient) -> None:
    chunks = [b" " * 65536] * 17
    for headers in ({}, {"content-length": str(17 * 65536)}):
        answer = await client.post(THINGS, body=chunks, headers=headers)
        assert (answer.status, answer.code) == (413, "body_too_large")


async def test_a_content_length_that_is_no_number_is_400(client: AsgiClient) -> None:
    answer = await client.post(THINGS, body=b"{}", headers={"content-length": "ten"})
    assert (answer.status, answer.code) == (400, "invalid_content_length")


async def test_a_missing_parameter_is_named(client: AsgiClient) -> None:
    answer = await client.get(THING)
    assert (answer.status, answer.fields) == (422, [("how", "required")])
    assert (await client.get(f"{THING}?how=")).status == 200


async def test_every_wrong_parameter_is_named(client: AsgiClient) -> None:
    answer = await client.get(f"{THINGS}?size=x&wide=perhaps")
    assert (answer.status, answer.code) == (422, "invalid_input")
    assert sorted(answer.fields) == [("size", "wrong_type"), ("wide", "wrong_type")]


async def test_an_unexpected_error_is_500_with_an_id_that_the_log_has(
    client: AsgiClient, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await client.get(f"{THING}?how=break")
    assert (answer.status, answer.code) == (500, "internal_error")
    assert b"hunter2" not in answer.body
    with caplog.at_level(logging.ERROR):
        assert answer.json()["request_id"] in caplog.text


async def test_an_engine_that_is_away_is_503_with_retry_after(client: AsgiClient) -> None:
    answer = await client.get(f"{THING}?how=away")
    assert (answer.status, answer.code, answer.header("retry-after")) == (503, "database_unavailable", "3")


async def test_the_same_error_has_the_same_bytes_from_a_lane_and_from_the_framework(
    client: AsgiClient,
) -> None:
    framework, raw = await client.get(f"{THING}?how=conflict"), await client.get("/v1/toys/taken")
    assert framework.body == raw.body
    assert framework.status == raw.status == 409
    assert sorted(framework.headers) == sorted(raw.headers)


async def test_a_good_answer_is_not_kept_by_caches(client: AsgiClient) -> None:
    assert (await client.get(THINGS)).header("cache-control") == "no-store"
