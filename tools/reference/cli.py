"""The `crossdock` command and its sub-commands, from the declarations that parse them."""

from __future__ import annotations

from collections.abc import Iterator

import click

from crossdock.app import cli as root
from tools.reference.markdown import code, page, table


def cli_page() -> str:
    sections = [_section(path, command) for path, command in commands("crossdock", root)]
    return page("Command line", *sections)


def commands(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    if not command.hidden:
        yield path, command
        if isinstance(command, click.Group):
            for name in sorted(command.commands):
                yield from commands(f"{path} {name}", command.commands[name])


def _section(path: str, command: click.Command) -> str:
    parts = [f"## {path}", f"    {_usage(path, command)}", _help(command)]
    rows = [
        _row(parameter)
        for parameter in command.params
        if isinstance(parameter, click.Option) and not parameter.hidden
    ]
    if rows:
        parts.append(table(("option", "default", "what it does"), rows))
    return "\n\n".join(part for part in parts if part)


def _usage(path: str, command: click.Command) -> str:
    context = click.Context(command, info_name=path)
    return " ".join([path, *command.collect_usage_pieces(context)])


def _help(command: click.Command) -> str:
    # click marks paragraphs that keep their line breaks with a \b of its own.
    return "\n".join(line.strip() for line in (command.help or "").strip().replace("\b", "").splitlines())


def _row(option: click.Option) -> tuple[str, str, str]:
    names = ", ".join(map(code, (*option.opts, *option.secondary_opts)))
    takes = "" if option.is_flag else f" {option.make_metavar(click.Context(click.Command('')))}"
    default = option.default if isinstance(option.default, str | int | float) and not option.is_flag else None
    return names + takes, "" if default is None else code(str(default)), option.help or ""
