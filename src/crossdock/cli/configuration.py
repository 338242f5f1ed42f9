"""Settings on the command line: a flag is the variable of the same name, and wins over it.

A flag is put into the environment before the settings are read, so that both are checked in one place, and
so that child processes get it, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import click

from crossdock.kit.configuration import PREFIX, SettingsError, describe, load
from crossdock.settings import Settings
from crossdock.terminal.failures import CommandFailed, ExitCode
from crossdock.terminal.options import surroundings_of

_METAVARS = {"data_dir": "DIR", "host": "HOST", "port": "PORT", "workers": "N", "slices": "A,B"}


@dataclass(frozen=True, slots=True)
class Configuration:
    settings: Settings
    environ: Mapping[str, str]
    """With the flags in it."""


def with_settings(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Adds a flag for each of these settings; the command gets `configuration`, read and checked."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @with_flags(*names)
        @functools.wraps(function)
        def command(*, environ: Mapping[str, str], flags: Mapping[str, str], **arguments: Any) -> None:
            function(read_configuration(environ, flags), **arguments)

        return command

    return decorate


def with_flags(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As `with_settings`, for commands that want to look at settings that may be wrong."""
    helps = {each.variable: each.help for each in describe(Settings)}

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @click.pass_context
        @functools.wraps(function)
        def command(context: click.Context, /, **arguments: Any) -> None:
            given = {name: arguments.pop(name) for name in names}
            flags = {name: value for name, value in given.items() if value is not None}
            function(environ=surroundings_of(context).environ, flags=flags, **arguments)

        for name in reversed(names):
            flag = click.option(flag_of(name), name, metavar=_METAVARS[name], help=helps[variable_of(name)])
            command = flag(command)
        return command

    return decorate


def read_configuration(environ: Mapping[str, str], flags: Mapping[str, str]) -> Configuration:
    """Raises CommandFailed with every problem, each naming the flag or the variable that it is about."""
    together = with_flags_in(environ, flags)
    try:
        settings = load(Settings, together)
    except SettingsError as error:
        raise CommandFailed(in_words_of_flags(error.message, flags), ExitCode.REFUSED_INPUT) from error
    return Configuration(settings, together)


def with_flags_in(environ: Mapping[str, str], flags: Mapping[str, str]) -> dict[str, str]:
    return {**environ, **{variable_of(name): value for name, value in flags.items()}}


def in_words_of_flags(message: str, flags: Mapping[str, str]) -> str:
    """Whoever gave a flag is told about the flag."""
    for name in flags:
        message = message.replace(f"{variable_of(name)} ", f"{flag_of(name)} ")
    return message


def variable_of(name: str) -> str:
    return PREFIX + name.upper()


def flag_of(name: str) -> str:
    return "--" + name.replace("_", "-")
