"""A real `crossdock up` for tests, started as a user starts it, and its commands.

    with Server() as server:            # its own data directory, any free port
        server.client().get("/v1/devices")
        server.kill(); server.start()   # kill -9 of the supervisor; again on the same data

`run_command` runs any command in a process of its own, `command` in this one (faster, same code).
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from click.testing import CliRunner, Result
from tests.support.waiting import wait_until

from crossdock.app import cli
from crossdock.terminal.client import ApiClient

READY = re.compile(r"^Crossdock is ready: (\S+)", re.MULTILINE)
START_TIMEOUT_SECONDS = 60
STOP_TIMEOUT_SECONDS = 60


class Server:
    """`environ` is put over an environment in which no CROSSDOCK_ variable is set."""

    def __init__(
        self,
        *arguments: str,
        environ: Mapping[str, str] = {},
        data_dir: Path | None = None,
    ) -> None:
        # Not pytest's own temporary directory: as root, PostgreSQL's account could not pass through it.
        self._directory = Path(tempfile.mkdtemp(prefix="crossdock-server-"))
        self.data_dir = data_dir or self._directory / "data"
        self._arguments = arguments
        self._environ = environ
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""

    # --- life ---------------------------------------------------------------------------------------

    def start(self) -> None:
        """Returns when it says that it is ready. Raises RuntimeError with what it said if it never does."""
        self.launch()
        try:
            wait_until(lambda: self._has_said(READY), patience_seconds=START_TIMEOUT_SECONDS)
        except TimeoutError:
            self.kill()
            raise RuntimeError(f"the server is not ready; it said:\n{self.said}") from None
        found = READY.search(self.stdout)
        if found is None:
            raise RuntimeError(f"the server ended; it said:\n{self.said}")
        self.url = found[1]

    def launch(self) -> None:
        """Without waiting."""
        command = [*COMMAND, "up", "--data-dir", str(self.data_dir), "--port", "0", *self._arguments]
        with self._file("stdout").open("wb") as stdout, self._file("stderr").open("wb") as stderr:
            self._process = subprocess.Popen(
                command,
                env=clean_environ(self._environ),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
            )

    def stop(self, number: int = signal.SIGTERM) -> int:
        """As a user stops it. Returns the exit status."""
        self.process.send_signal(number)
        return self.process.wait(STOP_TIMEOUT_SECONDS)

    def kill(self) -> None:
        """kill -9 of the supervisor; its children end by themselves, soon after."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            try:
                self.stop()
            except subprocess.TimeoutExpired:
                self.kill()
        shutil.rmtree(self._directory)

    def __enter__(self) -> Server:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- what can be seen of it ---------------------------------------------------------------------

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "it was not started"
        return self._process

    @property
    def stdout(self) -> str:
        """Since the last start."""
        return self._file("stdout").read_text()

    @property
    def stderr(self) -> str:
        return self._file("stderr").read_text()

    @property
    def said(self) -> str:
        return self.stdout + self.stderr

    @property
    def operator_key(self) -> str:
        return (self.data_dir / "secrets" / "operator_key").read_text().strip()

    @property
    def environ(self) -> dict[str, str]:
        """For commands: where it is, and where its key lies."""
        return {**self._environ, "CROSSDOCK_URL": self.url, "CROSSDOCK_DATA_DIR": str(self.data_dir)}

    def client(self, key: str | None = None) -> ApiClient:
        return ApiClient(self.url, key or self.operator_key)

    def children(self, name: str = "") -> list[int]:
        """Process ids of its lanes and its worker, by a part of their command line."""
        return [pid for pid in _children_of(self.process.pid) if name in _command_of(pid)]

    def command(self, *arguments: str, input: bytes | None = None) -> Result:
        return command(*arguments, environ=self.environ, input=input)

    def _file(self, name: str) -> Path:
        return self._directory / name

    def _has_said(self, what: re.Pattern[str]) -> bool:
        return self.process.poll() is not None or what.search(self.stdout) is not None


# --- commands --------------------------------------------------------------------------------------

COMMAND = (sys.executable, "-m", "crossdock.app")


def clean_environ(environ: Mapping[str, str]) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("CROSSDOCK_")}
    return {**inherited, **environ}


def run_command(*arguments: str, environ: Mapping[str, str] = {}) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        env=clean_environ(environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def command(*arguments: str, environ: Mapping[str, str] = {}, input: bytes | None = None) -> Result:
    """Anything but a clean end or an error for the user is raised, as its traceback would be shown."""
    unset: dict[str, str | None] = {name: None for name in os.environ if name.startswith("CROSSDOCK_")}
    result = CliRunner().invoke(cli, arguments, env={**unset, **environ}, input=input)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


# --- processes -------------------------------------------------------------------------------------


def _children_of(pid: int) -> Sequence[int]:
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False
    )
    return [int(each) for each in listed.stdout.split()]


def _command_of(pid: int) -> str:
    listed = subprocess.run(
        ["ps", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return listed.stdout.strip()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
