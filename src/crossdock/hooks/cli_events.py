"""`crossdock hooks events` and `refused`: what came, and what became of it."""

from __future__ import annotations

import sys
from typing import Any

import click
import msgspec

from crossdock.hooks.cli_options import (
    JsonType,
    entries,
    event_argument,
    from_option,
    given,
    hooks_path,
    limit_option,
    print_value,
    source_argument,
    time_text,
    to_option,
)
from crossdock.hooks.model import EventStatus
from crossdock.terminal.options import Session, server_command

EVENT_COLUMNS = ("received_at", "event_id", "status", "method", "path", "content_type", "size", "verified")
ATTEMPT_COLUMNS = (
    *("attempted_at", "connection_id", "attempt_number", "status_code", "latency_ms", "error"),
    *("destination_url", "generation"),
)
DELIVERY_COLUMNS = ("connection_id", "state", "attempts", "next_attempt_at", "reason", "generation")
REFUSED_COLUMNS = ("refused_at", "reason", "method", "path", "source_ip", "content_length", "detail")
STATUSES = [each.value for each in EventStatus]


@click.group()
def events() -> None:
    """Accepted webhooks, and what became of them."""


@events.command("list")
@source_argument
@click.option("--status", type=click.Choice(STATUSES), help="Only such events.")
@from_option
@to_option
@click.option(
    "--match", type=JsonType(), metavar="JSON", help='Only those that match: [{"on": "body", "match": {…}}].'
)
@limit_option
@server_command
def list_events(
    session: Session,
    *,
    source_id: str,
    status: str | None,
    from_text: str | None,
    to_text: str | None,
    match: Any,
    limit: int,
) -> None:
    """List or search a source's events, newest first."""
    query = {
        "status": status,
        "from": time_text(session, "--from", from_text),
        "to": time_text(session, "--to", to_text),
        "q": None if match is None else msgspec.json.encode(match).decode(),
    }
    found = entries(session, hooks_path("sources", source_id, "events"), query, limit)
    session.output.entries(found, EVENT_COLUMNS)


@events.command()
@event_argument
@click.option("--body", "body_only", is_flag=True, help="Print its body, byte for byte, and nothing else.")
@server_command
def show(session: Session, event_id: str, body_only: bool) -> None:
    """Show an event with its headers, its body and its deliveries."""
    where = hooks_path("events", event_id)
    if body_only:
        session.client.download(f"{where}/body", sys.stdout.buffer, accept="*/*")
        return
    event = session.client.get(where)
    if session.output.as_json:
        session.output.value(event)
        return
    apart = ("headers", "body", "body_encoding", "body_truncated", "body_url", "deliveries")
    print_value(session, {name: value for name, value in event.items() if name not in apart})
    click.echo()
    for name, value in event["headers"]:
        session.output.value({f"{name}:": value})
    click.echo(f"\n{body_text(event)}\n")
    session.output.entries(event["deliveries"], DELIVERY_COLUMNS)


@events.command()
@event_argument
@limit_option
@server_command
def attempts(session: Session, event_id: str, limit: int) -> None:
    """List the calls made for an event, in order."""
    found = entries(session, hooks_path("events", event_id, "attempts"), {}, limit)
    session.output.entries(found, ATTEMPT_COLUMNS)


@events.command()
@event_argument
@click.option(
    "--connection", "connection_id", metavar="ID", help="Only there, whatever the connection's filters say."
)
@server_command
def replay(session: Session, event_id: str, connection_id: str | None) -> None:
    """Send an event again, to every connection whose filters match it now."""
    wanted = given(connection_id=connection_id)
    print_value(session, session.client.post(hooks_path("events", event_id, "replay"), wanted))


@click.command()
@source_argument
@server_command
def refused(session: Session, source_id: str) -> None:
    """List the requests that a source refused.

    With the reason, newest first; the last hundred, for a week.
    """
    found = entries(session, hooks_path("sources", source_id, "refused"), {}, 200)
    session.output.entries(found, REFUSED_COLUMNS)


def body_text(event: dict[str, Any]) -> str:
    """What a terminal can show of it: control characters of the sender's are not for it."""
    if event["body_truncated"]:
        return f"(a body of {event['size']:,} bytes: print it with --body)"
    if event["body_encoding"] != "utf-8":
        return f"(a body of {event['size']:,} bytes that are no text: print it with --body)"
    text: str = event["body"]
    return "".join(each if each.isprintable() or each in "\n\t" else repr(each)[1:-1] for each in text)
