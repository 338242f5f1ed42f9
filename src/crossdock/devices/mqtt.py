"""Readings by MQTT: the body of `POST /v1/devices/readings`, published to `crossdock/{hardware_id}/readings`.

The same use case takes them, so they are stored exactly once however often a broker repeats them. What became
of a message is published to `crossdock/{hardware_id}/results`: the verdict, or the problem that the request
would have been answered with. A message whose store is away is tried again until it is back, unacknowledged.
Who may publish where is the broker's to decide: there is no device key in a message.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re

import msgspec

from crossdock.devices.model import REQUEST_BYTES_MAX
from crossdock.devices.rules.requests import parse_readings
from crossdock.devices.service.ingestion import Ingestion
from crossdock.devices.service.keys import INGEST
from crossdock.engines.mqtt.subscriber import Received, Reply, Subscription
from crossdock.http.asgi import too_large
from crossdock.http.principals import Principal
from crossdock.http.problems import domain_error, problem_for
from crossdock.kit.backoff import Backoff
from crossdock.kit.errors import FieldProblem, InvalidInput, Unavailable
from crossdock.kit.logging import fields

log = logging.getLogger("crossdock.devices.mqtt")

READINGS_FILTER = "$share/crossdock/crossdock/+/readings"
IN_FLIGHT_MAX = 100
SESSION_SECONDS = 86_400
RETRY = Backoff(base_seconds=0.5, cap_seconds=15)

_TOPIC = re.compile(r"crossdock/([^/]*)/readings")
_BROKERS_CLIENT = Principal("mqtt", "mqtt", None, frozenset({INGEST}))

_encode = msgspec.json.Encoder().encode


def subscription(client_id: str) -> Subscription:
    return Subscription(
        READINGS_FILTER,
        client_id,
        session_seconds=SESSION_SECONDS,
        in_flight_max=IN_FLIGHT_MAX,
        # Room for telling the sender of a body that is too large, within reason.
        packet_bytes_max=2 * REQUEST_BYTES_MAX,
    )


class MqttReadings:
    def __init__(self, ingestion: Ingestion, retry: Backoff = RETRY) -> None:
        self._ingestion = ingestion
        self._retry = retry

    async def handle(self, message: Received) -> Reply:
        """Never raises: a message that can't be taken is told so, and not sent again."""
        topic_id = topic_hardware_id(message.topic)
        return Reply(f"crossdock/{topic_id}/results", await self._result(topic_id, message.payload))

    async def _result(self, topic_id: str, payload: bytes) -> bytes:
        attempt = 0
        while True:
            try:
                return await self._ingest(topic_id, payload)
            except Exception as error:
                if not isinstance(domain_error(error), Unavailable):
                    return problem_for(error).body
                attempt += 1
                delay_seconds = self._retry.delay_seconds(attempt, random.random)
                said = fields(hardware_id=topic_id, delay_seconds=round(delay_seconds, 1), reason=str(error))
                log.warning("readings wait for the store", extra=said)
                await asyncio.sleep(delay_seconds)

    async def _ingest(self, topic_id: str, payload: bytes) -> bytes:
        if len(payload) > REQUEST_BYTES_MAX:
            raise too_large(REQUEST_BYTES_MAX)
        hardware_id, readings = parse_readings(payload)
        if hardware_id != topic_id:
            detail = f"The topic is {topic_id}'s: publish to crossdock/{hardware_id}/readings."
            problem = FieldProblem("hardware_id", "topic_mismatch", detail)
            raise InvalidInput("The topic and the payload name different devices.", problem)
        return _encode(await self._ingestion.ingest(hardware_id, readings, _BROKERS_CLIENT))


def topic_hardware_id(topic: str) -> str:
    """What the sender says it is, whether it can be or not."""
    found = _TOPIC.fullmatch(topic)
    return "" if found is None else found[1]
