"""The product's own tables, reached directly: to count what was committed, and to fill them quickly."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec

from bench.devices.fleet import Fleet, StoredForm, readings_of
from bench.harness.bare_copy import Connection
from crossdock.devices.store import BATCHES, READINGS
from crossdock.engines.items.postgres.backend import prepare_connection
from crossdock.engines.items.postgres.layout import SCHEMA, Layout
from crossdock.engines.sql.embedded import attached
from crossdock.engines.sql.target import connect

COPY_ROWS = 10_000

READINGS_LAYOUT = Layout(READINGS)
BATCHES_LAYOUT = Layout(BATCHES)


@contextlib.asynccontextmanager
async def database_of(fleet: Fleet) -> AsyncIterator[Connection]:
    with attached(fleet.product.data_dir) as target:
        connection = await connect(target)
        try:
            await prepare_connection(connection)
            yield connection
        finally:
            await connection.close()


async def count_readings(connection: Connection) -> int:
    return int(await connection.fetchval(f"SELECT count(*) FROM {READINGS_LAYOUT.relation}"))


async def stored_form(fleet: Fleet, connection: Connection, first_ms: int) -> StoredForm:
    """Sends a reading the way a device does, and looks at what became of it."""
    hardware_id = fleet.devices[0]
    reading = next(readings_of(hardware_id, first_ms))
    await fleet.product.call(
        "POST",
        "/v1/devices/readings",
        {"hardware_id": hardware_id, "readings": [reading]},
        key=fleet.device_key,
    )
    marker = await _item(connection, BATCHES_LAYOUT, reading["batch_id"])
    return StoredForm(await _item(connection, READINGS_LAYOUT, reading["batch_id"]), marker)


async def _item(connection: Connection, layout: Layout, batch_id: str) -> dict[str, Any]:
    query = f"SELECT item FROM {layout.relation} WHERE item ->> 'batch_id' = $1"
    item: dict[str, Any] = msgspec.json.decode(await connection.fetchval(query, batch_id))
    return item


def rows_of(form: StoredForm, hardware_id: str, readings: Iterator[dict[str, Any]]) -> Iterator[Pair]:
    for sent in readings:
        yield Pair(
            READINGS_LAYOUT.row(form.reading_item(hardware_id, sent)),
            BATCHES_LAYOUT.row(form.marker_item(hardware_id, sent)),
        )


@dataclass(frozen=True, slots=True)
class Pair:
    reading: tuple[object, ...]
    marker: tuple[object, ...]


async def fill(
    fleet: Fleet, connection: Connection, form: StoredForm, first_ms: int, per_device: int
) -> None:
    """Stores `per_device` readings of every device, straight into the table. Their markers are left out."""
    for hardware_id in fleet.devices:
        sent = islice(readings_of(hardware_id, first_ms), per_device)
        rows = (READINGS_LAYOUT.row(form.reading_item(hardware_id, reading)) for reading in sent)
        while chunk := list(islice(rows, COPY_ROWS)):
            await connection.copy_records_to_table(
                READINGS.name, schema_name=SCHEMA, columns=READINGS_LAYOUT.columns, records=chunk
            )
    await connection.execute(f"VACUUM ANALYZE {READINGS_LAYOUT.relation}")
    await connection.execute("CHECKPOINT")
