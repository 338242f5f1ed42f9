"""Deleting what expired, and telling the handlers.

A sweep deletes in small batches and, for tables with a stream, writes the items into `items.expired` in the
same transaction; handlers are told from there and the row goes when they have returned. So a crash at any
moment repeats at most a telling, with the same event id, and loses none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import cast

from crossdock.engines.items.limits import decode_item
from crossdock.engines.items.port import Expired, ExpiryHandler, Item
from crossdock.engines.items.postgres.layout import SCHEMA, Layout, quoted
from crossdock.engines.sql.target import Pool
from crossdock.kit.clock import Clock

BATCH = 500
IDLE_SECONDS = 5.0

RELATION = f"{SCHEMA}.expired"
DEFINITIONS = [
    f"CREATE TABLE IF NOT EXISTS {SCHEMA}.expired ("
    "id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, table_name text NOT NULL, item json NOT NULL)",
    f"CREATE INDEX IF NOT EXISTS expired_table_name ON {SCHEMA}.expired (table_name, id)",
]

_log = logging.getLogger("crossdock.items")


async def run(
    pool: Pool, layouts: Mapping[str, Layout], handlers: Mapping[str, ExpiryHandler], clock: Clock
) -> None:
    """Until cancelled. Run it under a lease: two sweepers do no harm, but twice the work."""
    while True:
        busy = False
        for layout in layouts.values():
            if layout.table.ttl is not None:
                busy |= await sweep(pool, layout, clock.now_ms() // 1000) == BATCH
                busy |= await _tell_safely(pool, layout, handlers)
        if not busy:
            await asyncio.sleep(IDLE_SECONDS)


async def sweep(pool: Pool, layout: Layout, now_seconds: int) -> int:
    """Deletes up to a batch of expired items; how many."""
    keys = ", ".join(quoted(name) for name in layout.keys)
    gone = (
        f"DELETE FROM {layout.relation} WHERE ({keys}) IN (SELECT {keys} FROM {layout.relation} "
        "WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)"
    )
    if not layout.table.stream:
        status = await pool.execute(gone, now_seconds, BATCH)
    else:
        status = await pool.execute(
            f"WITH gone AS ({gone} RETURNING *) "
            f"INSERT INTO {SCHEMA}.expired (table_name, item) SELECT $3, {layout.whole_item} FROM gone",
            now_seconds,
            BATCH,
            layout.table.name,
        )
    return int(status.rpartition(" ")[2])


async def _tell_safely(pool: Pool, layout: Layout, handlers: Mapping[str, ExpiryHandler]) -> bool:
    handler = handlers.get(layout.table.name)
    if handler is None:
        return False
    try:
        return await tell(pool, layout, handler) == BATCH
    except Exception:
        # The rows stay and are told again; one table's handler must not stop the others' sweeps.
        _log.exception("an expiry handler of %s failed", layout.table.name)
        return False


async def tell(pool: Pool, layout: Layout, handler: ExpiryHandler) -> int:
    rows = await pool.fetch(
        f"SELECT id, item FROM {SCHEMA}.expired WHERE table_name = $1 ORDER BY id LIMIT $2",
        layout.table.name,
        BATCH,
    )
    if rows:
        await handler(
            [
                Expired(
                    f"{layout.table.name}-{row['id']}", layout.table, cast(Item, decode_item(row["item"]))
                )
                for row in rows
            ]
        )
        await pool.execute(
            f"DELETE FROM {SCHEMA}.expired WHERE id = ANY($1::bigint[])", [row["id"] for row in rows]
        )
    return len(rows)


def _expired(layout: Layout, number: int, encoded: bytes) -> Expired:
    item = cast(Item, decode_item(encoded))
    return Expired(f"{layout.table.name}-{number}", layout.table, item)
