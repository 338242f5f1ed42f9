"""One run of the crash tests: a server, the devices and batches of its seed, and who was killed when."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.crash.batches import Sender, SentBatch, make_batches, make_senders
from tests.crash.stores import Store
from tests.crash.verification import check_stored
from tests.crash.writers import WRITERS, Fleet, register, write_all
from tests.support.killing import Killer, Strike, Victim, strike_in_turn
from tests.support.lasting_port import lasting_port
from tests.support.pace import Pace
from tests.support.seeds import chance_of
from tests.support.server import Server

LANES = 2
SHUFFLED_WITHIN = 30
"""While processes are killed: so that new batches are on their way until the end."""


@dataclass(frozen=True, slots=True)
class Run:
    server: Server
    store: Store
    seed: int
    senders: Sequence[Sender]
    batches: list[SentBatch]
    fleet: Fleet
    started_at: float = field(default_factory=time.monotonic)

    async def load_under_fire(self, victims: Sequence[Victim]) -> list[Strike]:
        """All writers write everything, while the victims are killed one after the other."""
        killer = Killer(self.server, LANES)
        chance = chance_of(self.seed, "killer")
        tally = self.fleet.tally
        async with asyncio.TaskGroup() as group:
            group.create_task(write_all(self.fleet, shuffled_within=SHUFFLED_WITHIN))
            striking = group.create_task(
                strike_in_turn(killer, victims, self.fleet.pace, chance, in_flight=lambda: tally.in_flight)
            )
        return striking.result()

    async def check(self) -> None:
        """What holds in the end, however it went."""
        self.fleet.ledger.check_every_verdict(self.batches, WRITERS)
        await check_stored(self.server, self.store, self.senders, self.batches)
        again = await self.fleet.send_all_again()
        assert again.duplicates == len(self.batches), "sent again, not everything was a duplicate"
        await check_stored(self.server, self.store, self.senders, self.batches)

    def report(self, say: Callable[[str], None], strikes: Sequence[Strike] = ()) -> None:
        ledger = self.fleet.ledger
        killed = Counter(strike.victim.name.lower() for strike in strikes)
        say(
            f"{len(strikes)} kills {dict(killed)}, {sum(strike.in_flight for strike in strikes)} requests in "
            f"flight at them; {len(self.batches)} batches, {ledger.duplicates} repeats answered duplicate, "
            f"{len(ledger.untold(self.batches))} stored with nobody told; {self.fleet.tally}; "
            f"{time.monotonic() - self.started_at:.1f} s"
        )


@asynccontextmanager
async def running(store: Store, seed: int, batch_count: int) -> AsyncIterator[Run]:
    """A server with two lanes, on a port that it keeps over restarts, and its devices registered."""
    senders = make_senders()
    batches = make_batches(chance_of(seed, "batches"), senders, batch_count)
    arguments = ("--workers", str(LANES), "--port", str(lasting_port()))
    with Server(*arguments, environ=store.environ) as server:
        key = await register(server, senders)
        fleet = Fleet(server, key, batches, seed, Pace(WRITERS * batch_count))
        yield Run(server, store, seed, senders, batches, fleet)


def check_hits(strikes: Sequence[Strike], victims: Sequence[Victim]) -> None:
    """Every kill that was planned took a living process, and came while requests were waiting."""
    assert [strike.victim for strike in strikes] == list(victims)
    assert all(strike.killed for strike in strikes), strikes
    assert all(strike.in_flight for strike in strikes), strikes
