"""What `crossdock doctor` looks at. Nothing here changes anything, and whatever is broken is a finding."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from crossdock.cli.configuration import Configuration
from crossdock.cli.database import connections_problem, database_of_command
from crossdock.cli.findings import (
    Finding,
    State,
    findings,
    in_megabytes,
    judge_disk,
    judge_modes,
    judge_pending,
    judge_unknown,
)
from crossdock.cli.runtime import Runtime
from crossdock.cli.this_machine import local_url
from crossdock.engines.sql.target import PostgresTarget, connect, problems_of
from crossdock.kit.clock import SystemClock
from crossdock.kit.configuration import unknown, variables
from crossdock.kit.errors import Conflict, CrossdockError
from crossdock.kit.lazy_module import lazy_module
from crossdock.processes.listening import bind
from crossdock.settings import Settings
from crossdock.terminal.client import ApiClient
from crossdock.terminal.failures import CommandFailed

if TYPE_CHECKING:
    from crossdock.engines.redis import inspection as redis_inspection
else:
    redis_inspection = lazy_module("crossdock.engines.redis.inspection")

_COMMANDS_VARIABLES = frozenset({"CROSSDOCK_URL"})


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    return judge_unknown(unknown(environ, variables(Settings) | _COMMANDS_VARIABLES))


def examine_data_directory(settings: Settings) -> list[Finding]:
    directory = settings.data_dir.resolve()
    existing = next(path for path in (directory, *directory.parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        problem = (
            f"{existing} can't be written by this account: change its owner, or name another --data-dir."
        )
        return [Finding("data directory", State.PROBLEM, problem)]
    free_bytes = shutil.disk_usage(existing).free
    if problems := judge_disk(existing, free_bytes):
        return findings("data directory", problems, "")
    if existing != directory:
        return [Finding("data directory", State.NOTE, f"{directory} is not made yet; crossdock up makes it")]
    return [Finding("data directory", State.OK, f"{directory}, {in_megabytes(free_bytes)} free")]


def examine_secrets(settings: Settings, runtime: Runtime) -> list[Finding]:
    directory = settings.data_dir.resolve() / "secrets"
    if not directory.is_dir():
        return [Finding("secrets", State.NOTE, "none are kept yet; crossdock up makes what is not given")]
    try:
        problems = judge_modes({path: path.stat().st_mode for path in (directory, *_files_in(directory))})
        if not problems:  # reading one would close what is open
            runtime.check_secrets(settings)
    except CrossdockError as error:
        problems = [error.message]
    except OSError as error:
        problems = [f"{error.filename} can't be read: {error.strerror}."]
    return findings("secrets", problems, f"{directory}, for this account only")


def _files_in(directory: Path) -> list[Path]:
    return sorted(path for path in directory.iterdir() if path.is_file())


# --- engines ---------------------------------------------------------------------------------------


def examine_engines(configuration: Configuration, runtime: Runtime) -> list[Finding]:
    settings = configuration.settings
    if settings.database_url is None and not (settings.data_dir / "postgres").is_dir():
        note = Finding("PostgreSQL", State.NOTE, "the embedded one is not made yet; crossdock up makes it")
        return [note, *asyncio.run(_examine_items(configuration, runtime, None))]
    try:
        with database_of_command(settings) as target:
            return asyncio.run(_examine_database(configuration, runtime, target))
    except CrossdockError as error:
        return [Finding("PostgreSQL", State.PROBLEM, error.message)]


async def _examine_database(
    configuration: Configuration, runtime: Runtime, target: PostgresTarget
) -> list[Finding]:
    problems = await problems_of(target, SystemClock())
    found = findings("PostgreSQL", problems, f"{target.label}: answers, its version and clock are good")
    if problems:
        return [*found, *await _examine_items(configuration, runtime, None)]
    settings = configuration.settings
    connection = await connect(target)
    try:
        try:
            pending = judge_pending(await runtime.pending(connection))
        except Conflict as conflict:
            pending = [conflict.message]
        allowed = int(await connection.fetchval("SHOW max_connections"))
    finally:
        await connection.close()
    too_many = connections_problem(settings.workers, runtime.connections_per_process(settings), allowed)
    return [
        *found,
        *findings("migrations", pending, "all are applied"),
        *findings("connections", [too_many] if too_many else [], f"{allowed} are enough"),
        *await _examine_items(configuration, runtime, target),
    ]


async def _examine_items(
    configuration: Configuration, runtime: Runtime, target: PostgresTarget | None
) -> list[Finding]:
    settings = configuration.settings
    if settings.items == "postgres" and target is None:
        return []
    try:
        problems = await runtime.items_problems(settings, target, configuration.environ)
    except CrossdockError as error:
        problems = [error.message]
    return findings("items tables", problems, f"as declared, in {settings.items}")


def examine_redis(settings: Settings) -> list[Finding]:
    if settings.redis_url is None:
        return []
    problem = asyncio.run(redis_inspection.problem_of(settings.redis_url))
    return findings("Redis", [problem] if problem else [], "answers")


# --- the server ------------------------------------------------------------------------------------


def examine_server(settings: Settings) -> list[Finding]:
    """The one that answers where ours would, if any does; else whether the port can be had."""
    url = local_url(settings.host, settings.port)
    try:
        answer = ApiClient(url, None, timeout_seconds=5).get("/readyz")
        ours = isinstance(answer, dict) and answer.get("status") == "ready"
        return findings("server", [] if ours else [_stranger(url)], f"{url} is ready")
    except CommandFailed as failure:
        if failure.code == "not_ready":
            return [Finding("server", State.PROBLEM, f"{url}: {failure.message}")]
        if failure.status is not None:
            return [Finding("server", State.PROBLEM, _stranger(url))]
    try:
        bind(settings.host, settings.port, SystemClock(), retry_seconds=0).close()
    except Conflict as conflict:
        return [Finding("server", State.PROBLEM, conflict.message)]
    return [Finding("server", State.NOTE, f"none runs; port {settings.port} is free")]


def _stranger(url: str) -> str:
    return f"{url} is another program's. Stop it, or choose another port with --port."
