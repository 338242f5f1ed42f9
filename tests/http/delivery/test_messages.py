"""What arrives at the receiver."""

from __future__ import annotations

import time

import pytest
from standardwebhooks import Webhook
from tests.http.delivery.conftest import NOW_MS, SECRET, outbound
from tests.http.delivery.receivers import Request, answer, receiving, saying

from crossdock.delivery.calling import Caller
from crossdock.delivery.prepare import forwarded_headers

NEW_SECRET = "whsec_" + "QUJD" * 8
OK = saying(answer(200, b"ok"))


def verified(secret: str, request: Request) -> object:
    """As a receiver with the public library reads it. Raises for a signature that does not fit."""
    return Webhook(secret).verify(request.body, dict(request.headers))


async def test_a_receiver_verifies_the_message_by_the_old_and_the_new_secret(caller: Caller) -> None:
    async with receiving(OK) as receiver:
        message = outbound(receiver.url, b'{"n": 1}', secrets=(SECRET, NEW_SECRET))
        assert (await caller.call(message, int(time.time() * 1000))).succeeded
    (request,) = receiver.requests
    assert verified(SECRET, request) == verified(NEW_SECRET, request) == {"n": 1}
    assert request.headers["webhook-id"] == "evt_1"


async def test_each_attempt_is_signed_as_of_now(caller: Caller) -> None:
    async with receiving(OK) as receiver:
        for now_ms in (NOW_MS, NOW_MS + 5000):
            await caller.call(outbound(receiver.url), now_ms)
    first, second = receiver.requests
    assert int(second.headers["webhook-timestamp"]) - int(first.headers["webhook-timestamp"]) == 5
    assert first.headers["webhook-signature"] != second.headers["webhook-signature"]
    assert first.headers["webhook-id"] == second.headers["webhook-id"]


@pytest.mark.parametrize(
    "body", [b"", b"{}", b' {"a":1 }\r\n', b"\0\xff\xfe", bytes(range(256)) * 1024], ids=len
)
async def test_the_body_arrives_byte_for_byte_as_a_post(caller: Caller, body: bytes) -> None:
    async with receiving(OK) as receiver:
        assert (await caller.call(outbound(receiver.url, body), NOW_MS)).succeeded
    (request,) = receiver.requests
    assert request.line == "POST /hook HTTP/1.1"
    assert request.body == body


@pytest.mark.parametrize("query", ["?a=1&a=2", "?token=a%26b%20c", "?q=%E2%82%AC"])
async def test_the_query_arrives_as_it_was_written(caller: Caller, query: str) -> None:
    async with receiving(OK) as receiver:
        await caller.call(outbound(receiver.url + query), NOW_MS)
    assert receiver.requests[0].line == f"POST /hook{query} HTTP/1.1"


async def test_headers_arrive_with_their_repeats_and_without_those_of_the_senders_connection(
    caller: Caller,
) -> None:
    originals = [
        ("Host", "in.example.org"),
        ("Content-Length", "99999"),
        ("Transfer-Encoding", "chunked"),
        ("Connection", "close, X-Hop"),
        ("X-Hop", "1"),
        ("Expect", "100-continue"),
        ("Accept-Encoding", "br"),
        ("User-Agent", "Sender/1"),
        ("Content-Type", "application/x-custom"),
        ("Content-Encoding", "gzip"),
        ("X-Tag", "a"),
        ("x-tag", "b"),
        ("X-TAG", "a"),
        ("webhook-id", "msg_1"),
    ]
    async with receiving(OK) as receiver:
        headers = forwarded_headers(originals, [("X-Own", "mine")])
        assert (await caller.call(outbound(receiver.url, headers=headers), NOW_MS)).succeeded
    (request,) = receiver.requests
    got = request.headers
    assert got.getall("x-tag") == ["a", "b", "a"]
    assert got.getall("user-agent") == ["Sender/1"]
    assert got.getall("content-type") == ["application/x-custom"]
    assert got.getall("content-encoding") == ["gzip"]
    assert got.getall("host") == [receiver.url.split("/")[2]]
    assert got.getall("content-length") == ["8"]
    assert got.getall("webhook-id") == ["evt_1"]
    assert got["original-webhook-id"] == "msg_1"
    assert got["x-own"] == "mine"
    assert not {"connection", "x-hop", "expect", "transfer-encoding"} & {name.lower() for name in got}
    assert got.getall("accept-encoding") == ["identity"]
