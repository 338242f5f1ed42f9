"""`crossdock migrate`: brings every store up to date, of every slice, whichever are on."""

from __future__ import annotations

import asyncio

import click

from crossdock.cli.configuration import Configuration, with_settings
from crossdock.cli.database import database_of_command
from crossdock.cli.runtime import Runtime


def migrate_command(runtime: Runtime) -> click.Command:
    @click.command("migrate")
    @with_settings("data_dir")
    def migrate(configuration: Configuration) -> None:
        """Bring every store up to what this version needs.

        `crossdock up` does it, too. Run it by itself before the first node of a new version starts. It goes
        to the running database; an embedded one that doesn't run is started for as long as it takes.
        """
        with database_of_command(configuration.settings) as target:
            applied = asyncio.run(runtime.migrate(configuration.settings, target, configuration.environ))
        for name in applied:
            click.echo(f"applied {name}")
        click.echo("Every store is up to date.")

    return migrate
