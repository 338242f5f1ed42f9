"""Background roles of the devices slice."""

from __future__ import annotations

import asyncio

from crossdock.devices.service.registration import Devices
from crossdock.engines.roles import Role

FINISH_DELETIONS_EVERY_SECONDS = 5.0


def roles(devices: Devices) -> list[Role]:
    async def finish_deletions() -> None:
        while True:
            await devices.finish_deletions()
            await asyncio.sleep(FINISH_DELETIONS_EVERY_SECONDS)

    return [Role("devices.deletions", finish_deletions)]
