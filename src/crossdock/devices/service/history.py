"""A device's readings: ranges, the latest, downsampled series, gaps, and whole ranges for export.

Everything reads by pages of the primary key, so no request holds more than a page of readings. A page of a
series or of gaps ends after a bounded number of readings; its cursor goes on from there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from crossdock.devices import store
from crossdock.devices.model import Bucket, Gap, ReadingPoint
from crossdock.devices.rules.positions import READING_POSITION, SERIES_POSITION, checked_reading_position
from crossdock.devices.rules.series import Aggregate, Downsampler, gaps
from crossdock.devices.service.directory import DeviceDirectory
from crossdock.devices.service.registration import device_not_found
from crossdock.engines.items.port import Items, JsonPage
from crossdock.http.pages import Page, PageRequest
from crossdock.kit.clock import Clock
from crossdock.kit.errors import NotFound
from crossdock.kit.pagination import encode_cursor

DAY_MS = 86_400_000
SCAN_PAGE = 1_000
SCANNED_MAX = 50_000
"""Readings that one page of a series or of gaps may look at."""


_point = msgspec.json.Decoder(ReadingPoint)


class _Timed(msgspec.Struct, gc=False):
    timestamp_ms: int


_timed = msgspec.json.Decoder(_Timed)


@dataclass(frozen=True, slots=True)
class Range:
    """Reading times, inclusive at both ends."""

    hardware_id: str
    from_ms: int
    to_ms: int
    descending: bool = False


class History:
    def __init__(self, items: Items, directory: DeviceDirectory, clock: Clock) -> None:
        self._items = items
        self._directory = directory
        self._clock = clock

    def period(self, from_ms: int | None, to_ms: int | None) -> tuple[int, int]:
        """The last day, or what was asked for of it. What lies ahead of now is no silence."""
        now_ms = self._clock.now_ms()
        until_ms = now_ms if to_ms is None else min(to_ms, now_ms)
        since_ms = max(0, until_ms - DAY_MS) if from_ms is None else from_ms
        if to_ms is None or since_ms <= to_ms:
            until_ms = max(until_ms, since_ms)
        return since_ms, until_ms

    async def check_device(self, hardware_id: str) -> None:
        if await self._directory.find(hardware_id) is None:
            raise device_not_found(hardware_id)

    async def latest(self, hardware_id: str) -> bytes:
        """The reading with the newest time, as stored."""
        await self.check_device(hardware_id)
        page = await self._items.query_json(store.latest_reading(hardware_id))
        if not page.items:
            raise NotFound("no_readings", f"{hardware_id} has no readings.")
        return page.items[0]

    async def readings(self, range_: Range, page: PageRequest) -> tuple[list[bytes], str | None]:
        """A page of readings as stored, and the cursor that goes on."""
        await self.check_device(range_.hardware_id)
        after = page.after(READING_POSITION)
        position = None if after is None else checked_reading_position(after, range_.from_ms, range_.to_ms)
        found = await self._read(range_, page.limit, position)
        if found.cursor is None:
            return found.items, None
        return found.items, encode_cursor({"ts_batch": found.cursor["ts_batch"]})

    async def buckets(
        self, range_: Range, bucket_ms: int, aggregates: Sequence[Aggregate], page: PageRequest
    ) -> Page[Bucket]:
        await self.check_device(range_.hardware_id)
        range_ = _go_on(range_, page)
        sampler = Downsampler(bucket_ms, aggregates)
        found: list[Bucket] = []
        scanned = 0
        async for encoded in self.scan(range_):
            point = _point.decode(encoded)
            bucket = sampler.add(point)
            scanned += 1
            if bucket is not None:
                found.append(bucket)
                if len(found) == page.limit or scanned > SCANNED_MAX:
                    return Page(found, _series_cursor(range_, bucket, bucket_ms))
        last = sampler.finish()
        return Page([*found, last] if last is not None else found, None)

    async def gaps(self, range_: Range, expected_seconds: float, page: PageRequest) -> Page[Gap]:
        await self.check_device(range_.hardware_id)
        range_ = _go_on(range_, page)
        times: list[int] = []
        async for encoded in self.scan(range_):
            times.append(_timed.decode(encoded).timestamp_ms)
            if len(times) == SCANNED_MAX:
                break
        complete = len(times) < SCANNED_MAX
        end_ms = range_.to_ms if complete else times[-1]
        found = list(gaps(times, range_.from_ms, end_ms, expected_seconds))
        if len(found) > page.limit:
            return Page(found[: page.limit], encode_cursor({"from_ms": found[page.limit - 1].to_ms}))
        return Page(found, None if complete else encode_cursor({"from_ms": end_ms}))

    async def pages(self, range_: Range) -> AsyncIterator[list[bytes]]:
        """Every reading of the range, as stored, in time order, a page at a time."""
        after: str | None = None
        while True:
            page = await self._read(range_, SCAN_PAGE, after)
            yield page.items
            if page.cursor is None:
                return
            after = page.cursor["ts_batch"]

    async def scan(self, range_: Range) -> AsyncIterator[bytes]:
        async for page in self.pages(range_):
            for encoded in page:
                yield encoded

    async def _read(self, range_: Range, limit: int, after: str | None) -> JsonPage:
        if range_.from_ms > range_.to_ms:
            return JsonPage([], None)
        return await self._items.query_json(
            store.readings_between(
                range_.hardware_id,
                range_.from_ms,
                range_.to_ms,
                descending=range_.descending,
                limit=limit,
                after=after,
            )
        )


def _go_on(range_: Range, page: PageRequest) -> Range:
    after = page.after(SERIES_POSITION)
    if after is None:
        return range_
    edge_ms = int(after["from_ms"])
    if range_.descending:
        return replace(range_, to_ms=min(edge_ms, range_.to_ms))
    return replace(range_, from_ms=max(edge_ms, range_.from_ms))


def _series_cursor(range_: Range, last: Bucket, bucket_ms: int) -> str:
    """Where the bucket after `last` may begin: the edge is a time that is still to be read."""
    edge_ms = last.start_ms - 1 if range_.descending else last.start_ms + bucket_ms
    return encode_cursor({"from_ms": edge_ms})
