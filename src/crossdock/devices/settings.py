"""Settings of the devices slice: `CROSSDOCK_DEVICES_…`."""

from __future__ import annotations

from dataclasses import dataclass

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

    @property
    def retention_seconds(self) -> int:
        return self.retention_days * 86_400
