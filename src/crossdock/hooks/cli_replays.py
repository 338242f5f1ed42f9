"""`crossdock hooks replays`: many events sent again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import click

from crossdock.hooks.cli_options import (
    entries,
    from_option,
    given,
    hooks_path,
    limit_option,
    print_value,
    source_argument,
    time_text,
    to_option,
)
from crossdock.hooks.rules.searching import moment
from crossdock.terminal.failures import CommandFailed
from crossdock.terminal.options import Session, server_command

REPLAY_COLUMNS = (
    *("created_at", "replay_id", "state", "from", "to", "status", "connection_id"),
    *("looked_at", "replayed", "deliveries"),
)
RUNNING = "running"
STATUSES = ("processing", "filtered", "delivered", "retrying", "failed")
_POLL_SECONDS = 0.5


@click.group()
def replays() -> None:
    """Many events sent again."""


def choice_options(function: Callable[..., None]) -> Callable[..., None]:
    """Which events."""
    for option in (
        click.option(
            "--connection", "connection_id", metavar="ID", help="Only there; by default to all connections."
        ),
        click.option(
            "--status",
            type=click.Choice(STATUSES),
            help="Only such events, and of their deliveries those that stand so.",
        ),
        to_option,
        from_option,
        source_argument,
    ):
        function = option(function)
    return function


@replays.command()
@choice_options
@server_command
def plan(session: Session, **choice: str | None) -> None:
    """Say how many events would be sent again, and send none. By default of the last day."""
    print_value(session, planned(session, chosen(session, choice)))


@replays.command()
@choice_options
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--no-wait", is_flag=True, help="Return as soon as it has begun.")
@server_command
def run(session: Session, *, yes: bool, no_wait: bool, **choice: str | None) -> None:
    """Send many events again, and show how far it has come. By default those of the last day.

    Ctrl-C only stops the looking: the replay goes on until it has ended, or is cancelled.
    """
    wanted = chosen(session, choice)
    expected = planned(session, wanted)
    if not yes:
        click.confirm(f"Send {counted(expected)} again?", abort=True, err=True)
    replay = session.client.post("/v1/hooks/replays", wanted)
    if not no_wait:
        total = None if expected["at_least"] else expected["looked_at"]
        replay = followed(session, replay, total)
    print_value(session, replay)
    if replay["state"] == "failed":
        raise CommandFailed(f"The replay failed: {replay['reason']}.")


@replays.command("list")
@source_argument
@limit_option
@server_command
def list_replays(session: Session, source_id: str, limit: int) -> None:
    """List a source's replays, newest first."""
    found = entries(session, "/v1/hooks/replays", {"source_id": source_id}, limit)
    session.output.entries(found, REPLAY_COLUMNS)


@replays.command()
@click.argument("replay_id", metavar="REPLAY")
@server_command
def show(session: Session, replay_id: str) -> None:
    """Show a replay and how far it has come."""
    print_value(session, session.client.get(hooks_path("replays", replay_id)))


@replays.command()
@click.argument("replay_id", metavar="REPLAY")
@server_command
def cancel(session: Session, replay_id: str) -> None:
    """Cancel a replay. What was sent again until then stays so."""
    print_value(session, session.client.post(hooks_path("replays", replay_id, "cancel")))


# --- in detail -------------------------------------------------------------------------------------


def chosen(session: Session, choice: dict[str, str | None]) -> dict[str, object]:
    return given(
        **{
            "source_id": choice["source_id"],
            "from": time_text(session, "--from", choice["from_text"] or "-24h"),
            "to": time_text(session, "--to", choice["to_text"]) or moment(session.clock.now_ms()),
            "status": choice["status"],
            "connection_id": choice["connection_id"],
        }
    )


def planned(session: Session, wanted: dict[str, object]) -> dict[str, Any]:
    plan: dict[str, Any] = session.client.post("/v1/hooks/replays", {**wanted, "dry_run": True})
    return plan


def counted(plan: dict[str, Any]) -> str:
    at_least = "at least " if plan["at_least"] else ""
    return f"{at_least}{plan['would_replay']:,} events, in {plan['deliveries']:,} deliveries,"


def followed(session: Session, replay: dict[str, Any], total: int | None) -> dict[str, Any]:
    """The replay as it has ended."""
    where = hooks_path("replays", replay["replay_id"])
    looked_at = 0
    try:
        with session.output.progress("Replaying", session.clock, total) as progress:
            while True:
                progress.advance(replay["looked_at"] - looked_at)
                looked_at = replay["looked_at"]
                if replay["state"] != RUNNING:
                    return replay
                time.sleep(_POLL_SECONDS)
                replay = session.client.get(where)
    except KeyboardInterrupt:
        session.output.note(f"It goes on. To stop it: crossdock hooks replays cancel {replay['replay_id']}")
        return replay
