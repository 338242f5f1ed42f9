from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from ipaddress import ip_network
from typing import TypeAlias

import pytest
from tests.http.delivery.receivers import Talk, receiving

from crossdock.delivery.calling import Caller
from crossdock.delivery.model import CallResult, Outbound
from crossdock.http.client import GuardedClient
from crossdock.kit.clock import SystemClock
from crossdock.kit.egress import EgressPolicy

NOW_MS = 1_735_732_800_000
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
LOOPBACK = EgressPolicy(allow=(ip_network("127.0.0.0/8"),))


def outbound(
    url: str,
    body: bytes = b'{"n": 1}',
    *,
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),),
    secrets: tuple[str, ...] = (SECRET,),
    timeout_seconds: float = 20,
) -> Outbound:
    return Outbound("evt_1", url, body, headers, secrets, timeout_seconds)


@pytest.fixture
async def caller() -> AsyncIterator[Caller]:
    client = GuardedClient(LOOPBACK)
    yield Caller(client, SystemClock())
    await client.close()


CallReceiver: TypeAlias = Callable[..., Awaitable[CallResult]]


@pytest.fixture
def called(caller: Caller) -> CallReceiver:
    """The result of one call to a receiver that talks like this."""

    async def call(talk: Talk, timeout_seconds: float = 20) -> CallResult:
        async with receiving(talk) as receiver:
            return await caller.call(outbound(receiver.url, timeout_seconds=timeout_seconds), NOW_MS)

    return call
