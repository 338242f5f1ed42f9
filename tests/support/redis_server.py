"""A real redis-server of one's own: loopback, a free port, nothing kept on disk."""

from __future__ import annotations

import shutil
import subprocess
from types import TracebackType

from tests.support.ports import free_port, wait_until_listening

MEND = "install Redis (Debian and Ubuntu: apt install redis-server)"


def find_redis_server() -> str | None:
    return shutil.which("redis-server")


class RedisServer:
    """`with RedisServer() as server:` and then `server.url`. The same port across restarts."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        program = find_redis_server()
        if program is None:
            raise FileNotFoundError(MEND)
        process = subprocess.Popen(
            [program, "--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--appendonly", "no"],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._process = process
        wait_until_listening(self.port, still_running=lambda: process.poll() is None)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> RedisServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
