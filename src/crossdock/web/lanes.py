"""Hot lanes: raw ASGI callables that are found before any framework sees the request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from crossdock.http.asgi import App


@dataclass(frozen=True, slots=True)
class Lane:
    """`path` is exact (`/v1/devices/readings`), or a prefix when it ends in `/` (`/in/`).

    `slice` labels its metrics. `openapi` is added to the document's paths, `schemas` to its schemas.
    """

    path: str
    handler: App
    slice: str
    openapi: Mapping[str, Any] = field(default_factory=dict)
    schemas: Mapping[str, Any] = field(default_factory=dict)


class LaneTable:
    """One dict lookup for an exact path, one more for a prefix: it is the path's first part."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self._exact: dict[str, Lane] = {}
        self._prefixes: dict[str, Lane] = {}
        for lane in lanes:
            table = self._prefixes if lane.path.endswith("/") else self._exact
            if lane.path in table:
                raise ValueError(f"two lanes at {lane.path}")
            if table is self._prefixes and lane.path.count("/") != 2:
                raise ValueError(f"a lane's prefix is one part of a path, like /in/: {lane.path}")
            table[lane.path] = lane

    def find(self, path: str) -> Lane | None:
        lane = self._exact.get(path)
        if lane is not None or not self._prefixes:
            return lane
        end = path.find("/", 1)
        return self._prefixes.get(path[: end + 1]) if end > 0 else None
