"""A product that owns a PostgreSQL: `python -m tests.support.supervised_database <directory>`.

Its worker writes numbered rows, and prints a number only after the commit.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from pathlib import Path

from crossdock.engines.sql.embedded import EmbeddedPostgres
from crossdock.engines.sql.target import CONNECTION_ERRORS, Pool, PostgresTarget, open_pool
from crossdock.kit.clock import SystemClock
from crossdock.processes.child import Child, run_child
from crossdock.processes.inheritance import inherit
from crossdock.processes.supervised import ChildSpec
from crossdock.processes.supervisor import Supervisor

MODULE = "tests.support.supervised_database"
STOPPED = -1


async def insert(pool: Pool, number: int) -> None:
    await pool.execute("INSERT INTO rows VALUES ($1)", number)
    print(number, flush=True)


async def write_rows(pool: Pool) -> None:
    number = await pool.fetchval("SELECT coalesce(max(number), 0) FROM rows")
    while True:
        number += 1
        try:
            await insert(pool, number)
        except CONNECTION_ERRORS:
            await asyncio.sleep(0.05)


async def worker(child: Child) -> None:
    pool = await open_pool(PostgresTarget(os.environ["TEST_DSN"]), schema=None, max_size=2)
    await pool.execute("CREATE TABLE IF NOT EXISTS rows (number bigint)")
    child.ready()
    await child.run_until_stopped(write_rows(pool))
    await insert(pool, STOPPED)
    await pool.close()


def supervise(directory: Path) -> int:
    clock = SystemClock()
    server = EmbeddedPostgres(directory / "data", clock=clock)
    target = server.start()
    supervisor = Supervisor(
        [[ChildSpec("worker", (sys.executable, "-m", MODULE))]],
        listener=None,
        environ={**os.environ, "TEST_DSN": target.dsn},
        metrics_dir=directory / "metrics",
        clock=clock,
        on_ready=lambda: None,
        keep_alive=server.ensure_running,
    )
    try:
        return asyncio.run(supervisor.run())
    finally:
        server.stop()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    sys.exit(supervise(Path(sys.argv[1])) if len(sys.argv) > 1 else run_child(inherit(os.environ), worker))
