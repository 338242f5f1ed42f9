"""`crossdock up`: everything that serves, under one supervisor.

In this order, each taken back if a later one fails: the data directory's lock, the database, the port, the
schemas, the secrets; then the processes. So none is started before all is known to be in order, and the
database is stopped last.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import click

from crossdock.cli.configuration import Configuration, variable_of, with_settings
from crossdock.cli.database import OwnDatabase, connections_problem, database_of_server
from crossdock.cli.runtime import OperatorKey, Runtime
from crossdock.cli.this_machine import local_url
from crossdock.engines.sql.file_lock import FileLock
from crossdock.engines.sql.target import PostgresTarget, connect, problems_of
from crossdock.kit import configuration as kit_configuration
from crossdock.kit.clock import SystemClock
from crossdock.kit.errors import Conflict
from crossdock.kit.logging import configure, fields
from crossdock.processes.listening import bind
from crossdock.processes.supervised import ChildSpec
from crossdock.processes.supervisor import Supervisor
from crossdock.settings import Settings
from crossdock.terminal.failures import CommandFailed

log = logging.getLogger("crossdock.up")

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


def up_command(runtime: Runtime) -> click.Command:
    @click.command("up")
    @with_settings("data_dir", "host", "port", "workers", "slices")
    def up(configuration: Configuration) -> None:
        """Start everything, and serve until stopped.

        Each option is also a CROSSDOCK_ variable; the option wins. On the first start the operator key is
        made and shown, this once.
        """
        click.get_current_context().exit(serve(configuration, runtime))

    return up


def serve(configuration: Configuration, runtime: Runtime) -> int:
    """Returns the exit status when everything has stopped."""
    settings, clock = configuration.settings, SystemClock()
    configure("up")
    warn_of_unknown_variables(configuration.environ)
    runtime.check_secrets(settings)
    with ExitStack() as stack:
        stack.enter_context(ended_by_signals())
        stack.enter_context(only_server_of(settings.data_dir))
        database = stack.enter_context(database_of_server(settings))
        listener = stack.enter_context(closing(bind(settings.host, settings.port, clock)))
        asyncio.run(prepare(configuration, runtime, database.target))
        supervisor = make_supervisor(configuration, runtime, database, listener)
        try:
            return asyncio.run(supervisor.run())
        finally:
            for number in (*_SIGNALS, signal.SIGINT):  # the database is still to be stopped, in order
                signal.signal(number, signal.SIG_IGN)


async def prepare(configuration: Configuration, runtime: Runtime, target: PostgresTarget) -> None:
    settings = configuration.settings
    problems = await problems_of(target, SystemClock()) or await _connections_problems(
        settings, runtime, target
    )
    if problems:
        raise CommandFailed("\n".join(problems))
    applied = await runtime.migrate(settings, target, configuration.environ)
    if applied:
        log.info("the database is up to date", extra=fields(applied=list(applied)))
    key = runtime.make_secrets(settings)
    if key.is_new:
        click.echo(announcement(key))
    await runtime.put_operator_key(settings, target)


async def _connections_problems(settings: Settings, runtime: Runtime, target: PostgresTarget) -> list[str]:
    connection = await connect(target)
    try:
        allowed = int(await connection.fetchval("SHOW max_connections"))
    finally:
        await connection.close()
    problem = connections_problem(settings.workers, runtime.connections_per_process(settings), allowed)
    return [] if problem is None else [problem]


def make_supervisor(
    configuration: Configuration, runtime: Runtime, database: OwnDatabase, listener: socket.socket
) -> Supervisor:
    settings = configuration.settings
    port = listener.getsockname()[1]
    lanes = [
        ChildSpec(f"lane-{number}", runtime.child_command("lane"), serves=True)
        for number in range(1, settings.workers + 1)
    ]
    worker = ChildSpec("worker", runtime.child_command("worker"))

    def tell() -> None:
        url = local_url(settings.host, port)
        click.echo(f"Crossdock is ready: {url} (its API is described at {url}/docs). Ctrl-C stops it.")

    return Supervisor(
        [lanes, [worker]],
        listener=listener,
        environ={
            **configuration.environ,
            variable_of("data_dir"): str(settings.data_dir.resolve()),
            variable_of("database_url"): database.target.dsn,
            variable_of("port"): str(port),
        },
        metrics_dir=settings.data_dir.resolve() / "run" / "metrics",
        clock=SystemClock(),
        on_ready=tell,
        keep_alive=database.keep_alive,
    )


def announcement(key: OperatorKey) -> str:
    """Made to be seen between log lines: it is shown this once."""
    line = "=" * 72
    kept = (
        "" if key.path is None else f"It may do everything. It is kept in {key.path}\nand not shown again.\n"
    )
    return f"\n{line}\nThe operator key:\n\n    {key.value}\n\n{kept}{line}\n"


def warn_of_unknown_variables(environ: Mapping[str, str]) -> None:
    known = kit_configuration.variables(Settings)
    for name, alike in kit_configuration.unknown(environ, known).items():
        log.warning("%s is no setting%s", name, f"; is {alike} meant?" if alike else "")


@contextmanager
def only_server_of(data_dir: Path) -> Iterator[None]:
    """Two servers on one data directory would share secrets, metrics and, embedded, the database."""
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = FileLock(data_dir / "server.lock")
    if not lock.try_exclusive():
        raise Conflict(
            "data_directory_in_use",
            f"The data directory {data_dir} is in use by the server with process {lock.holder()}. "
            "Stop it, or name another directory with --data-dir.",
        )
    try:
        yield
    finally:
        lock.release()


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Until the supervisor listens to them, signals end us like an exception, so that all is taken back."""

    def end(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
