"""A real Mosquitto broker of one's own: loopback, a free port, its store in a directory of the test's.

It keeps its store across `stop` and `start`, so sessions and undelivered QoS 1 messages outlive a restart,
as they do on a broker that somebody runs.
"""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from tests.support.ports import free_port, wait_until_listening

MEND = "install Mosquitto (Debian and Ubuntu: apt install mosquitto)"


def find_mosquitto() -> str | None:
    """The broker's path. Debian puts it in /usr/sbin, which an ordinary user's PATH lacks."""
    return shutil.which(
        "mosquitto", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
    )


class Mosquitto:
    """`with Mosquitto(directory) as broker:` and then `broker.url`. The same port across restarts."""

    def __init__(self, directory: Path, *, settings: Sequence[str] = ("allow_anonymous true",)) -> None:
        self._directory = directory
        self._settings = tuple(settings)
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()

    @property
    def url(self) -> str:
        return f"mqtt://127.0.0.1:{self.port}"

    def start(self) -> None:
        program = find_mosquitto()
        if program is None:
            raise FileNotFoundError(MEND)
        self._directory.mkdir(parents=True, exist_ok=True)
        configuration = self._directory / "mosquitto.conf"
        configuration.write_text("\n".join(self._configuration()) + "\n")
        with (self._directory / "mosquitto.log").open("ab") as log:
            process = subprocess.Popen([program, "-c", str(configuration)], stdout=log, stderr=log)
        self._process = process
        try:
            wait_until_listening(self.port, lambda: process.poll() is None)
        except Exception as error:
            self.stop()
            error.add_note((self._directory / "mosquitto.log").read_text(errors="replace"))
            raise

    def _configuration(self) -> list[str]:
        return [
            f"listener {self.port} 127.0.0.1",
            # Started as root it would become a user who can't write here.
            f"user {getpass.getuser()}",
            "persistence true",
            f"persistence_location {self._directory}/",
            *self._settings,
        ]

    def stop(self) -> None:
        """Orderly: the store is written first."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(timeout=10)
            self._process = None

    def kill(self) -> None:
        """As a power cut would: what it had not written is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> Mosquitto:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
