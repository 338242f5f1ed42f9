"""A child process of the supervisor: runs until it is told to stop, or its supervisor is gone.

It is told by SIGTERM, or by the end of the life pipe, whose other end only the supervisor holds: so a kill -9
of the supervisor stops its children too. A thread watches the pipe, because an event loop may be busy.
Whatever happens then, the process ends: a stop that takes longer than the grace and some is cut off.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import uvloop

from crossdock.kit.errors import CrossdockError
from crossdock.processes.inheritance import EXIT_HOPELESS, READY, SELF_END_SECONDS, Inheritance

log = logging.getLogger("crossdock.processes")

T = TypeVar("T")


class Hopeless(CrossdockError):
    """Starting this process again will not help. The supervisor stops everything and passes on the status."""


class Child:
    """What a child's main function works with. `stopping` is set once, when it should end."""

    def __init__(self, inheritance: Inheritance) -> None:
        self.inheritance = inheritance
        self.stopping = asyncio.Event()

    @property
    def name(self) -> str:
        return self.inheritance.name

    @property
    def grace_seconds(self) -> float:
        return self.inheritance.grace_seconds

    def ready(self) -> None:
        """Tells the supervisor that this process does its work now."""
        try:
            os.write(self.inheritance.status, READY)
        except BrokenPipeError:
            log.debug("nobody listens whether %s is ready", self.name)

    async def run_until_stopped(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs the work, and cancels it when this process should end. The work's own end is passed on."""
        task = asyncio.create_task(work)
        stop = asyncio.create_task(self.stopping.wait())
        try:
            await asyncio.wait((task, stop), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait((task,))
        if not task.cancelled():
            task.result()


def run_child(inheritance: Inheritance, main: Callable[[Child], Coroutine[Any, Any, None]]) -> int:
    """Runs `main` in an event loop of its own. Returns the exit status."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            runner.run(_run(inheritance, main))
        except Hopeless as error:
            log.error("%s can't start: %s", inheritance.name, error.message)
            return EXIT_HOPELESS
        except Exception:
            log.exception("%s failed", inheritance.name)
            return 1
    return 0


async def _run(inheritance: Inheritance, main: Callable[[Child], Coroutine[Any, Any, None]]) -> None:
    child = Child(inheritance)
    loop = asyncio.get_running_loop()
    end_by_force = threading.Timer(inheritance.grace_seconds + SELF_END_SECONDS, os._exit, (1,))
    end_by_force.daemon = True
    told = threading.Lock()

    def stop() -> None:
        """Called in the loop or in the watching thread, any number of times."""
        if told.acquire(blocking=False):
            end_by_force.start()
        with contextlib.suppress(RuntimeError):  # the loop is closed: we have stopped
            loop.call_soon_threadsafe(child.stopping.set)

    def watch() -> None:
        os.read(inheritance.life, 1)
        stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    threading.Thread(target=watch, name="life pipe", daemon=True).start()
    try:
        await main(child)
    finally:
        end_by_force.cancel()
