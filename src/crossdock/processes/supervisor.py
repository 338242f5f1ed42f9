"""The supervisor: starts the product's processes, keeps them running, and stops them in order.

Guarantees:

- A child that ends is started again, at once the first time, then with growing pauses.
- SIGTERM, SIGINT or SIGHUP stop the children stage by stage: the first stage (the lanes) finishes what is
  in flight while the later ones still work; a child that outstays the grace is killed. A second signal
  kills them all.
- If the supervisor itself is killed, its end of the life pipe closes, and every child stops by itself.
- What must outlive the children (a database) is kept alive until the last of them is gone.

It knows nothing of what its children do.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from crossdock.kit import metrics
from crossdock.kit.clock import Clock
from crossdock.processes.inheritance import EXIT_HOPELESS
from crossdock.processes.supervised import ChildSpec, SupervisedChild, Surroundings

log = logging.getLogger("crossdock.processes")

GRACE_SECONDS = 20.0
_KEEP_ALIVE_EVERY_SECONDS = 1.0
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Supervisor:
    """`run` once, in the main thread."""

    def __init__(
        self,
        stages: Sequence[Sequence[ChildSpec]],
        *,
        listener: socket.socket | None,
        environ: Mapping[str, str],
        metrics_dir: Path,
        clock: Clock,
        on_ready: Callable[[], None],
        keep_alive: Callable[[], object] | None = None,
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        """`stages`: the children in the order in which they are stopped.

        `on_ready` is called once, when every child does its work. `keep_alive` is called every second in a
        thread, never twice at once, until the children are gone; it may block.
        """
        self._stages = stages
        self._listener = listener
        self._environ = environ
        self._metrics_dir = metrics_dir
        self._clock = clock
        self._on_ready = on_ready
        self._keep_alive = keep_alive
        self._grace_seconds = grace_seconds
        self._children: list[list[SupervisedChild]] = []
        self._was_ready = False
        self._stop_requested = asyncio.Event()
        self._children_gone = asyncio.Event()

    async def run(self) -> int:
        """Until a signal, or until a child says that it is hopeless. Returns the exit status."""
        environ = {**self._environ, **metrics.prepare_directory(self._metrics_dir)}
        with self._signals(), _life_pipe() as life:
            surroundings = Surroundings(
                environ=environ,
                life=life,
                listener=None if self._listener is None else self._listener.fileno(),
                grace_seconds=self._grace_seconds,
                clock=self._clock,
            )
            self._children = [
                [self._supervise(spec, surroundings) for spec in stage] for stage in self._stages
            ]
            async with asyncio.TaskGroup() as group:
                group.create_task(self._care())
                keeping = [group.create_task(self._keep(child)) for child in self._all()]
                await self._stop_requested.wait()
                await self._stop_children()
                self._children_gone.set()
        return max(task.result() for task in keeping)

    def _supervise(self, spec: ChildSpec, surroundings: Surroundings) -> SupervisedChild:
        return SupervisedChild(
            spec,
            surroundings,
            on_ready=self._child_is_ready,
            on_end=lambda pid: metrics.process_ended(pid, self._metrics_dir),
        )

    def _all(self) -> list[SupervisedChild]:
        return [child for stage in self._children for child in stage]

    async def _keep(self, child: SupervisedChild) -> int:
        status = await child.keep_running()
        if status == EXIT_HOPELESS:
            self._stop_requested.set()
        return status

    async def _stop_children(self) -> None:
        for stage in self._children:
            for child in stage:
                child.begin_stop()
            if self._listener is not None:
                # Or the kernel would go on taking connections that no lane will ever answer.
                self._listener.close()
            await asyncio.gather(*(child.finish_stop() for child in stage))

    def _child_is_ready(self) -> None:
        if not self._was_ready and all(child.is_ready for child in self._all()):
            self._was_ready = True
            self._on_ready()

    async def _care(self) -> None:
        while self._keep_alive is not None and not self._children_gone.is_set():
            try:
                await asyncio.to_thread(self._keep_alive)
            except Exception:
                log.exception("what the processes depend on could not be kept alive")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_KEEP_ALIVE_EVERY_SECONDS):
                    await self._children_gone.wait()

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._on_signal, number)
        try:
            yield
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)

    def _on_signal(self, number: signal.Signals) -> None:
        if self._stop_requested.is_set():
            log.warning("%s again: killing what still runs", number.name)
            for child in self._all():
                child.kill()
        else:
            log.info("%s: stopping", number.name)
            self._stop_requested.set()


@contextlib.contextmanager
def _life_pipe() -> Iterator[int]:
    """Yields the children's end. Ours stays open exactly as long as this process supervises."""
    theirs, ours = os.pipe()
    try:
        yield theirs
    finally:
        os.close(ours)
        os.close(theirs)
