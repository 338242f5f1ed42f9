"""Two nodes on one store: when one is killed (-9), the other finishes its work."""

from __future__ import annotations

import asyncio
import secrets

import pytest
from tests.crash.conftest import Say
from tests.crash.stores import PostgresStore
from tests.crash.webhooks import ENVIRON, set_up
from tests.support.killing import Killer
from tests.support.lasting_port import lasting_port
from tests.support.pace import Pace
from tests.support.postgres import TestPostgres
from tests.support.receiver import Receiver
from tests.support.server import Server

EVENTS = 150


@pytest.mark.timeout(300)
async def test_what_a_killed_node_held_is_finished_by_the_other(postgres: TestPostgres, say: Say) -> None:
    database = await postgres.create_database()
    environ = {
        **PostgresStore.environ,
        **ENVIRON,
        "CROSSDOCK_DATABASE_URL": database.dsn,
        "CROSSDOCK_OPERATOR_KEY": f"dk_{secrets.token_hex(32)}",
        "CROSSDOCK_SECRET_KEY": secrets.token_hex(32),
        "CROSSDOCK_DEVICES_KEY_PEPPER": secrets.token_hex(32),
    }
    port = str(lasting_port())
    async with Receiver() as receiver:
        receiver.delay_seconds = 0.02
        with Server("--port", port, environ=environ) as doomed, Server(environ=environ) as other:
            key = environ["CROSSDOCK_OPERATOR_KEY"]
            run = await asyncio.to_thread(set_up, doomed, receiver, key)
            pace = Pace(EVENTS)
            async with asyncio.TaskGroup() as group:
                group.create_task(run.send_all(EVENTS, pace))
                await pace.reached(EVENTS // 3)
                await asyncio.to_thread(_kill_node, doomed)
                # Its provider tries again elsewhere.
                run.server = other
            run.report(say)
            await run.check(EVENTS)
    await postgres.drop_database(database)


def _kill_node(server: Server) -> None:
    killer = Killer(server, lanes=1)
    children = server.children("crossdock.serving")
    killer.strike([server.process.pid, *children])
    server.process.wait()
