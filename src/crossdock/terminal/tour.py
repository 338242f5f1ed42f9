"""A tour: the steps in which a slice is used as a user would, on a running server, each with what must come.

A slice's `tour.py` lists its steps; `crossdock tour` walks through them and prints what happened. A step that
gets something else raises `Unexpected`. The rest goes on, unless the others need the step (`essential`); a
step that cleans up is made whatever came before. Steps come one at a time, in order, and may keep state.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

from crossdock.kit.clock import Clock
from crossdock.kit.ids import Random
from crossdock.terminal.client import ApiClient
from crossdock.terminal.failures import CommandFailed

POLL_SECONDS = 0.1


class Unexpected(Exception):
    """The server answered something else than it should; the text says what."""


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    expected: str
    act: Callable[[], str]
    """Says shortly what came. Raises Unexpected, or CommandFailed for a refusal nobody waited for."""
    essential: bool = False
    cleans_up: bool = False


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who goes on the tour. `client` is the operator's; `client_with` makes one for another key."""

    client: ApiClient
    client_with: Callable[[str], ApiClient]
    clock: Clock
    random: Random
    sleep: Callable[[float], None] = time.sleep

    def wait(self, holds: Callable[[], bool], within_seconds: float, otherwise: Callable[[], str]) -> float:
        """How long it took until it held. Raises Unexpected, saying `otherwise`."""
        started_at = self.clock.monotonic()
        while True:
            asked_at = self.clock.monotonic()
            if holds():
                return asked_at - started_at
            if asked_at - started_at > within_seconds:
                raise Unexpected(f"{otherwise()} after {within_seconds:g} s")
            self.sleep(POLL_SECONDS)


@dataclass(frozen=True, slots=True)
class Tour:
    slice: str
    steps: Callable[[Visitor], Sequence[Step]]


@dataclass(frozen=True, slots=True)
class Outcome:
    step: Step
    came: str
    ok: bool
    duration_ms: float


def walk(steps: Sequence[Step], clock: Clock) -> Generator[Outcome, None, None]:
    """Each outcome as soon as it is known. Whoever stops listening still has everything cleaned up."""
    lost = False
    left = list(steps)
    try:
        while left:
            step = left.pop(0)
            if lost and not step.cleans_up:
                yield Outcome(step, "not tried: a step that it needs failed", False, 0.0)
                continue
            outcome = _make(step, clock)
            lost = lost or (step.essential and not outcome.ok)
            yield outcome
    finally:
        for step in left:
            if step.cleans_up:
                _make(step, clock)


def _make(step: Step, clock: Clock) -> Outcome:
    started_at = clock.monotonic()
    try:
        came, ok = step.act(), True
    except (Unexpected, CommandFailed) as failure:
        came, ok = str(failure), False
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        came, ok = f"an answer of another form: {error!r}", False
    return Outcome(step, came, ok, (clock.monotonic() - started_at) * 1000)


def expect(came: object, wanted: object, what: str) -> None:
    if came != wanted:
        raise Unexpected(f"{what}: {came!r}, not {wanted!r}")


def expect_refusal(code: str, act: Callable[[], object]) -> str:
    """The act must be refused with this code."""
    try:
        act()
    except CommandFailed as refusal:
        if refusal.code == code:
            return f"{refusal.status} {code}"
        raise
    raise Unexpected(f"it was not refused with {code}")
