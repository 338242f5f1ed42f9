"""A way to a real PostgreSQL that breaks connections while they commit."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from enum import Enum
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

from crossdock.engines.sql.target import PostgresTarget


class Fate(Enum):
    """Of a connection that sends COMMIT."""

    SPARED = "spared"
    BROKEN_BEFORE = "broken before the server heard of it"
    BROKEN_AFTER = "broken after the server has committed, before anybody is told"


@asynccontextmanager
async def lossy(target: PostgresTarget, fate: Callable[[], Fate]) -> AsyncIterator[PostgresTarget]:
    """The same database by way of a socket that asks `fate` at each commit."""
    parts = urlsplit(target.dsn)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    upstream = str(Path(query["host"]) / f".s.PGSQL.{query['port']}")
    connections: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        await _serve(upstream, reader, writer, fate)

    with tempfile.TemporaryDirectory(prefix="crossdock-lossy-") as directory:
        server = await asyncio.start_unix_server(serve, Path(directory) / f".s.PGSQL.{query['port']}")
        try:
            dsn = urlunsplit(parts._replace(query=urlencode({**query, "host": directory})))
            yield PostgresTarget(dsn)
        finally:
            server.close()
            await asyncio.gather(*connections)


async def _serve(
    upstream: str,
    from_client: asyncio.StreamReader,
    to_client: asyncio.StreamWriter,
    fate: Callable[[], Fate],
) -> None:
    from_server, to_server = await asyncio.open_unix_connection(upstream)

    async def pass_answers_on() -> None:
        while data := await from_server.read(1 << 16):
            to_client.write(data)
        to_client.close()

    answers = asyncio.create_task(pass_answers_on())
    try:
        while data := await from_client.read(1 << 16):
            told = fate() if data.endswith(b"COMMIT\0") else Fate.SPARED
            if told is Fate.BROKEN_BEFORE:
                break
            if told is Fate.BROKEN_AFTER:
                answers.cancel()
                await asyncio.wait({answers})
                to_server.write(data)
                await from_server.readexactly(1)
                break
            to_server.write(data)
    finally:
        answers.cancel()
        to_client.close()
        to_server.close()
        await asyncio.gather(answers, return_exceptions=True)
