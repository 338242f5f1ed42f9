"""`crossdock devices mqtt`: the process that takes readings from an MQTT broker."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, TypeAlias

import click

from crossdock.engines.mqtt.broker import Broker, parse_broker
from crossdock.kit.lazy_module import lazy_module
from crossdock.kit.logging import configure
from crossdock.terminal.options import surroundings_of

if TYPE_CHECKING:
    from crossdock.devices import mqtt
    from crossdock.devices.service.ingestion import Ingestion
    from crossdock.engines.mqtt import subscriber
else:
    # Other commands need not wait for what serves.
    mqtt = lazy_module("crossdock.devices.mqtt")
    subscriber = lazy_module("crossdock.engines.mqtt.subscriber")

log = logging.getLogger("crossdock.devices.mqtt")

OpenIngestion: TypeAlias = "Callable[[Mapping[str, str]], AbstractAsyncContextManager[Ingestion]]"
"""Given by the composition root: ingestion into the stores that the environment names."""


class BrokerType(click.ParamType[Broker]):
    name = "url"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Broker:
        if isinstance(value, Broker):
            return value
        try:
            return parse_broker(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def mqtt_command(open_ingestion: OpenIngestion) -> click.Command:
    @click.command("mqtt")
    @click.option(
        "--broker",
        metavar="URL",
        type=BrokerType(),
        envvar="CROSSDOCK_DEVICES_MQTT_BROKER",
        required=True,
        help="mqtt://host, or with TLS mqtts://user:password@host:8883. The variable keeps a password out of "
        "the list of processes.",
    )
    @click.option(
        "--client-id",
        metavar="NAME",
        envvar="CROSSDOCK_DEVICES_MQTT_CLIENT_ID",
        help="Under which the broker keeps what arrives while this process is away; each process needs its "
        "own. By default made of the host's name.",
    )
    @click.pass_context
    def ingest_mqtt(context: click.Context, /, broker: Broker, client_id: str | None) -> None:
        """Take readings from an MQTT broker, until stopped.

        Devices publish to crossdock/ID/readings with QoS 1, in the form of POST /v1/devices/readings, and are
        told the outcome on crossdock/ID/results. It uses the stores that the settings name, as the server
        does, and may run beside it. Several may run: they share the subscription.
        """
        configure("mqtt")
        name = client_id or f"crossdock-{socket.gethostname()}"
        asyncio.run(ingest(broker, name, open_ingestion(surroundings_of(context).environ)))

    return ingest_mqtt


async def ingest(broker: Broker, client_id: str, opening: AbstractAsyncContextManager[Ingestion]) -> None:
    """Until SIGTERM or Ctrl-C: then messages in work are finished; the broker keeps what comes later."""
    running = asyncio.current_task()
    assert running is not None
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, running.cancel)
    try:
        async with opening as ingestion:
            readings = mqtt.MqttReadings(ingestion)
            wanted = mqtt.subscription(client_id)
            await subscriber.Subscriber(broker, wanted, readings.handle, lambda: tell(broker)).run()
    except asyncio.CancelledError:
        log.info("stopped")


def tell(broker: Broker) -> None:
    click.echo(f"Crossdock takes readings from {broker.label}. Ctrl-C stops it.")
