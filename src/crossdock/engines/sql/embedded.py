"""The embedded PostgreSQL: a real server in the data directory, owned by one process at a time.

Guarantees:

- Two owners never share a data directory: the owner holds a kernel lock, which ends with its process.
- A server left behind by an owner that was killed is adopted if it answers and was started with the same
  settings; otherwise it is stopped and started anew.
- A crash while the first start creates the files leaves nothing that the next start trips over.
- Only our own account and the server's can connect: a Unix socket in a private directory, `peer`
  authentication, no network address, no `trust`.
- `stop` returns when the server is gone. Whatever way it ends, committed rows are there on the next start.

Everything here blocks; event loops call it in a thread, one call at a time.
"""

from __future__ import annotations

import contextlib
import logging
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from crossdock.engines.sql.cluster import (
    create_cluster,
    make_data_dir,
    make_private_directory,
    remove_unfinished,
)
from crossdock.engines.sql.file_lock import FileLock
from crossdock.engines.sql.postmaster import Postmaster, cluster_name
from crossdock.engines.sql.server_account import (
    ServerAccount,
    current_account,
    open_for_reading,
    open_way_to,
    server_account,
)
from crossdock.engines.sql.server_files import (
    DATABASE,
    PORT,
    ROLE,
    Configuration,
    Programs,
    choose_socket_dir,
    configure,
    find_programs,
    socket_target,
)
from crossdock.engines.sql.target import PostgresTarget
from crossdock.kit.clock import Clock, SystemClock
from crossdock.kit.errors import Conflict, Unavailable

log = logging.getLogger("crossdock.postgres")

_POLL_SECONDS = 0.02
_PROBE_TIMEOUT_SECONDS = 5
# Replaying a full WAL (max_wal_size) on a slow disk takes minutes, and the server must be waited for.
_START_TIMEOUT_SECONDS = 600.0
_LOG_BYTES_MAX = 10 * 1024 * 1024


class EmbeddedPostgres:
    """`start` once, `stop` once; `ensure_running` from time to time in between."""

    def __init__(
        self, data_dir: Path, *, settings: Mapping[str, str] = {}, clock: Clock | None = None
    ) -> None:
        self._data_dir = data_dir.resolve()
        self._cluster = self._data_dir / "postgres"
        self._log_path = self._data_dir / "postgres.log"
        self._socket_dir = choose_socket_dir(self._data_dir, Path(tempfile.gettempdir()).resolve())
        self._settings = settings
        self._clock = clock or SystemClock()
        self._lock = FileLock(self._data_dir / "postgres.lock")
        self._postmaster = Postmaster(self._cluster, self._clock)

    def start(self) -> PostgresTarget:
        """Raises `Conflict` when another process owns the directory, `Unavailable` if none starts."""
        make_data_dir(self._data_dir)
        if not self._lock.try_exclusive():
            raise Conflict(
                "data_directory_in_use",
                f"The data directory {self._data_dir} is in use by process {self._lock.holder()}. "
                "Stop that process, or name another directory with --data-dir.",
            )
        try:
            return self._start_or_adopt()
        except BaseException:
            self._lock.release()
            raise

    def stop(self) -> None:
        self._postmaster.stop()
        if self._data_dir not in self._socket_dir.parents:
            with contextlib.suppress(OSError):
                self._socket_dir.rmdir()
        self._lock.release()

    def ensure_running(self) -> bool:
        """Starts the server again if it died. True if it had."""
        if self._postmaster.running() is not None:
            return False
        log.error("PostgreSQL is gone; starting it again")
        self._start_or_adopt()
        return True

    def _start_or_adopt(self) -> PostgresTarget:
        programs = find_programs()
        account = server_account()
        us = current_account().pw_name
        configuration = configure(
            self._socket_dir,
            {us, account.name},
            {"cluster_name": cluster_name(self._cluster), **self._settings},
        )
        target = socket_target(self._socket_dir)
        if self._postmaster.running() is not None:
            if answers(programs, self._socket_dir, configuration.fingerprint):
                log.warning("adopted a PostgreSQL that an earlier process left behind in %s", self._cluster)
                return target
            self._postmaster.stop()
        open_way_to(programs.directory, account)
        open_for_reading(programs.installed_trees, account)
        open_way_to(self._data_dir, account)
        make_private_directory(self._socket_dir, account)
        open_way_to(self._socket_dir, account)
        remove_unfinished(self._cluster)
        if not self._cluster.exists():
            create_cluster(self._cluster, programs, account)
        self._launch(programs, account, configuration)
        return target

    def _launch(self, programs: Programs, account: ServerAccount, configuration: Configuration) -> None:
        account.own_tree(self._cluster)
        for name, text in configuration.files().items():
            path = self._cluster / name
            path.write_text(text)
            path.chmod(0o600)
            account.own(path)
        self._postmaster.clear_remains(configuration.socket_dir)
        if self._log_path.exists() and self._log_path.stat().st_size > _LOG_BYTES_MAX:
            self._log_path.replace(self._log_path.with_suffix(".log.1"))
        self._log_path.touch(mode=0o600)
        with self._log_path.open("ab") as output:
            said_before = output.tell()
            # A session of its own, so that Ctrl-C in our terminal does not reach it: we stop it, and last.
            child = account.start([programs.postgres, "-D", self._cluster], output=output, new_session=True)
        self._postmaster.own(child)
        try:
            self._wait_until_ready(said_before)
        except BaseException:
            self._postmaster.stop()
            raise

    def _wait_until_ready(self, said_before: int) -> None:
        started = self._clock.monotonic()
        told_after_seconds = 5.0
        while True:
            running = self._postmaster.running()
            if running is not None and running.is_ready:
                return
            waited_seconds = self._clock.monotonic() - started
            if self._postmaster.has_exited() or waited_seconds > _START_TIMEOUT_SECONDS:
                raise Unavailable(
                    "postgres_did_not_start",
                    f"The embedded PostgreSQL did not start; it said: {self._said_since(said_before)}",
                )
            if waited_seconds > told_after_seconds:
                log.warning("PostgreSQL is still recovering after %d seconds", waited_seconds)
                told_after_seconds *= 2
            time.sleep(_POLL_SECONDS)

    def _said_since(self, position: int) -> str:
        with self._log_path.open("rb") as said:
            said.seek(position)
            return said.read(4000).decode(errors="replace").strip() or "nothing"


@contextlib.contextmanager
def attached(data_dir: Path, *, settings: Mapping[str, str] = {}) -> Iterator[PostgresTarget]:
    """The data directory's server, for as long as the block runs.

    The running one if some process owns it; otherwise one started (or adopted) for the block. When several
    blocks share a server, the one that started it waits for the others before stopping it.
    """
    data_dir = data_dir.resolve()
    make_data_dir(data_dir)
    users = FileLock(data_dir / "postgres.users")
    users.wait_shared()
    try:
        server = EmbeddedPostgres(data_dir, settings=settings)
        try:
            target = server.start()
        except Conflict:
            yield _running_target(data_dir)
            return
        try:
            yield target
        finally:
            users.wait_exclusive()
            server.stop()
    finally:
        users.release()


def _running_target(data_dir: Path) -> PostgresTarget:
    """Another process owns the server; it may be just starting it."""
    clock = SystemClock()
    postmaster = Postmaster(data_dir / "postgres", clock)
    deadline = clock.monotonic() + 60
    while clock.monotonic() < deadline:
        running = postmaster.running()
        if running is not None and running.is_ready:
            return socket_target(running.socket_dir)
        time.sleep(_POLL_SECONDS)
    raise Unavailable(
        "postgres_unavailable",
        f"Another process owns the PostgreSQL in {data_dir}, and it is not ready. Try again in a moment.",
    )


def answers(programs: Programs, socket_dir: Path, fingerprint: str) -> bool:
    """Whether a server there lets us in, and was started with the configuration of that fingerprint."""
    command: list[str | Path] = [
        programs.psql, "--no-psqlrc", "--tuples-only", "--no-align",
        "-h", socket_dir, "-p", str(PORT), "-U", ROLE, "-d", DATABASE,
        "-c", "SHOW crossdock.fingerprint",
    ]  # fmt: skip
    try:
        shown = subprocess.run(  # noqa: S603
            command,
            env={"LC_ALL": "C"},
            capture_output=True,
            text=True,
            timeout=_PROBE_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return shown.returncode == 0 and shown.stdout.strip() == fingerprint
