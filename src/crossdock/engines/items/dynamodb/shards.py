"""Which shards of a stream may be read, and what was trimmed before anybody read it. Pure.

A shard is closed when it splits or after some hours, and its children go on where it ends: they are read when
it has been read to its end, so that an item's records keep their order. AWS keeps records for 24 hours; a
reader that was away for longer has missed some for ever, and somebody should know.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Shard:
    shard_id: str
    parent_id: str | None

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> Shard:
        return cls(description["ShardId"], description.get("ParentShardId"))


@dataclass(frozen=True, slots=True)
class Position:
    """How far a shard has been read. It stays for days after the shard is finished and gone."""

    sequence_number: str | None
    """Of the last record whose expiries were handled; None: from the start."""
    is_finished: bool


def readable_shards(shards: Collection[Shard], positions: Mapping[str, Position]) -> list[str]:
    """Unfinished ones whose parent is finished, or out of reach."""
    listed = {shard.shard_id for shard in shards}
    unfinished = {shard_id for shard_id in listed if not _is_finished(shard_id, positions)}
    return [
        shard.shard_id
        for shard in shards
        if shard.shard_id in unfinished and shard.parent_id not in unfinished
    ]


def trimmed_shards(shards: Collection[Shard], positions: Mapping[str, Position]) -> list[str]:
    """Shards that are gone and were not read to their end.

    That is one whose reading had begun; and one that came and went unseen, which only its child tells of. On
    the first reading of a stream, what was trimmed before is nobody's loss.
    """
    listed = {shard.shard_id for shard in shards}
    begun = [
        shard_id
        for shard_id, position in positions.items()
        if shard_id not in listed and not position.is_finished
    ]
    unseen = [
        shard.parent_id
        for shard in shards
        if shard.parent_id is not None
        and shard.parent_id not in listed
        and shard.parent_id not in positions
        and shard.shard_id not in positions
    ]
    return begun + (unseen if positions else [])


def _is_finished(shard_id: str, positions: Mapping[str, Position]) -> bool:
    return shard_id in positions and positions[shard_id].is_finished
