"""A small product to supervise: `python -m tests.support.supervised_program <part>`.

What happens is written to a journal, a line each, so that a test can read the order of things.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from crossdock.kit.clock import SystemClock
from crossdock.processes.child import Child, Hopeless, run_child
from crossdock.processes.inheritance import inherit
from crossdock.processes.lane_server import serve_lane
from crossdock.processes.listening import bind
from crossdock.processes.supervised import ChildSpec
from crossdock.processes.supervisor import Supervisor

if TYPE_CHECKING:
    from uvicorn._types import ASGIReceiveCallable, ASGISendCallable, Scope

MODULE = "tests.support.supervised_program"


def note(text: str) -> None:
    with Path(os.environ["TEST_DIR"], "journal").open("a") as journal:
        journal.write(f"{text}\n")


async def application(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
    if scope["type"] != "http":
        raise RuntimeError("no lifespan here")
    command, _, argument = scope["path"].removeprefix("/").partition("/")
    if command == "slow":
        note("slow request begins")
        await asyncio.sleep(float(argument))
    elif command == "block":
        time.sleep(float(argument))  # noqa: ASYNC251 -- a lane whose event loop is stuck
    body = json.dumps({"pid": os.getpid()}).encode()
    await send(
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-length", str(len(body)).encode())],
        }
    )
    await send({"type": "http.response.body", "body": body})


async def lane(child: Child) -> None:
    async def drain() -> None:
        note(f"{child.name} drained")

    await serve_lane(application, child, drain)


async def worker(child: Child) -> None:
    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            note("worker stopped")

    note(f"worker started {os.getpid()}")
    child.ready()
    await child.run_until_stopped(work())


async def stubborn_worker(child: Child) -> None:
    note(f"worker started {os.getpid()}")
    child.ready()
    await asyncio.Event().wait()


async def crashing_worker(child: Child) -> None:
    note(f"worker started {os.getpid()}")
    raise RuntimeError("a planned failure")


async def hopeless_worker(child: Child) -> None:
    raise Hopeless("bad_setting", "a setting is wrong")


PARTS = {
    "lane": lane,
    "worker": worker,
    "stubborn_worker": stubborn_worker,
    "crashing_worker": crashing_worker,
    "hopeless_worker": hopeless_worker,
}


def command(part: str) -> tuple[str, ...]:
    return (sys.executable, "-m", MODULE, part)


async def supervise(port: int, lanes: int, worker_part: str, grace_seconds: float) -> int:
    clock = SystemClock()
    listener = bind("127.0.0.1", port, clock)
    supervisor = Supervisor(
        [
            [ChildSpec(f"lane-{number}", command("lane"), serves=True) for number in range(1, lanes + 1)],
            [ChildSpec("worker", command(worker_part))],
        ],
        listener=listener,
        environ=os.environ,
        metrics_dir=Path(os.environ["TEST_DIR"], "metrics"),
        clock=clock,
        on_ready=lambda: note("ready"),
        keep_alive=lambda: note("kept alive"),
        grace_seconds=grace_seconds,
    )
    status = await supervisor.run()
    note("supervisor ends")
    return status


def main(arguments: list[str]) -> int:
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s {arguments[0]} %(message)s")
    if arguments[0] == "supervise":
        _, port, lanes, worker_part, grace_seconds = arguments
        return asyncio.run(supervise(int(port), int(lanes), worker_part, float(grace_seconds)))
    return run_child(inherit(os.environ), PARTS[arguments[0]])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
