"""Secrets made once and kept in files: the operator key, the sealing key.

Guarantees: every process that asks for a name gets the same value, however many ask at once, and exactly
one of them is told that it made it. A crash leaves the whole secret or none. Only our own account can read
it (directory 0700, files 0600, put back at every reading if somebody opened them).
"""

from __future__ import annotations

import logging
import os
import re
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

from crossdock.kit.errors import Unavailable

log = logging.getLogger("crossdock.secrets")

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*")


class SecretFiles:
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def path(self, name: str) -> Path:
        if _NAME.fullmatch(name) is None:
            raise ValueError(f"{name!r} is not a plain file name")
        return self._directory / name

    def get(self, name: str) -> str | None:
        path = self.path(name)
        try:
            secret = path.read_text(encoding="utf-8").removesuffix("\n")
        except FileNotFoundError:
            return None
        if not secret:
            raise Unavailable(
                "secret_file_empty",
                f"{path} is empty. Put the secret back, or remove the file to have a new one made.",
            )
        _tighten(self._directory, 0o700)
        _tighten(path, 0o600)
        return secret

    def get_or_create(self, name: str, make: Callable[[], str]) -> tuple[str, bool]:
        """The secret, and whether this very call created it."""
        secret = self.get(name)
        if secret is not None:
            return secret, False
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        created = self._publish(self.path(name), make())
        secret = self.get(name)
        if secret is None:
            raise Unavailable("secret_file_gone", f"{self.path(name)} vanished while it was made. Try again.")
        return secret, created

    def _publish(self, path: Path, secret: str) -> bool:
        """Flushed under another name first; of many at once, `link` lets only the first put its own there."""
        if not secret or "\n" in secret:
            raise ValueError("a secret is one line, not an empty one")
        descriptor, unfinished = tempfile.mkstemp(prefix=f".{path.name}.", dir=self._directory)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(f"{secret}\n")
                file.flush()
                os.fsync(descriptor)
            Path(path).hardlink_to(unfinished)
        except FileExistsError:
            return False
        finally:
            Path(unfinished).unlink()
        _flush_directory(self._directory)
        return True


def _tighten(path: Path, mode: int) -> None:
    status = path.stat()
    if stat.S_IMODE(status.st_mode) & ~mode & 0o777:
        log.warning("%s was open to other accounts; closed it", path)
        path.chmod(mode)


def _flush_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
