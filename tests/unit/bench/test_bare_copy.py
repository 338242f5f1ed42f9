"""The yardstick is only fair if its tables are the product's in everything but the name."""

from __future__ import annotations

from bench.harness.bare_copy import copy_of_table, copy_rows

from crossdock.engines.sql.target import PostgresTarget, connect

ORIGINAL = """
    CREATE SCHEMA product;
    CREATE TABLE product.things (
        id text COLLATE "C" PRIMARY KEY, expires_at bigint, item json NOT NULL
    ) WITH (fillfactor = 90);
    CREATE INDEX things_expires_at ON product.things (expires_at) WHERE expires_at IS NOT NULL;
"""


async def test_the_yardsticks_table_has_the_same_columns_indexes_and_parameters(
    database: PostgresTarget,
) -> None:
    connection = await connect(database)
    await connection.execute(ORIGINAL)
    await copy_of_table(connection, "product", "things")
    columns = """
        SELECT attname, format_type(atttypid, atttypmod), attcollation::text, attnotnull, attstorage
        FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 ORDER BY attnum
    """
    shape = "SELECT reloptions, relhasindex FROM pg_class WHERE oid = $1::regclass"
    indexes = """
        SELECT regexp_replace(replace(pg_get_indexdef(indexrelid), 'bench.', 'product.'), 'INDEX \\S+', '')
        FROM pg_index WHERE indrelid = $1::regclass ORDER BY 1
    """
    for query in (columns, shape, indexes):
        ours = await connection.fetch(query, "product.things")
        theirs = await connection.fetch(query, "bench.things")
        assert ours == theirs
    assert len(await connection.fetch(indexes, "bench.things")) == 2
    await connection.close()


async def test_every_row_is_copied_and_committed(database: PostgresTarget) -> None:
    connection = await connect(database)
    await connection.execute(ORIGINAL)
    await copy_of_table(connection, "product", "things")
    rows = [(str(number), number, "{}") for number in range(250)]
    sample = await copy_rows(connection, [("things", rows)], seconds=60, rows_per_commit=100)
    assert sample.per_second > 0
    assert await connection.fetchval("SELECT count(*) FROM bench.things") == 250
    await connection.close()
