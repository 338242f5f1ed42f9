"""`crossdock hooks connections`."""

from __future__ import annotations

from typing import Any

import click

from crossdock.hooks.cli_options import (
    JsonType,
    PairType,
    RateType,
    connection_argument,
    entries,
    given,
    grace_option,
    hooks_path,
    limit_option,
    name_option,
    print_value,
    source_argument,
)
from crossdock.terminal.options import Session, server_command

CONNECTION_COLUMNS = (
    *("connection_id", "name", "destination_url", "status", "circuit"),
    *("delivery_count", "failure_count", "paused_reason"),
)


@click.group()
def connections() -> None:
    """Where a source's webhooks go."""


@connections.command()
@source_argument
@click.argument("destination_url", metavar="URL")
@name_option
@click.option("--filters", type=JsonType(), help='Rules that must all match: [{"on": "body", "match": {…}}].')
@click.option("--transform", type=JsonType(), help="Steps that reshape what is sent.")
@click.option(
    "--retry", "retry_config", type=JsonType(), help='When to try again: {"schedule_seconds": […]}.'
)
@click.option(
    "--header", "headers", type=PairType(), multiple=True, help="Sent along; may be given several times."
)
@click.option("--rate-limit", type=RateType(), help="At most so many requests in so many seconds: 10/1.")
@click.option("--max-in-flight", type=click.IntRange(min=1), help="At most so many requests at a time.")
@click.option("--ordered", is_flag=True, help="One after the other, in the order in which they came.")
@click.option("--timeout-seconds", type=click.IntRange(min=1), help="How long the destination may take.")
@server_command
def create(
    session: Session,
    *,
    source_id: str,
    destination_url: str,
    name: str,
    filters: Any,
    transform: Any,
    retry_config: Any,
    headers: tuple[tuple[str, str], ...],
    rate_limit: dict[str, int] | None,
    max_in_flight: int | None,
    ordered: bool,
    timeout_seconds: int | None,
) -> None:
    """Connect a source to a destination. `signing_secret` is printed this once.

    JSON may be given as @FILE.
    """
    wanted = given(
        name=name,
        destination_url=destination_url,
        filters=filters,
        transform=transform,
        retry_config=retry_config,
        headers=dict(headers) or None,
        rate_limit=rate_limit,
        max_in_flight=max_in_flight,
        ordered=ordered or None,
        timeout_seconds=timeout_seconds,
    )
    made = session.client.post(hooks_path("sources", source_id, "connections"), wanted)
    for warning in made["warnings"]:
        session.output.note(f"{warning['field']}: {warning['detail']}")
    print_value(session, made if session.output.as_json else without(made, "warnings"))


@connections.command("list")
@source_argument
@limit_option
@server_command
def list_connections(session: Session, source_id: str, limit: int) -> None:
    """List a source's connections."""
    found = entries(session, hooks_path("sources", source_id, "connections"), {}, limit)
    session.output.entries(found, CONNECTION_COLUMNS)


@connections.command()
@connection_argument
@server_command
def show(session: Session, connection_id: str) -> None:
    """Show a connection."""
    print_value(session, session.client.get(hooks_path("connections", connection_id)))


@connections.command()
@connection_argument
@server_command
def pause(session: Session, connection_id: str) -> None:
    """Send nothing for now: deliveries wait."""
    print_value(session, session.client.post(hooks_path("connections", connection_id, "pause")))


@connections.command()
@connection_argument
@server_command
def resume(session: Session, connection_id: str) -> None:
    """Send what has waited, and what comes."""
    print_value(session, session.client.post(hooks_path("connections", connection_id, "resume")))


@connections.command()
@connection_argument
@click.confirmation_option(prompt="Delete the connection, for good?", help="Don't ask.")
@server_command
def delete(session: Session, connection_id: str) -> None:
    """Delete a connection. What it has not delivered yet is cancelled."""
    session.client.delete(hooks_path("connections", connection_id))
    session.output.note(f"{connection_id} is deleted.")


@connections.command("test")
@connection_argument
@server_command
def send_sample(session: Session, connection_id: str) -> None:
    """Send a sample now, and print what the destination said."""
    print_value(session, session.client.post(hooks_path("connections", connection_id, "test")))


@connections.command("rotate-secret")
@connection_argument
@grace_option
@server_command
def rotate_secret(session: Session, connection_id: str, grace_seconds: int | None) -> None:
    """Make a new signing secret. It is printed this once."""
    where = hooks_path("connections", connection_id, "rotate-secret")
    print_value(session, session.client.post(where, given(grace_seconds=grace_seconds)))


def without(value: dict[str, Any], name: str) -> dict[str, Any]:
    return {each: content for each, content in value.items() if each != name}
