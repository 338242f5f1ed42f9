from __future__ import annotations

import pytest
from tests.support.asgi_client import Answer, AsgiClient, ask

from crossdock.http.asgi import (
    ClientGone,
    Message,
    Receive,
    Scope,
    Send,
    header,
    header_values,
    lane,
    read_body,
    send_json,
)
from crossdock.http.problems import problem_for
from crossdock.kit.errors import Conflict, CrossdockError, MalformedRequest, TooLarge


async def body_of(chunks: list[bytes], limit: int, length: str | None = None) -> tuple[bytes, int]:
    """The body as read, and how many messages that took."""
    taken = 0

    async def receive() -> Message:
        nonlocal taken
        taken += 1
        return {"type": "http.request", "body": chunks[taken - 1], "more_body": taken < len(chunks)}

    headers = [] if length is None else [(b"content-length", length.encode())]
    try:
        return await read_body({"type": "http", "headers": headers}, receive, limit), taken
    except CrossdockError as error:
        error.add_note(str(taken))
        raise


@pytest.mark.parametrize("chunks", [[b"abcd"], [b"ab", b"cd"], [b"", b"abcd", b""], [b"a", b"b", b"c", b"d"]])
async def test_a_body_up_to_the_limit_is_read_whole(chunks: list[bytes]) -> None:
    assert (await body_of(chunks, 4))[0] == b"abcd"
    assert (await body_of(chunks, 4, "4"))[0] == b"abcd"


@pytest.mark.parametrize(
    ("chunks", "length", "messages_read"),
    [
        ([b"abcde"], None, 1),
        ([b"abc", b"de", b"x", b"x", b"x"], None, 2),
        ([b"abcde"], "5", 0),
        ([b"abcde"], "9" * 5000, 0),
        ([b"abcde"], "1", 1),  # a length that lies
    ],
)
async def test_a_body_over_the_limit_is_refused_as_soon_as_it_is_known(
    chunks: list[bytes], length: str | None, messages_read: int
) -> None:
    with pytest.raises(TooLarge, match="body_too_large") as raised:
        await body_of(chunks, 4, length)
    assert raised.value.__notes__ == [str(messages_read)]


@pytest.mark.parametrize("length", ["", "-1", "+1", "1.0", "0x1", " 1", "1_0", "ten"])
async def test_a_content_length_that_is_no_number_is_malformed(length: str) -> None:
    with pytest.raises(MalformedRequest, match="invalid_content_length"):
        await body_of([b""], 4, length)


async def test_leading_zeros_of_a_length_are_no_trick() -> None:
    assert (await body_of([b"abcd"], 4, "0" * 100 + "4"))[0] == b"abcd"


async def test_a_client_that_hangs_up_is_no_error_and_gets_no_answer() -> None:
    sent: list[Message] = []

    async def gone() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    async def handler(scope: Scope, receive: Receive, send: Send) -> None:
        with pytest.raises(ClientGone):
            await read_body(scope, receive, 10)
        await read_body(scope, receive, 10)

    await lane(handler)({"type": "http", "method": "POST", "headers": []}, gone, send)
    assert sent == []


def test_headers_are_found_by_their_lower_case_name() -> None:
    scope: Scope = {"headers": [(b"a", b"1"), (b"b", b"2"), (b"a", b"3")]}
    assert (header(scope, b"a"), header(scope, b"c")) == (b"1", None)
    assert header_values(scope, b"a") == [b"1", b"3"]


async def refused(scope: Scope, receive: Receive, send: Send) -> None:
    raise Conflict("taken", "It is taken.")


async def broken(scope: Scope, receive: Receive, send: Send) -> None:
    raise RuntimeError("secret")


async def broken_half_way(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    raise RuntimeError("secret")


async def fine(scope: Scope, receive: Receive, send: Send) -> None:
    await send_json(send, 201, b"{}", ((b"x-more", b"1"),))


async def test_a_lane_answers_json() -> None:
    answer = await AsgiClient(lane(fine)).post("/")
    assert answer == Answer(
        201, [("content-type", "application/json"), ("content-length", "2"), ("x-more", "1")], b"{}"
    )


async def test_a_lane_answers_an_error_with_the_bytes_of_its_problem() -> None:
    answer = await AsgiClient(lane(refused)).get("/")
    problem = problem_for(Conflict("taken", "It is taken."))
    assert (answer.status, answer.body) == (problem.status, problem.body)


async def test_a_lane_hides_what_nobody_expected() -> None:
    answer = await AsgiClient(lane(broken)).get("/")
    assert (answer.status, answer.code) == (500, "internal_error")
    assert b"secret" not in answer.body


async def test_an_answer_that_broke_half_way_is_left_to_the_server_to_cut() -> None:
    with pytest.raises(RuntimeError, match="secret"):
        await ask(lane(broken_half_way), {"type": "http", "method": "GET", "headers": []}, [])


async def test_a_lane_takes_the_methods_it_names() -> None:
    answer = await AsgiClient(lane(fine, "POST", "PUT")).get("/")
    assert (answer.status, answer.code, answer.header("allow")) == (405, "method_not_allowed", "POST, PUT")
