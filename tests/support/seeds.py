"""The seed of a test that leaves things to chance: new each run, and printed, so that a run can be repeated.

    CROSSDOCK_TEST_SEED=8420 make test ARGS=tests/crash

A seed settles what is sent, in which order, and who is killed at which point of the load. What the machine
makes of it in the same microsecond is not in anybody's hand: repeat a failing seed several times.
"""

from __future__ import annotations

import os
import random

SEED_VARIABLE = "CROSSDOCK_TEST_SEED"


def seed_of_run() -> int:
    given = os.environ.get(SEED_VARIABLE)
    return random.SystemRandom().randrange(1_000_000) if given is None else int(given)


def chance_of(seed: int, *whose: object) -> random.Random:
    """A source of chance of one's own: what others draw from theirs changes nothing in it."""
    return random.Random(":".join(map(str, (seed, *whose))))
