"""`crossdock hooks`: sources, connections and events from a terminal."""

from __future__ import annotations

import click

from crossdock.hooks.cli_accounts import keys, users
from crossdock.hooks.cli_connections import connections
from crossdock.hooks.cli_events import events, refused
from crossdock.hooks.cli_listen import listen
from crossdock.hooks.cli_replays import replays
from crossdock.hooks.cli_send import send
from crossdock.hooks.cli_sources import sources


@click.group("hooks")
def hooks() -> None:
    """Webhooks: received at sources, kept as events, delivered by connections.

    The first steps: `users create`, `sources create`, `connections create`, `send`, `events list`. To see a
    source's events on this machine: `listen`.
    """


for command in (users, keys, sources, connections, send, listen, events, refused, replays):
    hooks.add_command(command)
