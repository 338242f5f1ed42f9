"""DynamoDB Local, the real Java one: fetched once with Maven, started per test session.

    engine = DynamoDBLocal()
    engine.start()          # EngineMissing if this machine has no java, or nothing to fetch the jars with
    engine.endpoint         # http://127.0.0.1:<port>
    engine.stop()

The jars are kept in `.tools/dynamodb-local/<version of the pom>/` of the checkout, and are put there whole or
not at all: two sessions may start at once. `CROSSDOCK_DYNAMODB_LOCAL_JARS` names a directory to use instead.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType

from tests.support.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
POM = ROOT / "tools" / "dynamodb-local" / "pom.xml"
JARS_VARIABLE = "CROSSDOCK_DYNAMODB_LOCAL_JARS"
MAIN_CLASS = "com.amazonaws.services.dynamodbv2.local.main.ServerRunner"


class EngineMissing(Exception):
    """This machine can't run the engine; the message says what would mend it."""


def jars_directory() -> Path:
    """The directory of the jars, fetched if it is not there yet. Raises EngineMissing."""
    given = os.environ.get(JARS_VARIABLE)
    if given is not None:
        return Path(given)
    target = ROOT / ".tools" / "dynamodb-local" / hashlib.sha256(POM.read_bytes()).hexdigest()[:12]
    if not target.is_dir():
        _fetch(target)
    return target


def _fetch(target: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise EngineMissing("DynamoDB Local is fetched with Maven, and there is no mvn: install maven.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as workplace:
        jars = Path(workplace) / "jars"
        command = [
            maven,
            "-q",
            "-B",
            "-f",
            str(POM),
            "dependency:copy-dependencies",
            f"-DoutputDirectory={jars}",
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode != 0:
            raise EngineMissing(
                f"Maven could not fetch DynamoDB Local:\n{done.stdout[-2000:]}{done.stderr[-500:]}"
            )
        try:
            jars.rename(target)
        except OSError:
            # Another session put its own there meanwhile: theirs is as good.
            if not target.is_dir():
                raise


class DynamoDBLocal:
    """One server on a free loopback port, in memory unless `data_directory` is given."""

    def __init__(self, data_directory: Path | None = None) -> None:
        self._data_directory = data_directory
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self, timeout_seconds: float = 60) -> None:
        java = shutil.which("java")
        if java is None:
            raise EngineMissing("DynamoDB Local needs Java 17: install a JRE.")
        jars = jars_directory()
        # The port was free a moment ago; if somebody was faster, another one will do.
        for _ in range(3):
            self._port = free_port()
            self._process = self._launch(java, jars)
            if self._is_ready(time.monotonic() + timeout_seconds):
                return
            self.stop()
        raise RuntimeError("DynamoDB Local did not start.")

    def _launch(self, java: str, jars: Path) -> subprocess.Popen[bytes]:
        storage = ["-inMemory"] if self._data_directory is None else ["-dbPath", str(self._data_directory)]
        command = [java, "-Xmx512m", f"-Djava.library.path={jars}", "-cp", f"{jars}/*", MAIN_CLASS]
        # It would report its use to its maker, and keep a file for that where it is started.
        return subprocess.Popen(
            [*command, *storage, "-disableTelemetry", "-port", str(self._port)],
            cwd=self._data_directory or tempfile.gettempdir(),
            env={**os.environ, "DDB_LOCAL_TELEMETRY": "0"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def _is_ready(self, deadline: float) -> bool:
        while time.monotonic() < deadline:
            if self._process is None or self._process.poll() is not None:
                return False
            try:
                urllib.request.urlopen(self.endpoint, timeout=2).close()
            except urllib.error.HTTPError as answer:
                # An unsigned request is refused: it is up.
                answer.close()
                return True
            except OSError:
                time.sleep(0.05)
        return False

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def __enter__(self) -> DynamoDBLocal:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
