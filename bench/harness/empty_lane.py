"""The yardstick for requests: `python -m bench.harness.empty_lane PORT WORKERS`, until SIGTERM.

A lane that answers everything with the same few bytes, under the product's own supervisor and with the
product's own server settings: what the ratio shows is what the product does with a request, and nothing else.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from crossdock.kit.clock import SystemClock
from crossdock.processes.child import Child, run_child
from crossdock.processes.inheritance import inherit
from crossdock.processes.lane_server import serve_lane
from crossdock.processes.listening import bind
from crossdock.processes.supervised import ChildSpec
from crossdock.processes.supervisor import Supervisor

MODULE = "bench.harness.empty_lane"
BODY = b'{"status":"ok"}'
START = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"application/json"), (b"content-length", str(len(BODY)).encode())],
}
END = {"type": "http.response.body", "body": BODY}


async def empty(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "http":
        await send(START)
        await send(END)


async def serve(child: Child) -> None:
    await serve_lane(empty, child, nothing_to_drain)


async def nothing_to_drain() -> None:
    pass


def supervise(port: int, workers: int) -> int:
    lane = ChildSpec("lane", (sys.executable, "-m", MODULE), serves=True)
    clock = SystemClock()
    with tempfile.TemporaryDirectory() as metrics_dir:
        supervisor = Supervisor(
            [[lane] * workers],
            listener=bind("127.0.0.1", port, clock),
            environ=os.environ,
            metrics_dir=Path(metrics_dir),
            clock=clock,
            on_ready=lambda: None,
            grace_seconds=5,
        )
        return asyncio.run(supervisor.run())


def main() -> int:
    if len(sys.argv) == 1:
        return run_child(inherit(os.environ), serve)
    return supervise(int(sys.argv[1]), int(sys.argv[2]))


if __name__ == "__main__":
    sys.exit(main())
