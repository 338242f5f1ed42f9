"""`--url`, `--key` and `--json`: how every command that talks to a running server is told where and as whom.

    @group.command()
    @click.argument("hardware_id")
    @server_command
    def show(session: Session, hardware_id: str) -> None: ...

The root command puts a `Surroundings` into click's context. A key that only lies in this machine's data
directory is never sent to another machine.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Protocol
from urllib.parse import urlsplit

import click

from crossdock.kit.clock import Clock, SystemClock
from crossdock.terminal.client import ApiClient
from crossdock.terminal.failures import CommandFailed, ExitCode, told_to_the_user
from crossdock.terminal.output import Output


class Defaults(Protocol):
    """Where the server of this machine is and who its operator is, read when a command needs it."""

    def url(self) -> str: ...

    def operator_key(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    environ: Mapping[str, str]
    defaults: Defaults


@dataclass(frozen=True, slots=True)
class Session:
    """What a command works with."""

    client: ApiClient
    output: Output
    clock: Clock

    def client_with(self, key: str) -> ApiClient:
        return ApiClient(self.client.base_url, key)


NO_KEY = (
    "No key: give --key, or set CROSSDOCK_OPERATOR_KEY, or CROSSDOCK_DATA_DIR to the server's data directory."
)


def server_command(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the options; the function gets a `session` first."""

    @click.option(
        "--url", metavar="URL", envvar="CROSSDOCK_URL", help="Where the server is; else this machine's."
    )
    @click.option(
        "--key",
        metavar="KEY",
        envvar="CROSSDOCK_OPERATOR_KEY",
        help="A key that may do it; else the one kept in the data directory.",
    )
    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    @click.pass_context
    @functools.wraps(function)
    def command(
        context: click.Context, /, *, url: str | None, key: str | None, as_json: bool, **arguments: Any
    ) -> None:
        with told_to_the_user():
            function(open_session(surroundings_of(context), url, key, as_json), **arguments)

    return command


def surroundings_of(context: click.Context) -> Surroundings:
    found = context.find_object(Surroundings)
    assert found is not None, "the root command gives every command its surroundings"
    return found


def open_session(surroundings: Surroundings, url: str | None, key: str | None, as_json: bool) -> Session:
    base_url = check_url(url or surroundings.defaults.url())
    if key is None and (url is None or is_this_machine(base_url)):
        key = surroundings.defaults.operator_key()
    if key is None:
        raise CommandFailed(NO_KEY, ExitCode.NO_ACCESS)
    if not key.isascii() or not key.isprintable() or " " in key:
        raise CommandFailed("The key has characters that no key has.", ExitCode.NO_ACCESS)
    output = Output.of_process(sys.stdout, sys.stderr, surroundings.environ, as_json=as_json)
    return Session(ApiClient(base_url, key), output, SystemClock())


def check_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.port != 0 and bool(parts.hostname)
        usable = usable and url.isprintable() and " " not in url
    except ValueError:
        usable = False
    if not usable:
        raise CommandFailed(f"{url!r} is not a URL like http://127.0.0.1:8420.", ExitCode.REFUSED_INPUT)
    return url


def is_this_machine(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
