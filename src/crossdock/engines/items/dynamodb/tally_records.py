"""Tallies that wait to be counted: a record for each transaction that brought any, in a table of our own.

The record is written in the transaction itself. Records are spread over a few shards, since a partition of
DynamoDB takes 1,000 writes a second, and sorted by time within them, so that the oldest are counted first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from crossdock.engines.items.apply import Place, place_of
from crossdock.engines.items.conditions import Exists
from crossdock.engines.items.limits import WRITES_MAX
from crossdock.engines.items.port import Delete, Item, Put, Table, Tally
from crossdock.engines.items.tallies import encode_tallies
from crossdock.kit.ids import Random, uuid7_text

TALLIES = Table("crossdock-tallies", partition="shard", sort="at")
SHARDS = tuple("01234567")

_Row = tuple[str, dict[str, str], dict[str, int], dict[str, str], dict[str, str]]
_decode = msgspec.json.Decoder(list[_Row]).decode


class TableUnknown(Exception):
    """A record of a newer version counts into a table that this one doesn't have."""


@dataclass(frozen=True, slots=True)
class Record:
    shard: str
    at: str
    tallies: tuple[Tally, ...]

    @property
    def places(self) -> set[Place]:
        return {place_of(tally) for tally in self.tallies}

    def removal(self) -> Delete:
        """Refused if somebody has counted it."""
        return Delete(TALLIES, {"shard": self.shard, "at": self.at}, Exists("shard"))


def recording(tallies: Sequence[Tally], now_ms: int, random: Random) -> Put:
    """The write of a new record. Raises ItemRejected."""
    shard = SHARDS[random(1)[0] % len(SHARDS)]
    return Put(
        TALLIES,
        {"shard": shard, "at": uuid7_text(now_ms, random), "tallies": encode_tallies(tallies).decode()},
    )


def record_of(item: Item, tables: Mapping[str, Table]) -> Record:
    """Raises TableUnknown."""
    tallies: list[Tally] = []
    for name, key, add, latest, when in _decode(str(item["tallies"])):
        if name not in tables:
            raise TableUnknown(name)
        tallies.append(Tally(tables[name], key, add, latest, when))
    return Record(str(item["shard"]), str(item["at"]), tuple(tallies))


def batches(records: Iterable[Record]) -> Iterable[list[Record]]:
    """As many together as fit into one transaction with the items that they count into."""
    batch: list[Record] = []
    places: set[Place] = set()
    for record in records:
        if batch and len(batch) + 1 + len(places | record.places) > WRITES_MAX:
            yield batch
            batch, places = [], set()
        batch.append(record)
        places |= record.places
    if batch:
        yield batch
