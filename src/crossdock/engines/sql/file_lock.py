"""Locks between processes, as `flock` on a file: the kernel lets go of them when their holder dies."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class FileLock:
    """Held by at most one exclusive holder, or by any number of shared ones."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def try_exclusive(self) -> bool:
        """Also writes our process id into the file, so that the next one can say who is in its way."""
        descriptor = self._open()
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        return True

    def wait_shared(self) -> None:
        fcntl.flock(self._open(), fcntl.LOCK_SH)

    def wait_exclusive(self) -> None:
        """Turns a shared lock into an exclusive one, too."""
        fcntl.flock(self._open(), fcntl.LOCK_EX)

    def holder(self) -> str:
        try:
            return self._path.read_text().strip() or "unknown"
        except OSError:
            return "unknown"

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> int:
        if self._descriptor is None:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._descriptor
