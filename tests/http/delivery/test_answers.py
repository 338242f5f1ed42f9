"""What is made of the answers that receivers give."""

from __future__ import annotations

import gzip
import time
from email.utils import formatdate

import pytest
from tests.http.delivery.conftest import NOW_MS, CallReceiver, outbound
from tests.http.delivery.receivers import answer, receiving, repeating, saying

from crossdock.delivery.calling import Caller
from crossdock.kit.clock import SystemClock


@pytest.mark.parametrize("status", [200, 201, 202, 299])
async def test_a_2xx_is_a_success_with_its_text(called: CallReceiver, status: int) -> None:
    result = await called(saying(answer(status, b"thanks")))
    assert (result.status, result.body_text, result.error, result.succeeded) == (status, "thanks", None, True)


async def test_204_is_a_success_without_a_text(called: CallReceiver) -> None:
    result = await called(saying(b"HTTP/1.1 204 No Content\r\n\r\n"))
    assert (result.status, result.body_text, result.succeeded) == (204, "", True)


@pytest.mark.parametrize("status", [304, 400, 404, 410, 422, 500, 502])
async def test_any_other_status_is_recorded_and_no_success(called: CallReceiver, status: int) -> None:
    body = b"" if status == 304 else b"no"
    result = await called(saying(answer(status, body), hangs_up=True))
    assert (result.status, result.error, result.succeeded) == (status, None, False)
    assert not result.own_fault


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_recorded_and_not_followed(called: CallReceiver, status: int) -> None:
    async with receiving(saying(answer(200))) as elsewhere:
        result = await called(saying(answer(status, b"there", f"Location: {elsewhere.url}")))
    assert (result.status, result.body_text, result.succeeded) == (status, "there", False)
    assert elsewhere.connections == 0


@pytest.mark.parametrize("location", ["http://10.0.0.1/", "http://169.254.169.254/latest/", "//[", ""])
async def test_a_redirect_to_a_private_address_or_nowhere_is_an_answer_like_any(
    called: CallReceiver, location: str
) -> None:
    result = await called(saying(answer(302, b"", f"Location: {location}")), timeout_seconds=5)
    assert (result.status, result.error) == (302, None)


# --- Retry-After -------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 503])
async def test_what_the_receiver_asks_for_is_recorded(called: CallReceiver, status: int) -> None:
    result = await called(saying(answer(status, b"", "Retry-After: 120")))
    assert (result.status, result.retry_after_seconds) == (status, 120)


async def test_a_date_is_counted_from_now(called: CallReceiver) -> None:
    date = formatdate(time.time() + 300, usegmt=True)
    result = await called(saying(answer(429, b"", f"Retry-After: {date}")))
    assert result.retry_after_seconds is not None
    assert 200 < result.retry_after_seconds <= 300


@pytest.mark.parametrize(
    ("status", "header"),
    [(429, "Retry-After: soon"), (429, "X-Other: 5"), (200, "Retry-After: 5"), (500, "Retry-After: 5")],
)
async def test_without_a_reason_to_wait_there_is_none(called: CallReceiver, status: int, header: str) -> None:
    assert (await called(saying(answer(status, b"", header)))).retry_after_seconds is None


# --- the text ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", ""),
        (b"a\0b", "a\ufffdb"),
        (b"caf\xe9!", "caf\ufffd!"),
        (b"\xff\xfe\0", "\ufffd\ufffd\ufffd"),
        ("\u20ac".encode()[:2], "\ufffd"),
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"),
        (b"x" * 1000, "x" * 1000),
        (b"x" * 1001, "x" * 1000),
        ("\u20ac".encode() * 1200, "\u20ac" * 1000),
        ("\U0001f600".encode() * 1200, "\U0001f600" * 1000),
        (b"x" + "\U0001f600".encode() * 1200, "x" + "\U0001f600" * 999),
    ],
)
async def test_the_text_is_the_first_thousand_characters_fit_to_be_stored(
    called: CallReceiver, body: bytes, text: str
) -> None:
    result = await called(saying(answer(200, body)))
    assert result.body_text == text
    assert result.body_text.encode().decode() == result.body_text


async def test_ten_megabytes_are_a_success_of_which_little_is_read(caller: Caller) -> None:
    body = b"x" * 10_000_000
    async with receiving(saying(answer(200, body))) as receiver:
        began_at = time.monotonic()
        result = await caller.call(outbound(receiver.url), NOW_MS)
        assert time.monotonic() - began_at < 2
    assert (result.status, result.body_text, result.succeeded) == (200, "x" * 1000, True)


async def test_an_answer_without_end_is_a_success_of_which_little_is_read(called: CallReceiver) -> None:
    result = await called(repeating(b"HTTP/1.1 200 OK\r\n\r\n", b"data: x\n\n" * 1000))
    assert (result.status, len(result.body_text), result.succeeded) == (200, 1000, True)


async def test_a_compressed_answer_is_read(called: CallReceiver) -> None:
    result = await called(saying(answer(200, gzip.compress(b"thanks"), "Content-Encoding: gzip")))
    assert result.body_text == "thanks"


async def test_a_gzip_bomb_is_not_inflated(called: CallReceiver) -> None:
    bomb = gzip.compress(b"\0" * 200_000_000, 1)
    began_at = time.process_time()
    result = await called(saying(answer(200, bomb, "Content-Encoding: gzip")))
    assert time.process_time() - began_at < 1
    assert (result.status, result.body_text) == (200, "\ufffd" * 1000)


async def test_an_empty_answer_that_claims_to_be_compressed_is_a_success(called: CallReceiver) -> None:
    result = await called(saying(answer(200, b"", "Content-Encoding: gzip")))
    assert (result.status, result.body_text, result.succeeded) == (200, "", True)


async def test_an_answer_that_only_claims_to_be_compressed_is_none(called: CallReceiver) -> None:
    result = await called(saying(answer(200, b"not gzip at all", "Content-Encoding: gzip")))
    assert (result.status, result.succeeded) == (0, False)
    assert result.error is not None


# --- the connection ----------------------------------------------------------------------------------


async def test_a_connection_is_used_again_after_a_short_answer(caller: Caller) -> None:
    async with receiving(saying(answer(200, b"ok"))) as receiver:
        for _ in range(5):
            assert (await caller.call(outbound(receiver.url), NOW_MS)).succeeded
    assert (len(receiver.requests), receiver.connections) == (5, 1)


async def test_the_latency_is_the_time_the_call_took(caller: Caller) -> None:
    clock = SystemClock()
    async with receiving(saying(answer(200))) as receiver:
        began_at = clock.monotonic()
        result = await caller.call(outbound(receiver.url), NOW_MS)
        took_ms = (clock.monotonic() - began_at) * 1000
    assert 0 <= result.latency_ms <= took_ms + 1
