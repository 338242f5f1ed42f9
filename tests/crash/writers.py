"""Writers that all send the same batches to one server, whatever happens to it; and what they were told."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from operator import itemgetter

from tests.crash.batches import Sender, SentBatch, request_body
from tests.support.pace import Pace
from tests.support.persistent_client import PersistentClient, Tally
from tests.support.seeds import chance_of
from tests.support.server import Server

READINGS_PATH = "/v1/devices/readings"
WRITERS = 8
BATCHES_MAX = 4
"""In one request."""
AHEAD = 16
"""How far a writer looks for more batches of the same device to send along."""

ACKNOWLEDGED, DUPLICATES, REJECTED = "acknowledged", "duplicates", "rejected"


@dataclass(slots=True)
class Ledger:
    """Every verdict that any writer was given."""

    acknowledged_to: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    verdicts: defaultdict[int, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))

    def note(self, writer: int, sent: Sequence[SentBatch], answer: dict[str, list[str]]) -> None:
        """The answer to one request: it must speak of all that was sent, once, and reject nothing."""
        assert answer[REJECTED] == [], answer[REJECTED]
        told = [*answer[ACKNOWLEDGED], *answer[DUPLICATES]]
        assert sorted(told) == sorted(batch.batch_id for batch in sent), answer
        for kind in (ACKNOWLEDGED, DUPLICATES):
            for batch_id in answer[kind]:
                self.verdicts[writer][batch_id] = kind
        for batch_id in answer[ACKNOWLEDGED]:
            self.acknowledged_to[batch_id].append(writer)

    @property
    def duplicates(self) -> int:
        return sum(Counter(told.values())[DUPLICATES] for told in self.verdicts.values())

    def untold(self, batches: Sequence[SentBatch]) -> list[str]:
        """Batches that are stored although nobody was told so: the answer was lost with a process."""
        return [batch.batch_id for batch in batches if not self.acknowledged_to[batch.batch_id]]

    def check_every_verdict(self, batches: Sequence[SentBatch], writers: int) -> None:
        twice = {batch_id: to for batch_id, to in self.acknowledged_to.items() if len(to) > 1}
        assert not twice, f"acknowledged more than once, to writers {twice}"
        expected = {batch.batch_id for batch in batches}
        for writer in range(writers):
            assert self.verdicts[writer].keys() == expected, f"writer {writer} lacks verdicts"


@dataclass(frozen=True, slots=True)
class Fleet:
    """What all writers share."""

    server: Server
    key: str
    batches: Sequence[SentBatch]
    seed: int
    pace: Pace
    tally: Tally = field(default_factory=Tally)
    ledger: Ledger = field(default_factory=Ledger)

    def client(self, *, keep_alive: bool) -> PersistentClient:
        return PersistentClient(lambda: self.server.url, self.key, self.tally, keep_alive=keep_alive)

    async def write(self, writer: int, *, shuffled_within: int) -> None:
        """All batches, each until there is a verdict on it."""
        chance = chance_of(self.seed, "writer", writer)
        left = shuffled(self.batches, chance, shuffled_within)
        async with self.client(keep_alive=writer % 2 == 0) as client:
            while left:
                await self.pace.allowed()
                batches = take_for_one_request(left, chance)
                answer = await client.post(READINGS_PATH, request_body(batches, chance))
                self.ledger.note(writer, batches, answer)
                await self.pace.advance(len(batches))

    async def send_all_again(self) -> Ledger:
        """Once more by one who never sent anything: a ledger of its own."""
        again = Fleet(self.server, self.key, self.batches, self.seed, Pace(len(self.batches)), self.tally)
        await again.write(0, shuffled_within=len(self.batches))
        return again.ledger


async def register(server: Server, senders: Sequence[Sender]) -> str:
    """The key for the devices. On a server at peace."""
    key: str = server.client().post("/v1/devices/keys", {})["api_key"]
    async with AsyncExitStack() as opened:
        client = await opened.enter_async_context(PersistentClient(lambda: server.url, key, Tally()))
        for sender in senders:
            await client.post("/v1/devices/register", sender.registration)
    return key


async def write_all(fleet: Fleet, *, shuffled_within: int | None = None) -> None:
    """All writers, until each has all its verdicts. `shuffled_within`: see `shuffled`; None: completely."""
    within = len(fleet.batches) if shuffled_within is None else shuffled_within
    async with asyncio.TaskGroup() as group:
        for writer in range(WRITERS):
            group.create_task(fleet.write(writer, shuffled_within=within))


def shuffled(batches: Sequence[SentBatch], chance: random.Random, within: int) -> list[SentBatch]:
    """Each moved by less than `within` places: writers that stay close to one another race more often."""
    if within >= len(batches):
        return chance.sample(batches, len(batches))
    placed = [(number + chance.uniform(0, within), batch) for number, batch in enumerate(batches)]
    return [batch for _, batch in sorted(placed, key=itemgetter(0))]


def take_for_one_request(left: list[SentBatch], chance: random.Random) -> list[SentBatch]:
    """The next batch and up to three of the same device that come soon after it; removes them from `left`."""
    sender = left[0].sender
    near = [batch for batch in left[:AHEAD] if batch.sender == sender]
    taken = near[: chance.randint(1, BATCHES_MAX)]
    for batch in taken:
        left.remove(batch)
    return taken
