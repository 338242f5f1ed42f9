"""How far each shard of each stream has been read, in a small table beside the others.

It is kept in DynamoDB and not with the leases, because it belongs to the stream: a PostgreSQL that is
replaced, or restored from a backup, must not take it away or back. A position moves on only from where its
mover saw it, so that a reader which lost its lease without noticing can't move it back.
"""

from __future__ import annotations

from crossdock.engines.items.conditions import Absent, equals
from crossdock.engines.items.dynamodb.shards import Position
from crossdock.engines.items.port import Item, Items, Query, Refused, Set, Table, Written
from crossdock.kit.clock import Clock

POSITIONS = Table("crossdock-stream-positions", partition="stream", sort="shard", ttl="expires_at")

# Longer than AWS lists a shard (a day), so that a finished one is not taken for a new one.
FINISHED_KEPT_SECONDS = 7 * 24 * 3600


class Positions:
    def __init__(self, items: Items, clock: Clock) -> None:
        self._items = items
        self._clock = clock

    async def of_stream(self, stream: str) -> dict[str, Position]:
        query = Query(POSITIONS, stream, limit=1000)
        found: dict[str, Position] = {}
        while True:
            page = await self._items.query(query)
            found.update((str(item["shard"]), _position(item)) for item in page.items)
            if page.cursor is None:
                return found
            query = Query(POSITIONS, stream, limit=1000, after=page.cursor)

    async def begin(self, stream: str, shard_id: str) -> Position:
        """Where to read on. From now on the shard is missed if it is trimmed unread."""
        item: Item = {"stream": stream, "shard": shard_id, "finished": False}
        outcome = await self._items.put(POSITIONS, item, Absent("stream"))
        if isinstance(outcome, Refused) and outcome.current is not None:
            return _position(outcome.current)
        return _position(item)

    async def move(self, stream: str, shard_id: str, seen: str | None, sequence_number: str) -> bool:
        """False if another reader has moved it meanwhile."""
        expected = Absent("sequence_number") if seen is None else equals("sequence_number", seen)
        key = {"stream": stream, "shard": shard_id}
        change = Set("sequence_number", sequence_number)
        return isinstance(await self._items.update(POSITIONS, key, change, condition=expected), Written)

    async def finish(self, stream: str, shard_id: str) -> None:
        expires_at = self._clock.now_ms() // 1000 + FINISHED_KEPT_SECONDS
        key = {"stream": stream, "shard": shard_id}
        await self._items.update(POSITIONS, key, Set("finished", True), Set("expires_at", expires_at))


def _position(item: Item) -> Position:
    sequence_number = item.get("sequence_number")
    return Position(
        sequence_number if isinstance(sequence_number, str) else None, item.get("finished") is True
    )
