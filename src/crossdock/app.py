"""The composition root of the `crossdock` command: it sees every slice's commands, tours and stores.

What serves is composed in `serving`, which only the processes that serve import: a command that need not
wait for a web framework, a column store and a TLS stack doesn't.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Literal

import click

from crossdock import __version__, stores
from crossdock.cli.configuration import read_configuration
from crossdock.cli.database import database_of_command
from crossdock.cli.main import build
from crossdock.cli.runtime import Environ, OperatorKey
from crossdock.devices.cli import devices as devices_command
from crossdock.devices.mqtt_cli import mqtt_command
from crossdock.devices.tour import TOUR as DEVICES_TOUR
from crossdock.engines.sql.target import Connection, PostgresTarget
from crossdock.hooks.cli import hooks as hooks_command
from crossdock.hooks.tour import TOUR as HOOKS_TOUR
from crossdock.kit.lazy_module import lazy_module
from crossdock.kit.logging import configure
from crossdock.settings import Settings
from crossdock.terminal.tour import Tour

if TYPE_CHECKING:
    from crossdock import serving
    from crossdock.devices.service.ingestion import Ingestion
else:
    serving = lazy_module("crossdock.serving")


@asynccontextmanager
async def open_ingestion(environ: Mapping[str, str]) -> AsyncIterator[Ingestion]:
    """The devices' ingestion in a process of its own: beside a running server, or with the stores alone."""
    settings = read_configuration(environ, {}).settings
    with database_of_command(settings) as target:
        async with serving.open_product(settings, target, environ) as (product, _):
            yield product.devices.ingestion


devices_command.add_command(mqtt_command(open_ingestion))


class Composition:
    """Keeps the promises of `cli.runtime.Runtime`."""

    version = __version__
    commands: Sequence[click.Command] = (hooks_command, devices_command)
    tours: Sequence[Tour] = (HOOKS_TOUR, DEVICES_TOUR)

    def child_command(self, part: Literal["lane", "worker"]) -> tuple[str, ...]:
        return sys.executable, "-m", "crossdock.serving", part

    def connections_per_process(self, settings: Settings) -> int:
        return stores.connections_per_process(settings)

    def check_secrets(self, settings: Settings) -> None:
        stores.check_secrets(settings)

    def operator_key(self, settings: Settings) -> str | None:
        return settings.operator_key or stores.secret_files(settings).get("operator_key")

    def make_secrets(self, settings: Settings) -> OperatorKey:
        secrets = stores.load_secrets(settings, os.urandom)
        path = None if settings.operator_key else stores.secret_files(settings).path("operator_key")
        return OperatorKey(secrets.operator_key, path, secrets.operator_key_is_new)

    async def put_operator_key(self, settings: Settings, target: PostgresTarget) -> None:
        await stores.put_operator_key(stores.load_secrets(settings, os.urandom), target)

    async def migrate(self, settings: Settings, target: PostgresTarget, environ: Environ) -> Sequence[str]:
        return await stores.migrate(settings, target, environ)

    async def pending(self, connection: Connection) -> Sequence[str]:
        return await stores.pending(connection)

    async def items_problems(
        self, settings: Settings, target: PostgresTarget | None, environ: Environ
    ) -> Sequence[str]:
        return await stores.items_problems(settings, target, environ)


cli = build(Composition())


def main() -> None:
    configure("crossdock", level="WARNING", human=True)
    cli(prog_name="crossdock")


if __name__ == "__main__":
    main()
