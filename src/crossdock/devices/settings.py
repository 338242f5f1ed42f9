"""Settings of the devices slice: `CROSSDOCK_DEVICES_…`."""

from __future__ import annotations

from dataclasses import dataclass

from crossdock.engines.mqtt.broker import check_broker
from crossdock.kit.configuration import setting


@dataclass(frozen=True, slots=True)
class DevicesSettings:
    retention_days: int = setting(
        90,
        "Days a reading is kept, counted from its own time; 0 keeps readings for ever.",
        minimum=0,
        maximum=36_500,
    )
    key_pepper: str | None = setting(
        None,
        "Hashed together with every device key. Made on first start and kept in the data directory unless "
        "given; several nodes need the same one, and changing it ends every device key.",
        secret=True,
    )

    mqtt_broker: str | None = setting(
        None,
        "The broker that `crossdock devices mqtt` takes readings from unless --broker names one: "
        "mqtt://host, or mqtts://user:password@host:port.",
        secret=True,
        check=check_broker,
    )
    mqtt_client_id: str | None = setting(
        None, "What `crossdock devices mqtt` calls itself there, unless --client-id says; by host by default."
    )

    @property
    def retention_seconds(self) -> int:
        return self.retention_days * 86_400
