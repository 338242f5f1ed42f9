"""Messages of a subscription on an MQTT 5 broker, each acknowledged after it was handled.

- At least once: a message is acknowledged when its handler has returned. One that was not, for whatever
  reason (a crash, a lost connection), is sent again: to this session, which the broker keeps for a day.
- A handler that raises ends the subscriber; its message stays unacknowledged.
- At most `in_flight_max` messages are unacknowledged at a time: the broker holds the others back.
- A lost connection is made anew, for as long as it takes, with growing pauses. An acknowledgement never goes
  to a later connection than its message's: there the same number may stand for another message.
- What repeating can't mend ends the subscriber with `BrokerRefused`: a refused login, a subscription that is
  not granted, another client of the same name (where the broker says so: Mosquitto 2.0 just cuts the first
  one off, which comes back; the two are then in each other's way, and the log says how to mend that).

The network runs in a thread of paho's; all else in the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from crossdock.engines.mqtt.broker import Broker
from crossdock.kit.errors import CrossdockError
from crossdock.kit.logging import fields

log = logging.getLogger("crossdock.mqtt")

QOS = 1
RECONNECT_SECONDS_MIN, RECONNECT_SECONDS_MAX = 1, 30
KEEP_ALIVE_SECONDS = 30
STOP_POLL_SECONDS = 0.2
STOP_SECONDS_MAX = 10
"""For messages in work; those left are sent again, to whoever comes next."""
_DO_NOT_SEND_RETAINED = 2

_NOT_MENDED_BY_REPEATING = frozenset(
    {
        "Unsupported protocol version",
        "Client identifier not valid",
        "Bad user name or password",
        "Not authorized",
        "Banned",
        "Bad authentication method",
        "Session taken over",
    }
)


class BrokerRefused(CrossdockError):
    """The broker won't have us, and would not the next time."""


@dataclass(frozen=True, slots=True)
class Subscription:
    topic_filter: str
    client_id: str
    """Names the session that the broker keeps: two clients can't have the same."""
    session_seconds: int
    in_flight_max: int
    packet_bytes_max: int
    """The broker throws larger ones away unsent."""


@dataclass(frozen=True, slots=True)
class Received:
    topic: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    topic: str
    payload: bytes


Handler: TypeAlias = Callable[[Received], Awaitable[Reply]]


class Subscriber:
    """Made and run inside one event loop. Each message's reply is published before it is acknowledged."""

    def __init__(
        self,
        broker: Broker,
        subscription: Subscription,
        handle: Handler,
        on_ready: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_ready` is called whenever the subscription is granted: after each connection."""
        self._broker = broker
        self._subscription = subscription
        self._handle = handle
        self._on_ready = on_ready
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._working: set[asyncio.Task[None]] = set()
        self._connection = 0
        """Counted by the network's thread; a message knows which one brought it."""
        self._client = self._make_client()

    async def run(self) -> None:
        """Until cancelled, and then until what was begun is finished. Raises BrokerRefused, and what a
        handler raises."""
        self._client.connect_async(
            self._broker.host,
            self._broker.port,
            keepalive=KEEP_ALIVE_SECONDS,
            clean_start=False,
            properties=self._connect_properties(),
        )
        network = asyncio.create_task(
            asyncio.to_thread(self._client.loop_forever, retry_first_connection=True)
        )
        try:
            both: set[asyncio.Future[Any]] = {network, self._ended}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await asyncio.shield(self._stop(network))
        if self._ended.done():
            self._ended.result()
        network.result()

    async def _stop(self, network: asyncio.Task[Any]) -> None:
        if self._working:
            await asyncio.wait(self._working, timeout=STOP_SECONDS_MAX)
        for task in self._working:
            task.cancel()
        # Asked again and again: a connection that is just being made does not hear the first call.
        while not network.done():
            self._client.disconnect()
            await asyncio.wait({network}, timeout=STOP_POLL_SECONDS)

    def _make_client(self) -> Client:
        client = Client(
            CallbackAPIVersion.VERSION2,
            client_id=self._subscription.client_id,
            protocol=MQTTProtocolVersion.MQTTv5,
            manual_ack=True,
        )
        client.reconnect_delay_set(RECONNECT_SECONDS_MIN, RECONNECT_SECONDS_MAX)
        if self._broker.username is not None:
            client.username_pw_set(self._broker.username, self._broker.password)
        if self._broker.tls:
            client.tls_set()
        client.on_connect = self._on_connect
        client.on_connect_fail = self._on_connect_fail
        client.on_disconnect = self._on_disconnect
        client.on_subscribe = self._on_subscribe
        client.on_message = self._on_message
        return client

    def _connect_properties(self) -> Properties:
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.SessionExpiryInterval = self._subscription.session_seconds
        properties.ReceiveMaximum = self._subscription.in_flight_max
        properties.MaximumPacketSize = self._subscription.packet_bytes_max
        return properties

    # --- in the network's thread ------------------------------------------------------------------------

    def _on_connect(self, _client: Client, _data: Any, _flags: Any, reason: ReasonCode, _more: Any) -> None:
        if reason.is_failure:
            self._refused("The broker refuses the connection", reason)
            return
        self._connection += 1
        options = SubscribeOptions(qos=QOS, retainHandling=_DO_NOT_SEND_RETAINED)
        self._client.subscribe(self._subscription.topic_filter, options=options)

    def _on_connect_fail(self, _client: Client, _data: Any) -> None:
        log.warning("the broker can't be reached; trying again", extra=fields(broker=self._broker.label))

    def _on_subscribe(
        self, _client: Client, _data: Any, _mid: int, reasons: list[ReasonCode], _more: Any
    ) -> None:
        if reasons[0].is_failure:
            topic = self._subscription.topic_filter
            self._end(
                f"The broker {self._broker.label} does not grant the subscription of {topic}", reasons[0]
            )
            return
        log.info("subscribed", extra=fields(broker=self._broker.label))
        self._loop.call_soon_threadsafe(self._on_ready)

    def _on_disconnect(
        self, _client: Client, _data: Any, _flags: Any, reason: ReasonCode, _more: Any
    ) -> None:
        if reason.is_failure:
            self._refused("The broker ended the connection", reason)

    def _on_message(self, _client: Client, _data: Any, message: MQTTMessage) -> None:
        self._loop.call_soon_threadsafe(self._begin, self._connection, message)

    def _refused(self, what: str, reason: ReasonCode) -> None:
        if reason.getName() in _NOT_MENDED_BY_REPEATING:
            self._end(f"{what} ({self._broker.label})", reason)
        else:
            client_id = self._subscription.client_id
            said = fields(broker=self._broker.label, reason=str(reason), client_id=client_id)
            hint = f"; if this happens all the time, another client may be called {client_id}, too"
            log.warning("the broker is lost; trying again%s", hint, extra=said)

    def _end(self, what: str, reason: ReasonCode) -> None:
        error = BrokerRefused("broker_refused", f"{what}: {reason}.")
        self._loop.call_soon_threadsafe(self._end_with, error)

    # --- in the event loop ------------------------------------------------------------------------------

    def _end_with(self, error: BaseException) -> None:
        if not self._ended.done():
            self._ended.set_exception(error)

    def _begin(self, connection: int, message: MQTTMessage) -> None:
        task = asyncio.create_task(self._work(connection, message))
        self._working.add(task)
        task.add_done_callback(self._worked)

    async def _work(self, connection: int, message: MQTTMessage) -> None:
        reply = await self._handle(Received(message.topic, bytes(message.payload)))
        self._client.publish(reply.topic, reply.payload, qos=QOS)
        # Making a connection takes a second and more, so none can come between the question and the answer.
        if connection == self._connection:
            self._client.ack(message.mid, message.qos)

    def _worked(self, task: asyncio.Task[None]) -> None:
        self._working.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._end_with(error)
