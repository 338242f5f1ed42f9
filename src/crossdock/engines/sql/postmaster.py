"""A running PostgreSQL server, known by the `postmaster.pid` that it keeps in its data directory."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from crossdock.kit.clock import Clock

log = logging.getLogger("crossdock.postgres")

_POLL_SECONDS = 0.02

# Fast mode rolls open transactions back and writes a checkpoint. Immediate mode leaves recovery to the next
# start; no committed row is lost by it, nor by a kill.
_STOP_STEPS = ((signal.SIGINT, 30.0), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 5.0))


@dataclass(frozen=True, slots=True)
class PidFile:
    pid: int
    socket_dir: Path
    is_ready: bool


def parse_pid_file(text: str) -> PidFile | None:
    """None while the server has not written enough of it yet."""
    lines = text.splitlines()
    if len(lines) < 5 or not lines[0].strip().isdigit():
        return None
    status = lines[7].strip() if len(lines) > 7 else ""
    return PidFile(pid=int(lines[0]), socket_dir=Path(lines[4]), is_ready=status == "ready")


def read_pid_file(cluster: Path) -> PidFile | None:
    try:
        return parse_pid_file((cluster / "postmaster.pid").read_text())
    except FileNotFoundError:
        return None


class Postmaster:
    """The server process of one data directory: our own child, or one left behind by an earlier process."""

    def __init__(self, cluster: Path, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._child: subprocess.Popen[bytes] | None = None

    def own(self, child: subprocess.Popen[bytes]) -> None:
        if self._child is not None:
            self._child.poll()  # reaps the one before
        self._child = child

    def running(self) -> PidFile | None:
        """What the pid file says, if the process that it names is in truth this directory's server.

        Process ids are used again, at once so after a reboot or in a new container, so the number alone
        says nothing.
        """
        pid_file = read_pid_file(self._cluster)
        return pid_file if pid_file is not None and self._is_ours(pid_file.pid) else None

    def has_exited(self) -> bool:
        return self._child is None or self._child.poll() is not None

    def clear_remains(self, socket_dir: Path) -> None:
        """Keeps what a killed server left from blocking the next start. Does nothing beside a living one.

        Its backends go on with their statements, for minutes if need be, and hold the shared memory that
        long: they are killed, as the next start recovers anyway. Then there are lock files, which may name
        a process that is somebody else's by now; the server refuses to start while that lives. In its pid
        file it makes one exception, for its own parent: naming ourselves keeps the other lines, by which it
        still checks the shared memory. The socket's lock file protects nothing that our own lock does not.
        """
        if self.running() is not None:
            return
        self._kill_orphans()
        for lock_file in socket_dir.glob("*.lock"):
            lock_file.unlink()
        path = self._cluster / "postmaster.pid"
        if path.exists():
            _, _, rest = path.read_text().partition("\n")
            path.write_text(f"{os.getpid()}\n{rest}")

    def _kill_orphans(self) -> None:
        deadline = self._clock.monotonic() + 5
        while (orphans := orphans_of(self._cluster)) and self._clock.monotonic() < deadline:
            for pid in orphans:
                log.warning("killing process %d, left behind by a PostgreSQL that was killed", pid)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(_POLL_SECONDS)

    def stop(self) -> None:
        for number, patience_seconds in _STOP_STEPS:
            pid_file = self.running()
            if pid_file is None:
                break
            log.info("stopping PostgreSQL (process %d) with %s", pid_file.pid, number.name)
            try:
                os.kill(pid_file.pid, number)
            except ProcessLookupError:
                break
            if self._wait_until_gone(pid_file.pid, patience_seconds):
                break
        if self._child is not None:
            self._child.wait(timeout=5)
            self._child = None

    def _wait_until_gone(self, pid: int, patience_seconds: float) -> bool:
        deadline = self._clock.monotonic() + patience_seconds
        while self._clock.monotonic() < deadline:
            if not self._is_ours(pid):
                return True
            time.sleep(_POLL_SECONDS)
        return False

    def _is_ours(self, pid: int) -> bool:
        if self._child is not None and self._child.pid == pid and self._child.poll() is not None:
            return False
        return is_postmaster_of(pid, self._cluster)


def cluster_name(cluster: Path) -> str:
    """A setting that the server's children show in their titles, by which `orphans_of` knows them."""
    return f"crossdock-{hashlib.sha256(bytes(cluster)).hexdigest()[:16]}"


def is_postmaster_of(pid: int, cluster: Path) -> bool:
    return _command_lines(pid).get(pid, "").endswith(f"postgres -D {cluster}")


def orphans_of(cluster: Path) -> list[int]:
    title = f"postgres: {cluster_name(cluster)}:"
    return [pid for pid, line in _command_lines().items() if line.startswith(title)]


def _command_lines(*pids: int) -> dict[int, str]:
    """Of these processes, or of all. Command lines are what every account may read of the others' processes;
    their working directories are not, for root in a container without CAP_SYS_PTRACE. Zombies have none.
    """
    processes = Path("/proc")
    if (processes / "self" / "cmdline").exists():
        found = {}
        for pid in pids or (int(entry.name) for entry in processes.iterdir() if entry.name.isdigit()):
            with contextlib.suppress(OSError):
                line = (processes / str(pid) / "cmdline").read_bytes()
                found[pid] = os.fsdecode(line.replace(b"\0", b" ")).strip()
        return found
    which = ["-p", ",".join(map(str, pids))] if pids else ["-ax"]
    listed = subprocess.run(  # noqa: S603
        ["/bin/ps", *which, "-o", "pid=,command="], capture_output=True, text=True, check=False
    )
    rows = (line.strip().partition(" ") for line in listed.stdout.splitlines())
    return {int(pid): command.strip() for pid, _, command in rows}
