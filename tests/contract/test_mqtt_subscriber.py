"""The subscriber against a real Mosquitto: what is acknowledged when, and what comes again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from tests.support.engines import missing_engine
from tests.support.mosquitto import MEND, Mosquitto, find_mosquitto
from tests.support.mqtt_device import MqttDevice

from crossdock.engines.mqtt.broker import parse_broker
from crossdock.engines.mqtt.subscriber import (
    BrokerRefused,
    Handler,
    Received,
    Reply,
    Subscriber,
    Subscription,
)

pytestmark = pytest.mark.mosquitto

PATIENCE_SECONDS = 10


def subscription(client_id: str = "tester", in_flight_max: int = 10) -> Subscription:
    return Subscription("$share/tests/jobs/+", client_id, 3600, in_flight_max, 100_000)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    if find_mosquitto() is None:
        missing_engine("Mosquitto", MEND)
    with Mosquitto(tmp_path / "broker") as found:
        yield found


@pytest.fixture
def device(broker: Mosquitto) -> Iterator[MqttDevice]:
    with MqttDevice(broker, "done/#") as found:
        yield found


async def done(message: Received) -> Reply:
    return Reply(f"done/{message.topic}", message.payload)


@asynccontextmanager
async def running(
    broker: Mosquitto, handle: Handler, wanted: Subscription | None = None
) -> AsyncIterator[asyncio.Task[None]]:
    ready = asyncio.Event()
    subscriber = Subscriber(parse_broker(broker.url), wanted or subscription(), handle, ready.set)
    task = asyncio.create_task(subscriber.run())
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await ready.wait()
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def hear(device: MqttDevice) -> tuple[str, bytes]:
    return await asyncio.to_thread(device.hear)


class Held:
    """A handler that keeps its messages until it is let go."""

    def __init__(self) -> None:
        self.begun: asyncio.Queue[bytes] = asyncio.Queue()
        self.let_go = asyncio.Event()

    async def __call__(self, message: Received) -> Reply:
        self.begun.put_nowait(message.payload)
        await self.let_go.wait()
        return await done(message)

    async def next(self) -> bytes:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.begun.get()


async def test_each_message_is_answered(broker: Mosquitto, device: MqttDevice) -> None:
    async with running(broker, done):
        for number in range(5):
            device.publish("jobs/a", b"%d" % number)
        heard = {await hear(device) for _ in range(5)}
    assert heard == {("done/jobs/a", b"%d" % number) for number in range(5)}


async def test_what_arrives_while_it_is_away_is_kept_for_it(broker: Mosquitto, device: MqttDevice) -> None:
    async with running(broker, done):
        pass
    device.publish("jobs/a", b"meanwhile")
    async with running(broker, done):
        assert await hear(device) == ("done/jobs/a", b"meanwhile")


async def test_what_was_not_finished_comes_again_and_what_was_does_not(
    broker: Mosquitto, device: MqttDevice
) -> None:
    held = Held()

    async def only_second_is_held(message: Received) -> Reply:
        return await (done(message) if message.payload == b"first" else held(message))

    async with running(broker, only_second_is_held) as task:
        device.publish("jobs/a", b"first")
        device.publish("jobs/a", b"second")
        assert await hear(device) == ("done/jobs/a", b"first")
        await held.next()
        broker.stop()  # orderly: the session is kept
        broker.start()
        assert await held.next() == b"second", "it was not sent again on the new connection"
        held.let_go.set()
        # Told twice, since it was begun twice; acknowledged on the new connection only.
        assert [(await hear(device))[1] for _ in range(2)] == [b"second", b"second"]
        assert not task.done()
    async with running(broker, done):
        assert await asyncio.to_thread(device.hears_nothing_for, 0.5)


async def test_the_broker_holds_back_what_is_over_the_limit(broker: Mosquitto, device: MqttDevice) -> None:
    held = Held()
    async with running(broker, held, subscription(in_flight_max=2)):
        for number in range(4):
            device.publish("jobs/a", b"%d" % number)
        assert {await held.next(), await held.next()} == {b"0", b"1"}
        await asyncio.sleep(0.3)
        assert held.begun.empty(), "a third message came before one was acknowledged"
        held.let_go.set()
        assert {await held.next(), await held.next()} == {b"2", b"3"}


async def test_a_retained_message_is_not_work(broker: Mosquitto, device: MqttDevice) -> None:
    device.publish("jobs/a", b"old", retain=True)
    async with running(broker, done):
        assert await asyncio.to_thread(device.hears_nothing_for, 0.3)
        device.publish("jobs/a", b"new")
        assert (await hear(device))[1] == b"new"


async def test_two_share_the_messages(broker: Mosquitto, device: MqttDevice) -> None:
    counts = {"one": 0, "two": 0}

    def counting(name: str) -> Handler:
        async def handle(message: Received) -> Reply:
            counts[name] += 1
            return await done(message)

        return handle

    async with (
        running(broker, counting("one"), subscription("one")),
        running(broker, counting("two"), subscription("two")),
    ):
        for number in range(20):
            device.publish("jobs/a", b"%d" % number)
        heard = [(await hear(device))[1] for _ in range(20)]
    assert sorted(heard) == sorted(b"%d" % number for number in range(20))
    assert min(counts.values()) > 0, counts


async def test_what_a_handler_raises_ends_it_and_the_message_stays(
    broker: Mosquitto, device: MqttDevice
) -> None:
    async def broken(_message: Received) -> Reply:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        async with running(broker, broken) as task, asyncio.timeout(PATIENCE_SECONDS):
            device.publish("jobs/a", b"hard")
            await task
    async with running(broker, done):
        assert (await hear(device))[1] == b"hard"


async def test_two_of_one_name_are_in_each_others_way_and_lose_nothing(
    broker: Mosquitto, device: MqttDevice
) -> None:
    """This Mosquitto does not tell the first why it is cut off, so it comes back, and cuts off the second."""
    async with running(broker, done), running(broker, done):
        for number in range(5):
            device.publish("jobs/a", b"%d" % number)
            await asyncio.sleep(0.3)
        heard: set[bytes] = set()
        while len(heard) < 5:
            heard.add((await hear(device))[1])
    assert heard == {b"%d" % number for number in range(5)}


async def test_a_refused_login_is_told_and_not_repeated(tmp_path: Path) -> None:
    if find_mosquitto() is None:
        missing_engine("Mosquitto", MEND)
    with Mosquitto(tmp_path / "closed", settings=("allow_anonymous false",)) as broker:
        subscriber = Subscriber(parse_broker(broker.url), subscription(), done)
        with pytest.raises(BrokerRefused, match="refuses the connection"):
            async with asyncio.timeout(PATIENCE_SECONDS):
                await subscriber.run()


async def test_a_broker_that_comes_later_is_waited_for(tmp_path: Path) -> None:
    if find_mosquitto() is None:
        missing_engine("Mosquitto", MEND)
    broker = Mosquitto(tmp_path / "late")
    ready = asyncio.Event()
    task = asyncio.create_task(Subscriber(parse_broker(broker.url), subscription(), done, ready.set).run())
    await asyncio.sleep(0.2)
    assert not task.done()
    with broker:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await ready.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
