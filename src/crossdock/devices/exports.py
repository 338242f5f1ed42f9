"""Readings as files: NDJSON, CSV and Parquet, streamed page by page.

NDJSON passes the stored JSON on. CSV and Parquet have a column per sensor and per sensor's status; their
names are those found in the range when the export begins, in a first pass, and a sensor that appears in late
data between the two passes is left out. No format holds more than a page of readings in memory.
"""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec
import pyarrow
import pyarrow.parquet

from crossdock.devices.service.history import History, Range
from crossdock.kit.clock import rfc3339


class ExportFormat(StrEnum):
    NDJSON = "application/x-ndjson"
    CSV = "text/csv"
    PARQUET = "application/vnd.apache.parquet"

    @property
    def suffix(self) -> str:
        return {"application/x-ndjson": "ndjson", "text/csv": "csv"}.get(self.value, "parquet")


class _Row(msgspec.Struct, gc=False):
    timestamp_ms: int
    batch_id: str
    boot_id: str
    firmware_version: str
    sensors: dict[str, int | float]
    sensor_status: dict[str, str]
    friendly_name: str | None = None


_row = msgspec.json.Decoder(_Row)

FIXED = ("timestamp_ms", "time", "batch_id", "boot_id", "firmware_version", "friendly_name")


@dataclass(frozen=True, slots=True)
class Columns:
    sensors: tuple[str, ...]
    statuses: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        return [*FIXED, *self.sensor_names, *self.status_names]

    @property
    def sensor_names(self) -> list[str]:
        return [f"sensors.{name}" for name in self.sensors]

    @property
    def status_names(self) -> list[str]:
        return [f"sensor_status.{name}" for name in self.statuses]

    def values(self, row: _Row) -> list[Any]:
        return [
            row.timestamp_ms,
            f"{rfc3339(row.timestamp_ms)[:-1]}.{row.timestamp_ms % 1000:03}Z",
            row.batch_id,
            row.boot_id,
            row.firmware_version,
            row.friendly_name,
            *(row.sensors.get(name) for name in self.sensors),
            *(row.sensor_status.get(name) for name in self.statuses),
        ]


async def export(history: History, range_: Range, kind: ExportFormat) -> AsyncIterator[bytes]:
    if kind is ExportFormat.NDJSON:
        async for page in history.pages(range_):
            if page:
                yield b"\n".join(page) + b"\n"
        return
    columns = await _columns(history, range_)
    rows = _csv(history, range_, columns) if kind is ExportFormat.CSV else _parquet(history, range_, columns)
    async for chunk in rows:
        yield chunk


async def _columns(history: History, range_: Range) -> Columns:
    sensors: set[str] = set()
    statuses: set[str] = set()
    async for page in history.pages(range_):
        for encoded in page:
            row = _row.decode(encoded)
            sensors.update(row.sensors)
            statuses.update(row.sensor_status)
    return Columns(tuple(sorted(sensors)), tuple(sorted(statuses)))


async def _csv(history: History, range_: Range, columns: Columns) -> AsyncIterator[bytes]:
    yield _csv_lines([columns.names])
    async for page in history.pages(range_):
        if page:
            yield _csv_lines(columns.values(_row.decode(encoded)) for encoded in page)


def _csv_lines(rows: Iterable[Sequence[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows([_harmless(value) for value in row] for row in rows)
    return text.getvalue().encode()


def _harmless(value: Any) -> Any:
    """Spreadsheets run a text that begins like a formula; a leading quote keeps it a text."""
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return "'" + value
    return value


def parquet_schema(columns: Columns) -> pyarrow.Schema:
    fixed = [pyarrow.field("timestamp_ms", pyarrow.int64(), nullable=False)]
    fixed.append(pyarrow.field("time", pyarrow.timestamp("ms", tz="UTC"), nullable=False))
    fixed += [pyarrow.field(name, pyarrow.string()) for name in FIXED[2:]]
    sensors = [pyarrow.field(name, pyarrow.float64()) for name in columns.sensor_names]
    statuses = [pyarrow.field(name, pyarrow.string()) for name in columns.status_names]
    return pyarrow.schema([*fixed, *sensors, *statuses])


async def _parquet(history: History, range_: Range, columns: Columns) -> AsyncIterator[bytes]:
    schema = parquet_schema(columns)
    sink = io.BytesIO()
    writer = pyarrow.parquet.ParquetWriter(sink, schema, compression="zstd")
    async for page in history.pages(range_):
        if page:
            rows = [_row.decode(encoded) for encoded in page]
            writer.write_table(_arrow_table(rows, columns, schema))
            yield _drained(sink)
    writer.close()
    yield _drained(sink)


def _arrow_table(rows: Sequence[_Row], columns: Columns, schema: pyarrow.Schema) -> pyarrow.Table:
    arrays: list[list[Any]] = [
        [row.timestamp_ms for row in rows],
        [row.timestamp_ms for row in rows],
        *([getattr(row, name) for row in rows] for name in FIXED[2:]),
    ]
    arrays += [[_as_float(row.sensors.get(name)) for row in rows] for name in columns.sensors]
    arrays += [[row.sensor_status.get(name) for row in rows] for name in columns.statuses]
    return pyarrow.table(
        [pyarrow.array(array, type=field.type) for array, field in zip(arrays, schema, strict=True)],
        schema=schema,
    )


def _as_float(value: float | None) -> float | None:
    return None if value is None else float(value)


def _drained(sink: io.BytesIO) -> bytes:
    """What was written since the last time. The writer counts offsets itself, so the sink may restart."""
    chunk = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return chunk
