"""What the supervisor hands to a child: an agreement in one environment variable and some open files."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass

VARIABLE = "_CROSSDOCK_CHILD"

# A child's exit status for "starting me again will not help" (EX_CONFIG): a setting is wrong.
EXIT_HOPELESS = 78

READY = b"ready\n"

# After the grace come the last writes of what was accepted; a child that still lives then is killed, and
# one that has no supervisor any more ends itself a little later.
DRAIN_SECONDS = 5.0
SELF_END_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Inheritance:
    """Descriptors: `life` ends when the supervisor does, `status` takes READY, `listener` is for lanes."""

    name: str
    life: int
    status: int
    listener: int | None
    grace_seconds: float

    def environ(self) -> dict[str, str]:
        return {VARIABLE: json.dumps(asdict(self))}

    @property
    def descriptors(self) -> tuple[int, ...]:
        return tuple(each for each in (self.life, self.status, self.listener) if each is not None)

    def open_listener(self) -> socket.socket:
        if self.listener is None:
            raise RuntimeError(f"{self.name} was given no listening socket")
        return socket.socket(fileno=self.listener)


def inherit(environ: Mapping[str, str]) -> Inheritance:
    """In the child, once. Raises RuntimeError in a process that no supervisor started."""
    given = environ.get(VARIABLE)
    if given is None:
        raise RuntimeError("this command is started by `crossdock up`, not by hand")
    inheritance = Inheritance(**json.loads(given))
    for descriptor in inheritance.descriptors:
        os.set_inheritable(descriptor, False)
    return inheritance
