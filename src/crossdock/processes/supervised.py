"""One child of the supervisor: started, started again when it crashes, stopped."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from crossdock.kit.clock import Clock
from crossdock.kit.logging import fields
from crossdock.processes.inheritance import DRAIN_SECONDS, EXIT_HOPELESS, READY, Inheritance

log = logging.getLogger("crossdock.processes")

# A child that lived this long was well: its next crash counts as the first.
WELL_AFTER_SECONDS = 60.0

# What a shell says of a command that it can't run.
_NOT_STARTED = 127


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """`serves`: it is given the listening socket."""

    name: str
    command: tuple[str, ...]
    serves: bool = False


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all children of one supervisor share."""

    environ: Mapping[str, str]
    life: int
    listener: int | None
    grace_seconds: float
    clock: Clock


def restart_delay_seconds(crashes_in_a_row: int) -> float:
    """The first restart is immediate; after that a child that keeps crashing must not take the machine."""
    if crashes_in_a_row <= 1:
        return 0.0
    return min(30.0, 0.5 * 2.0 ** min(crashes_in_a_row - 2, 10))


class SupervisedChild:
    """`keep_running` returns 0 after `begin_stop`, or EXIT_HOPELESS when the child ended with it."""

    def __init__(
        self,
        spec: ChildSpec,
        surroundings: Surroundings,
        *,
        on_ready: Callable[[], None],
        on_end: Callable[[int], None],
    ) -> None:
        self.spec = spec
        self.is_ready = False
        self._surroundings = surroundings
        self._on_ready = on_ready
        self._on_end = on_end
        self._stopping = asyncio.Event()
        self._ended = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None

    async def keep_running(self) -> int:
        try:
            return await self._keep_running()
        finally:
            self._ended.set()

    def begin_stop(self) -> None:
        self._stopping.set()
        self._signal(signal.SIGTERM)

    async def finish_stop(self) -> None:
        """Returns when it is gone: by itself within the grace, or killed."""
        patience_seconds = self._surroundings.grace_seconds + DRAIN_SECONDS
        try:
            async with asyncio.timeout(patience_seconds):
                await self._ended.wait()
        except TimeoutError:
            log.error("%s did not stop within %d s; killing it", self.spec.name, patience_seconds)
            self.kill()
            await self._ended.wait()

    def kill(self) -> None:
        self._stopping.set()
        self._signal(signal.SIGKILL)

    async def _keep_running(self) -> int:
        clock = self._surroundings.clock
        crashes = 0
        while not self._stopping.is_set():
            started_at = clock.monotonic()
            status = await self._run_once()
            if self._stopping.is_set():
                break
            lived_seconds = clock.monotonic() - started_at
            log.error(
                "%s ended; starting it again",
                self.spec.name,
                extra=fields(status=status, lived_seconds=round(lived_seconds, 1)),
            )
            if status == EXIT_HOPELESS:
                return EXIT_HOPELESS
            crashes = 1 if lived_seconds >= WELL_AFTER_SECONDS else crashes + 1
            await self._pause(restart_delay_seconds(crashes))
        return 0

    async def _run_once(self) -> int:
        status_reader, status_writer = os.pipe()
        try:
            process = await self._start(status_writer)
        except OSError as error:
            log.error("%s can't be started: %s", self.spec.name, error)
            os.close(status_reader)
            return _NOT_STARTED
        finally:
            os.close(status_writer)
        self._process = process
        if self._stopping.is_set():
            self._signal(signal.SIGTERM)
        loop = asyncio.get_running_loop()
        loop.add_reader(status_reader, self._hear, status_reader)
        try:
            return await process.wait()
        finally:
            loop.remove_reader(status_reader)
            os.close(status_reader)
            self.is_ready = False
            self._process = None
            self._on_end(process.pid)

    async def _start(self, status_writer: int) -> asyncio.subprocess.Process:
        inheritance = Inheritance(
            name=self.spec.name,
            life=self._surroundings.life,
            status=status_writer,
            listener=self._surroundings.listener if self.spec.serves else None,
            grace_seconds=self._surroundings.grace_seconds,
        )
        return await asyncio.create_subprocess_exec(
            *self.spec.command,
            stdin=subprocess.DEVNULL,
            env={**self._surroundings.environ, **inheritance.environ()},
            pass_fds=inheritance.descriptors,
            # Ctrl-C in the terminal is the supervisor's to hear; it stops its children in order.
            start_new_session=True,
        )

    def _hear(self, status_reader: int) -> None:
        said = os.read(status_reader, 64)
        if said.startswith(READY) and not self.is_ready:
            self.is_ready = True
            self._on_ready()
        elif not said:
            asyncio.get_running_loop().remove_reader(status_reader)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return
