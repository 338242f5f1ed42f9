"""Background roles of the hooks slice."""

from __future__ import annotations

from crossdock.engines.leases import Leases
from crossdock.engines.roles import Role
from crossdock.hooks.composition import HooksServices


def roles(services: HooksServices, leases: Leases) -> list[Role]:
    engine = services.engine

    async def deliver() -> None:
        async with engine.working():
            await engine.puller.run()

    return [
        # On every node: each takes what it has room for.
        Role("hooks.deliveries", deliver, leased=False),
        Role("hooks.parking", engine.parking.run),
        Role("hooks.replays", lambda: services.events.work.run(leases), leased=False),
        Role("hooks.live", services.live.run, leased=False),
    ]
