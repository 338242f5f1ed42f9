"""`crossdock doctor`: what is wrong here, and how to mend it. It works when things are broken."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping

import click

from crossdock.cli import examinations
from crossdock.cli.configuration import read_configuration, with_flags, with_flags_in
from crossdock.cli.findings import Finding, State, findings
from crossdock.cli.runtime import Environ, Runtime
from crossdock.terminal.failures import CommandFailed
from crossdock.terminal.output import Output

HEADERS = ("CHECK", "STATE", "DETAIL")
_COLOURS = {State.PROBLEM: "red", State.NOTE: "dim"}


def doctor_command(runtime: Runtime) -> click.Command:
    @click.command("doctor")
    @with_flags("data_dir", "host", "port", "workers")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    def doctor(environ: Environ, flags: Mapping[str, str], as_json: bool) -> None:
        """Check settings, data directory, engines and the running server; say how to mend what is wrong.

        Nothing has to run, and nothing is changed. The exit code is 1 if anything is wrong.
        """
        found = list(examine(environ, flags, runtime))
        output = Output.of_process(sys.stdout, sys.stderr, environ, as_json=as_json)
        rows = [(each.what, each.state, each.detail) for each in found]
        output.rows(rows, HEADERS, colour_of=lambda row: _COLOURS.get(State(str(row[1]))))
        problems = sum(each.state is State.PROBLEM for each in found)
        if problems:
            raise CommandFailed(f"{problems} {'problem' if problems == 1 else 'problems'} found.")

    return doctor


def examine(environ: Environ, flags: Mapping[str, str], runtime: Runtime) -> Iterator[Finding]:
    unknown = examinations.unknown_variables(with_flags_in(environ, flags))
    try:
        configuration = read_configuration(environ, flags)
    except CommandFailed as failure:
        yield from findings("settings", [*unknown, *failure.message.splitlines()], "")
        return
    yield from findings("settings", unknown, "all are known, and can be used")
    settings = configuration.settings
    checks: tuple[tuple[str, Callable[[], list[Finding]]], ...] = (
        ("data directory", lambda: examinations.examine_data_directory(settings)),
        ("secrets", lambda: examinations.examine_secrets(settings, runtime)),
        ("engines", lambda: examinations.examine_engines(configuration, runtime)),
        ("Redis", lambda: examinations.examine_redis(settings)),
        ("server", lambda: examinations.examine_server(settings)),
    )
    for what, check in checks:
        yield from _surviving(what, check)


def _surviving(what: str, check: Callable[[], list[Finding]]) -> list[Finding]:
    """What breaks a check is a finding of its own; the others go on."""
    try:
        return check()
    except Exception as error:
        return [Finding(what, State.PROBLEM, f"The check itself failed: {error!r}")]
