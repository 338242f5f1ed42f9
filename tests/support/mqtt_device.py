"""A device on an MQTT broker: publishes with QoS 1, and hears what it subscribed to."""

from __future__ import annotations

import queue
from types import TracebackType
from typing import Any
from uuid import uuid4

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from tests.support.mosquitto import Mosquitto

PATIENCE_SECONDS = 10


class MqttDevice:
    """`with MqttDevice(broker, "crossdock/+/results") as device:`"""

    def __init__(self, broker: Mosquitto, topic_filter: str) -> None:
        self._broker = broker
        self._filter = topic_filter
        self._heard: queue.Queue[MQTTMessage] = queue.Queue()
        self._subscribed: queue.Queue[None] = queue.Queue()
        self._client = Client(
            CallbackAPIVersion.VERSION2,
            client_id=f"device-{uuid4().hex}",
            protocol=MQTTProtocolVersion.MQTTv5,
        )
        self._client.on_connect = self._on_connect
        self._client.on_subscribe = lambda *_: self._subscribed.put(None)
        self._client.on_message = lambda _client, _data, message: self._heard.put(message)

    def _on_connect(self, *_: Any) -> None:
        self._client.subscribe(self._filter, qos=1)

    def publish(self, topic: str, payload: bytes, *, retain: bool = False) -> None:
        """Returns when the broker has it."""
        self._client.publish(topic, payload, qos=1, retain=retain).wait_for_publish(PATIENCE_SECONDS)

    def hear(self, patience_seconds: float = PATIENCE_SECONDS) -> tuple[str, bytes]:
        message = self._heard.get(timeout=patience_seconds)
        return message.topic, bytes(message.payload)

    def hears_nothing_for(self, seconds: float) -> bool:
        try:
            self._heard.get(timeout=seconds)
        except queue.Empty:
            return True
        return False

    def __enter__(self) -> MqttDevice:
        kept = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        kept.SessionExpiryInterval = 3600  # what it is told while the broker restarts is not lost
        self._client.connect("127.0.0.1", self._broker.port, clean_start=False, properties=kept)
        self._client.loop_start()
        self._subscribed.get(timeout=PATIENCE_SECONDS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Any:
        self._client.disconnect()
        self._client.loop_stop()
