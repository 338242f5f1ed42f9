"""The operating-system account that runs the embedded PostgreSQL.

PostgreSQL refuses to run as root. As root we therefore run it as a system account of its own, which then
must be able to reach its files: directories on the way that it can't pass through get the search bit for
others (`o+x`: pass through, not list), and nothing else is opened.
"""

from __future__ import annotations

import logging
import os
import pwd
import stat
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from crossdock.kit.errors import Unavailable

log = logging.getLogger("crossdock.postgres")

SYSTEM_ACCOUNT = "crossdock"

# Nothing of our own environment reaches the server: it holds secrets, and PG* variables would steer it.
_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "TZ": "UTC"}


@dataclass(frozen=True, slots=True)
class ServerAccount:
    name: str
    uid: int
    gid: int
    is_current: bool

    @property
    def parent_mode(self) -> int:
        """For directories of ours that hold some of the account's."""
        return 0o700 if self.is_current else 0o701

    def start(
        self,
        command: Sequence[str | Path],
        *,
        stdin: int = subprocess.DEVNULL,
        output: int | IO[bytes] = subprocess.PIPE,
        new_session: bool = False,
    ) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603
            command,
            stdin=stdin,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd="/",  # the server looks at its working directory, and ours may be closed to it
            env=_ENVIRONMENT,
            umask=0o077,
            start_new_session=new_session,
            user=None if self.is_current else self.uid,
            group=None if self.is_current else self.gid,
            extra_groups=None if self.is_current else [],
        )

    def own(self, path: Path) -> None:
        if not self.is_current:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def own_tree(self, root: Path) -> None:
        """Takes over a tree whose root belongs to another account (data moved here from elsewhere)."""
        if self.is_current or root.stat().st_uid == self.uid:
            return
        for directory, directories, files in os.walk(root):
            for name in (*directories, *files):
                self.own(Path(directory, name))
        self.own(root)


def server_account() -> ServerAccount:
    """Ourselves; as root, the system account, made if it is missing."""
    if os.geteuid() != 0:
        return _account(current_account(), is_current=True)
    try:
        entry = pwd.getpwnam(SYSTEM_ACCOUNT)
    except KeyError:
        entry = _create_system_account()
    return _account(entry, is_current=False)


def current_account() -> pwd.struct_passwd:
    try:
        return pwd.getpwuid(os.geteuid())
    except KeyError:
        # As in a container started with --user and a number: PostgreSQL knows accounts by name.
        raise Unavailable(
            "account_without_name",
            f"The account number {os.geteuid()} has no name on this machine, and PostgreSQL needs one. "
            "Add it to /etc/passwd, or run Crossdock under another account.",
        ) from None


def _account(entry: pwd.struct_passwd, *, is_current: bool) -> ServerAccount:
    return ServerAccount(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid, is_current=is_current)


def _create_system_account() -> pwd.struct_passwd:
    log.warning("creating the system account %s: PostgreSQL does not run as root", SYSTEM_ACCOUNT)
    command = ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", SYSTEM_ACCOUNT]
    try:
        done = subprocess.run(command, env=_ENVIRONMENT, capture_output=True, text=True, check=False)  # noqa: S603
        reason = done.stderr.strip()
    except OSError as error:
        reason = str(error)
    try:
        # Asked again whatever useradd said: another process may have made the account at the same moment.
        return pwd.getpwnam(SYSTEM_ACCOUNT)
    except KeyError:
        raise Unavailable(
            "postgres_account_missing",
            f"PostgreSQL does not run as root, and its system account could not be created ({reason}). "
            f"Create it (useradd --system {SYSTEM_ACCOUNT}), or run Crossdock as an ordinary user.",
        ) from None


def may_search(status: os.stat_result, account: ServerAccount) -> bool:
    if status.st_uid == account.uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == account.gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)


def open_way_to(path: Path, account: ServerAccount) -> None:
    """Lets the account pass through every directory down to and including `path`."""
    if account.is_current:
        return
    resolved = path.resolve()
    for directory in (*reversed(resolved.parents), resolved):
        status = directory.stat()
        if not may_search(status, account):
            _add_mode(directory, status, stat.S_IXOTH)
            log.warning(
                "gave other accounts the right to pass through %s (o+x): %s runs PostgreSQL below it",
                directory,
                account.name,
            )


def open_for_reading(roots: Sequence[Path], account: ServerAccount) -> None:
    """For programs installed under a tight umask: what their owner may read or run, others may too."""
    if account.is_current:
        return
    opened = 0
    for path in _with_descendants(roots):
        status = path.lstat()
        wanted = (status.st_mode & (stat.S_IRUSR | stat.S_IXUSR)) >> 6
        if not stat.S_ISLNK(status.st_mode) and status.st_mode & wanted != wanted:
            _add_mode(path, status, wanted)
            opened += 1
    if opened:
        log.warning("let other accounts read %d of PostgreSQL's program files in %s", opened, roots[0])


def _with_descendants(roots: Sequence[Path]) -> Iterator[Path]:
    for root in roots:
        yield root
        yield from root.rglob("*")


def _add_mode(path: Path, status: os.stat_result, bits: int) -> None:
    try:
        path.chmod(stat.S_IMODE(status.st_mode) | bits)
    except OSError as error:
        raise Unavailable(
            "postgres_files_unreachable",
            f"The account that runs PostgreSQL can't reach {path}, whose mode could not be changed: {error}. "
            "Keep the data directory and the installation where other accounts may pass through.",
        ) from error
