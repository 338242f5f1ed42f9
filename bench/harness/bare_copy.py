"""The yardstick for ingestion: one bare connection that COPYs rows, and does nothing else.

The rows go into copies of the product's own tables, in the same PostgreSQL, with the same columns, indexes
and storage parameters. Rows are made before the clock starts; each commit is durable, as the product's are.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import asyncpg

from bench.harness.rounds import Sample

SCHEMA = "bench"

Connection = asyncpg.Connection


async def copy_of_table(connection: Connection, schema: str, table: str) -> str:
    """Makes an empty table like that one, in the yardstick's schema. Returns its name."""
    original = f'"{schema}"."{table}"'
    twin = f'"{SCHEMA}"."{table}"'
    await connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{SCHEMA}"')
    await connection.execute(f"CREATE TABLE {twin} (LIKE {original} INCLUDING ALL)")
    parameters = await connection.fetchval(
        "SELECT reloptions FROM pg_class WHERE oid = $1::regclass", original
    )
    if parameters:
        await connection.execute(f"ALTER TABLE {twin} SET ({', '.join(parameters)})")
    await _check_same_indexes(connection, original, twin)
    return table


async def _check_same_indexes(connection: Connection, original: str, twin: str) -> None:
    query = """
        SELECT array_agg(regexp_replace(pg_get_indexdef(indexrelid), 'INDEX .* USING', 'USING')
                         ORDER BY regexp_replace(pg_get_indexdef(indexrelid), 'INDEX .* USING', 'USING'))
        FROM pg_index WHERE indrelid = $1::regclass
    """
    ours, theirs = await connection.fetchval(query, original), await connection.fetchval(query, twin)
    if ours != theirs:
        raise AssertionError(f"The yardstick's indexes differ: {ours} and {theirs}")


async def copy_rows(
    connection: Connection,
    rows: Sequence[tuple[str, Sequence[tuple[object, ...]]]],
    *,
    seconds: float,
    rows_per_commit: int,
) -> Sample:
    """COPYs `rows` (table, its rows; all of one length) side by side until they or the seconds are used up.

    What is counted are rows of one table: a reading and its marker are one.
    """
    total = len(rows[0][1])
    done = 0
    started_at = perf_counter()
    while done < total and perf_counter() - started_at < seconds:
        async with connection.transaction():
            for table, records in rows:
                chunk = records[done : done + rows_per_commit]
                await connection.copy_records_to_table(table, records=chunk, schema_name=SCHEMA)
        done += min(rows_per_commit, total - done)
    return Sample(per_second=done / (perf_counter() - started_at))
