"""A bounded cache for one event loop, whose invalidations win over fills in flight.

- At most `capacity` entries; the one unused the longest goes first.
- An entry is good for its TTL, counted from when its fill began, not from when the answer came: a value is
  never served longer than that after it was read. "Nothing there" (a fill that returns None) is kept too, for
  a TTL of its own.
- One fill at a time for a key: callers that come meanwhile wait for it and share its answer or its error.
  If the filling caller is cancelled, one of those waiting takes over.
- `invalidate` and `put` cut off a fill in flight: its answer goes to those that waited before, and is not
  kept. A caller that comes after an invalidation always gets what was read after it.
- `limit_ttl` caps the age of entries, also of those already here: for the time in which invalidations from
  other processes may be missed.

A fill that fails is not kept. Nothing here is shared between processes, or safe for several threads.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from crossdock.kit.clock import Clock

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Hit(Generic[V]):
    """What is known of a key; `value` None: that there is nothing."""

    value: V | None


@dataclass(frozen=True, slots=True)
class _Entry(Generic[V]):
    hit: Hit[V]
    read_at: float
    ttl_seconds: float


_Flight: TypeAlias = "asyncio.Future[Hit[V] | None]"
"""A fill that others wait for; None: it was cancelled, try again."""


class TtlCache(Generic[K, V]):
    def __init__(
        self, clock: Clock, *, capacity: int, ttl_seconds: float, negative_ttl_seconds: float | None = None
    ) -> None:
        """`negative_ttl_seconds`: for None values; the same as `ttl_seconds` unless given."""
        if capacity < 1:
            raise ValueError("a cache holds at least one entry")
        self._clock = clock
        self._capacity = capacity
        self._ttl_seconds = ttl_seconds
        self._negative_ttl_seconds = ttl_seconds if negative_ttl_seconds is None else negative_ttl_seconds
        self._ttl_limit_seconds = float("inf")
        self._entries: OrderedDict[K, _Entry[V]] = OrderedDict()
        self._flights: dict[K, _Flight[V]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> Hit[V] | None:
        """What is known of the key and still good; None: ask the source."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if self._clock.monotonic() - entry.read_at >= min(entry.ttl_seconds, self._ttl_limit_seconds):
            del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return entry.hit

    def put(self, key: K, value: V | None, *, ttl_seconds: float | None = None) -> None:
        """Keep a value just read or written, instead of whatever is here or on its way."""
        self._flights.pop(key, None)
        self._keep(key, Hit(value), self._clock.monotonic(), ttl_seconds)

    async def get_or_fill(
        self, key: K, fill: Callable[[K], Awaitable[V | None]], *, ttl_seconds: float | None = None
    ) -> V | None:
        """The value, from here or from `fill`. Raises what `fill` raises."""
        while True:
            hit = self.get(key)
            if hit is not None:
                return hit.value
            flight = self._flights.get(key)
            if flight is None:
                return await self._fill(key, fill, ttl_seconds)
            # The shield keeps one caller's cancellation from the others that wait.
            shared = await asyncio.shield(flight)
            if shared is not None:
                return shared.value

    def invalidate(self, key: K) -> None:
        self._entries.pop(key, None)
        self._flights.pop(key, None)

    def invalidate_where(self, matches: Callable[[K], bool]) -> None:
        for key in [key for key in (*self._entries, *self._flights) if matches(key)]:
            self.invalidate(key)

    def invalidate_all(self) -> None:
        self._entries.clear()
        self._flights.clear()

    def limit_ttl(self, seconds: float | None) -> None:
        """Serve nothing older than this until further notice; None lifts the limit."""
        self._ttl_limit_seconds = float("inf") if seconds is None else seconds

    async def _fill(
        self, key: K, fill: Callable[[K], Awaitable[V | None]], ttl_seconds: float | None
    ) -> V | None:
        flight: _Flight[V] = asyncio.get_running_loop().create_future()
        self._flights[key] = flight
        began_at = self._clock.monotonic()
        try:
            hit = Hit(await fill(key))
        except Exception as error:
            flight.set_exception(error)
            flight.exception()  # marks it as seen: often nobody waits, and that is no mistake
            raise
        except BaseException:
            flight.set_result(None)
            raise
        else:
            flight.set_result(hit)
            if self._flights.get(key) is flight:
                self._keep(key, hit, began_at, ttl_seconds)
            return hit.value
        finally:
            if self._flights.get(key) is flight:
                del self._flights[key]

    def _keep(self, key: K, hit: Hit[V], read_at: float, ttl_seconds: float | None) -> None:
        if ttl_seconds is None:
            ttl_seconds = self._negative_ttl_seconds if hit.value is None else self._ttl_seconds
        self._entries[key] = _Entry(hit, read_at, ttl_seconds)
        self._entries.move_to_end(key)
        if len(self._entries) > self._capacity:
            self._entries.popitem(last=False)
