"""The `crossdock` command: a group of the product's commands and the slices' own."""

from __future__ import annotations

import os
from typing import Any

import click

from crossdock.cli.doctor import doctor_command
from crossdock.cli.migrate import migrate_command
from crossdock.cli.runtime import Runtime
from crossdock.cli.settings_command import settings_command
from crossdock.cli.this_machine import ThisMachine
from crossdock.cli.tour import tour_command
from crossdock.cli.up import up_command
from crossdock.kit.errors import CrossdockError
from crossdock.terminal.failures import CommandFailed, describe, exit_code_of
from crossdock.terminal.options import Surroundings


class RootGroup(click.Group):
    """What commands raise becomes a message and an exit code. Who runs them may see internal detail."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except CrossdockError as error:
            detail = f" ({error.internal})" if error.internal else ""
            raise CommandFailed(
                describe(error.message + detail), exit_code_of(error), code=error.code
            ) from error
        except OSError as error:
            if error.filename is None:
                raise
            raise CommandFailed(f"{error.filename}: {error.strerror}.") from error


def build(runtime: Runtime) -> click.Group:
    """`runtime`: what the composition root lends to commands."""

    @click.group("crossdock", cls=RootGroup, context_settings={"help_option_names": ["-h", "--help"]})
    @click.version_option(runtime.version, message="crossdock %(version)s")
    @click.pass_context
    def crossdock(context: click.Context, /) -> None:
        """One self-hosted server for webhooks, an API gateway, device telemetry, an inbox and data sync."""
        environ = dict(os.environ)
        context.obj = Surroundings(environ, ThisMachine(environ, runtime))

    @crossdock.command("version")
    def version() -> None:
        """Print the version."""
        click.echo(f"crossdock {runtime.version}")

    for command in (
        up_command(runtime),
        migrate_command(runtime),
        doctor_command(runtime),
        tour_command(runtime),
        settings_command,
        *runtime.commands,
    ):
        crossdock.add_command(command)
    return crossdock
