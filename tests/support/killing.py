"""kill -9 of a server's processes while it is under load, and what brings it back.

    killer = Killer(server, lanes=2)
    strikes = await strike_in_turn(killer, turns(chance, 2), pace, chance, in_flight=lambda: tally.in_flight)

The load is cut into as many parts as there are victims. Its pace is held at the end of each part until the
part's victim was killed, at a random point of it: so every kill meets a load, however fast the machine.
Only a supervisor is started again by us; everything else is what the server has to bring back by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tests.support.pace import Pace
from tests.support.server import Server, is_alive
from tests.support.waiting import wait_until

from crossdock.engines.sql.postmaster import is_postmaster_of, read_pid_file

BACK_SECONDS_MAX = 30
# After the random point in the load, so that the kill falls anywhere in the life of a request.
JITTER_SECONDS_MAX = 0.01


class Victim(StrEnum):
    LANE = "serving lane"
    WORKER = "serving worker"
    SUPERVISOR = "supervisor"
    DATABASE = "database"
    EVERYTHING = "everything"
    """At once, as when the machine is reset (but for what the kernel still writes)."""


@dataclass(frozen=True, slots=True)
class Strike:
    victim: Victim
    killed: tuple[int, ...]
    in_flight: int
    """Requests that waited for their answer at that moment."""


def turns(chance: random.Random, count: int) -> list[Victim]:
    """Lane and worker in either order, then the supervisor, again and again.

    The supervisor comes last because its restart forgets how often a child has crashed: else the pauses
    before a lane is started again would grow with every turn.
    """
    victims: list[Victim] = []
    for _ in range(count):
        pair = [Victim.LANE, Victim.WORKER]
        chance.shuffle(pair)
        victims += [*pair, Victim.SUPERVISOR]
    return victims


class Killer:
    """`aim` and `recover` block; `strike` is immediate."""

    def __init__(self, server: Server, lanes: int) -> None:
        self._server = server
        self._lanes = lanes
        self._cluster = (server.data_dir / "postgres").resolve()

    def aim(self, victim: Victim) -> list[int]:
        """Waits until the victim is there. The processes to kill, in this order."""
        found: list[int] = []

        def is_there() -> bool:
            found[:] = self._processes(victim)
            return len(found) >= self._expected(victim)

        wait_until(is_there, patience_seconds=BACK_SECONDS_MAX)
        return found

    def strike(self, pids: Iterable[int]) -> tuple[int, ...]:
        """Those that were alive until now."""
        killed = []
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
        return tuple(killed)

    def recover(self, victim: Victim, killed: Sequence[int]) -> None:
        """Returns when the killed is back. Raises TimeoutError if the server doesn't see to that."""
        if self._server.process.pid in killed:
            self._server.process.wait()
            self._server.start()
            return
        wait_until(lambda: not any(map(is_alive, killed)), patience_seconds=BACK_SECONDS_MAX)
        self.aim(victim)

    def _expected(self, victim: Victim) -> int:
        others_of_everything = 3  # supervisor, worker, database
        return {Victim.LANE: self._lanes, Victim.EVERYTHING: self._lanes + others_of_everything}.get(
            victim, 1
        )

    def _processes(self, victim: Victim) -> list[int]:
        match victim:
            case Victim.SUPERVISOR:
                return [self._server.process.pid]
            case Victim.DATABASE:
                return self._postmaster()
            case Victim.EVERYTHING:
                children = self._server.children("crossdock.serving")
                # The supervisor first, or it would start the others again.
                return [self._server.process.pid, *self._postmaster(), *children]
        return self._server.children(victim.value)

    def _postmaster(self) -> list[int]:
        found = read_pid_file(self._cluster)
        if found is None or not found.is_ready or not is_postmaster_of(found.pid, self._cluster):
            return []
        return [found.pid]


async def strike_in_turn(
    killer: Killer,
    victims: Sequence[Victim],
    pace: Pace,
    chance: random.Random,
    *,
    in_flight: Callable[[], int],
) -> list[Strike]:
    """Kills every victim while the load runs, and then lets the load run to its end."""
    strikes: list[Strike] = []
    for number, victim in enumerate(victims):
        pids = await asyncio.to_thread(killer.aim, victim)
        if victim is Victim.LANE:
            pids = [chance.choice(sorted(pids))]
        begin, end = (pace.total * part // (len(victims) + 1) for part in (number, number + 1))
        await pace.hold_at(end)
        # Early enough in the part for the load not to have come to its end before the blow.
        await pace.reached(begin + int((end - begin) * chance.uniform(0.05, 0.6)))
        await asyncio.sleep(chance.uniform(0, JITTER_SECONDS_MAX))
        waiting = in_flight()
        killed = killer.strike(pids)
        strikes.append(Strike(victim, killed, waiting))
        await asyncio.to_thread(killer.recover, victim, killed)
    await pace.hold_at(pace.total)
    return strikes
