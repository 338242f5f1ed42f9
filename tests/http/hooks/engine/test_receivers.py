"""Destinations that misbehave: each gets its verdict, and a healthy one beside it notices nothing."""

from __future__ import annotations

import asyncio
import time

import pytest
from tests.http.delivery.receivers import Talk, answer, receiving, saying, silent
from tests.support.hooks_engine import HooksNode, HooksWorld, accepted
from tests.support.receiver import Receiver

from crossdock.hooks.model import DeliveryState


async def late(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(1.3)
    writer.write(answer(200, b"too late"))
    await writer.drain()


async def reset(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


CASES: list[tuple[str, Talk, DeliveryState, int, str]] = [
    ("hangs", silent, DeliveryState.RETRYING, 0, "timeout"),
    ("answers after the timeout", late, DeliveryState.RETRYING, 0, "timeout"),
    ("resets", reset, DeliveryState.RETRYING, 0, "connection_lost"),
    ("10 MB", saying(answer(200, b"x" * 10_000_000)), DeliveryState.DELIVERED, 200, "None"),
    (
        "redirects to a private address",
        saying(answer(302, b"", "Location: http://169.254.169.254/latest/meta-data")),
        DeliveryState.RETRYING,
        302,
        "None",
    ),
    ("an error", saying(answer(500, b"no")), DeliveryState.RETRYING, 500, "None"),
]


@pytest.mark.parametrize("case", [case[1:] for case in CASES], ids=[case[0] for case in CASES])
async def test_each_gets_its_verdict_and_harms_no_other(
    world: HooksWorld,
    node: HooksNode,
    receiver: Receiver,
    case: tuple[Talk, DeliveryState, int, str],
) -> None:
    talk, state, status, error = case
    source = await world.source()
    healthy = await world.connection(source, receiver.url)
    async with receiving(talk) as odd:
        connection = await world.connection(source, odd.url, timeout_seconds=1)
        began_at = time.monotonic()
        event_id = await accepted(node, source)
        while not receiver.got:
            await asyncio.sleep(0.005)
            assert time.monotonic() - began_at < 0.9, "the healthy one had to wait"
        await node.settled()
    states = {each.connection_id: each for each in await world.deliveries(event_id)}
    assert states[healthy.connection_id].state is DeliveryState.DELIVERED
    assert states[connection.connection_id].state is state
    [attempt] = [
        each for each in await world.attempts(event_id) if each.connection_id == connection.connection_id
    ]
    assert (attempt.status_code, str(attempt.error).partition(":")[0]) == (status, error)
    assert len(attempt.response_body) <= 1000


async def test_an_address_that_may_not_be_called_is_said_to_be_refused(
    world: HooksWorld, node: HooksNode
) -> None:
    """Also when DNS, or whoever changed the connection, named it after it was checked."""
    source = await world.source()
    await world.connection(source, "http://10.0.0.1/hook")
    event_id = await accepted(node, source)
    await node.settled()
    [attempt] = await world.attempts(event_id)
    assert attempt.status_code == 0
    assert str(attempt.error).startswith("egress_refused: ")
    assert "CROSSDOCK_EGRESS_ALLOW" in str(attempt.error)
