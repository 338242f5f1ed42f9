"""How sources are configured: this part of the slice's use cases, wired to one store."""

from __future__ import annotations

from dataclasses import dataclass

from crossdock.engines.items.port import Items
from crossdock.hooks.service.connections import Connections
from crossdock.hooks.service.sources import Sources
from crossdock.hooks.service.trials import FindEvent, Trials
from crossdock.http.client import GuardedClient
from crossdock.http.idempotency_items import ItemsIdempotency
from crossdock.kit.clock import Clock
from crossdock.kit.ids import Random
from crossdock.kit.sealing import Sealer


@dataclass(frozen=True, slots=True)
class SourceServices:
    sources: Sources
    connections: Connections
    trials: Trials


def build_sources(
    items: Items,
    idempotency: ItemsIdempotency,
    *,
    sealer: Sealer,
    client: GuardedClient,
    public_url: str,
    clock: Clock,
    random: Random,
    find_event: FindEvent,
) -> SourceServices:
    sources = Sources(items, idempotency, sealer=sealer, public_url=public_url, clock=clock, random=random)
    connections = Connections(items, idempotency, sources, client, sealer=sealer, clock=clock, random=random)
    return SourceServices(sources, connections, Trials(find_event))
