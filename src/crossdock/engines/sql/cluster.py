"""Creates the embedded PostgreSQL's files, all or nothing."""

from __future__ import annotations

import logging
import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

from crossdock.engines.sql.server_account import ServerAccount, server_account
from crossdock.engines.sql.server_files import DATABASE, ROLE, Programs
from crossdock.kit.errors import Unavailable

log = logging.getLogger("crossdock.postgres")


def make_data_dir(path: Path) -> None:
    """Exists afterwards, and we may write in it."""
    try:
        path.mkdir(mode=server_account().parent_mode, parents=True, exist_ok=True)
        reason = "" if os.access(path, os.W_OK | os.X_OK) else "permission denied"
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
    if reason:
        raise Unavailable(
            "data_directory_unusable",
            f"The data directory {path} can't be used: {reason}. "
            "Give this account the right to write in it, or name another one with --data-dir.",
        )


def create_cluster(cluster: Path, programs: Programs, account: ServerAccount) -> None:
    """Under a temporary name first: a half-made data directory would block every later start.

    A new name each time, because the initdb of a killed process may go on writing to the old one.
    """
    log.info("creating the PostgreSQL data directory %s", cluster)
    unfinished = Path(tempfile.mkdtemp(prefix=_unfinished_prefix(cluster), dir=cluster.parent))
    account.own(unfinished)
    _run(account, [
        programs.initdb, "--pgdata", unfinished, "--username", ROLE, "--auth", "peer",
        "--encoding", "UTF8", "--locale", "C", "--locale-provider", "builtin", "--builtin-locale", "C.UTF-8",
        "--data-checksums", "--no-instructions",
    ])  # fmt: skip
    _run(
        account,
        [programs.postgres, "--single", "-D", unfinished, "postgres"],
        said=f"CREATE DATABASE {DATABASE};\n",
    )
    unfinished.rename(cluster)
    _flush_directory(cluster.parent)


def remove_unfinished(cluster: Path) -> None:
    """What killed first starts left behind. Some may withstand, while an orphan still writes: next time."""
    for unfinished in cluster.parent.glob(f"{_unfinished_prefix(cluster)}*"):
        shutil.rmtree(unfinished, ignore_errors=True)


def _unfinished_prefix(cluster: Path) -> str:
    return f"{cluster.name}.unfinished."


def make_private_directory(path: Path, account: ServerAccount) -> None:
    """Exists afterwards, belongs to the account, mode 0700. Refuses what somebody else put there."""
    path.parent.mkdir(mode=account.parent_mode, parents=True, exist_ok=True)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        status = path.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid not in (account.uid, os.geteuid()):
            raise Unavailable(
                "postgres_directory_taken",
                f"{path} belongs to another account, or is no directory: remove it.",
            ) from None
        path.chmod(0o700)
    account.own(path)


def _run(account: ServerAccount, command: list[str | Path], *, said: str = "") -> None:
    process = account.start(command, stdin=subprocess.PIPE)
    try:
        output, _ = process.communicate(said.encode())
    except BaseException:
        # Ctrl-C and SIGTERM: it would go on without us, and fill a directory that nobody will use.
        process.kill()
        process.wait()
        raise
    if process.returncode != 0:
        raise Unavailable(
            "postgres_not_created",
            f"PostgreSQL could not create its data directory; {Path(command[0]).name} said: "
            + output.decode(errors="replace").strip(),
        )


def _flush_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
