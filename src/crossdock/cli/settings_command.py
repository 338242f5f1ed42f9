"""`crossdock settings`: what the settings are here, and where each comes from."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import click

from crossdock.cli.configuration import read_configuration
from crossdock.kit.configuration import SettingDescription, describe
from crossdock.kit.logging import MASK
from crossdock.settings import Settings
from crossdock.terminal.options import surroundings_of
from crossdock.terminal.output import Output


@click.command("settings")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def settings_command(context: click.Context, /, as_json: bool) -> None:
    """Print every setting with its value here and where that comes from. Secrets are masked."""
    environ = surroundings_of(context).environ
    read_configuration(environ, {})
    output = Output.of_process(sys.stdout, sys.stderr, environ, as_json=as_json)
    output.rows([row(each, environ) for each in describe(Settings)], ["VARIABLE", "VALUE", "COMES FROM"])


def row(setting: SettingDescription, environ: Mapping[str, str]) -> tuple[str, str | None, str]:
    """An empty variable counts as set: where it means "unset", the reference says so."""
    if setting.variable in environ:
        value = environ[setting.variable]
        return setting.variable, MASK if setting.secret and value else value, "environment"
    return setting.variable, setting.default or None, "default"
