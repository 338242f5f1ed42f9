"""`crossdock hooks sources`."""

from __future__ import annotations

from typing import Any

import click

from crossdock.hooks.cli_options import (
    JsonType,
    entries,
    given,
    grace_option,
    hooks_path,
    limit_option,
    print_value,
    secret_option,
    source_argument,
    user_option,
)
from crossdock.terminal.options import Session, server_command

SOURCE_COLUMNS = ("source_id", "name", "provider", "status", "event_count", "last_event_at", "ingest_url")


@click.group()
def sources() -> None:
    """Where webhooks come in: a URL for each provider that sends them."""


@sources.command()
@click.argument("name")
@click.option(
    "--provider",
    required=True,
    metavar="NAME",
    help="Who sends: stripe, github, shopify, slack, standard-webhooks, custom, …",
)
@secret_option
@click.option("--signing", type=JsonType(), help="How a custom provider signs, or where an API key stands.")
@click.option("--dedup", type=JsonType(), help="By which header or path repeats are told.")
@click.option("--response", type=JsonType(), help="What the provider is answered.")
@user_option
@server_command
def create(
    session: Session,
    *,
    name: str,
    provider: str,
    secret: str | None,
    signing: Any,
    dedup: Any,
    response: Any,
    user_id: str | None,
) -> None:
    """Make a source. Give the provider its `ingest_url`.

    Without --secret everything that comes is accepted, unverified. JSON may be given as @FILE.
    """
    wanted = given(
        name=name,
        provider=provider,
        signing_secret=secret,
        signing=signing,
        dedup=dedup,
        response=response,
        user_id=user_id,
    )
    print_value(session, session.client.post("/v1/hooks/sources", wanted))


@sources.command("list")
@user_option
@limit_option
@server_command
def list_sources(session: Session, user_id: str | None, limit: int) -> None:
    """List a user's sources."""
    found = entries(session, "/v1/hooks/sources", {"user_id": user_id}, limit)
    session.output.entries(found, SOURCE_COLUMNS)


@sources.command()
@source_argument
@server_command
def show(session: Session, source_id: str) -> None:
    """Show a source."""
    print_value(session, session.client.get(hooks_path("sources", source_id)))


@sources.command()
@source_argument
@server_command
def pause(session: Session, source_id: str) -> None:
    """Take nothing for now: the provider is answered 503, and sends again later."""
    print_value(session, session.client.post(hooks_path("sources", source_id, "pause")))


@sources.command()
@source_argument
@server_command
def resume(session: Session, source_id: str) -> None:
    """Take webhooks again."""
    print_value(session, session.client.post(hooks_path("sources", source_id, "resume")))


@sources.command()
@source_argument
@click.confirmation_option(prompt="Delete the source and its connections, for good?", help="Don't ask.")
@server_command
def delete(session: Session, source_id: str) -> None:
    """Delete a source and its connections. Events that came stay as long as they would have."""
    session.client.delete(hooks_path("sources", source_id))
    session.output.note(f"{source_id} is deleted.")


@sources.command("rotate-secret")
@source_argument
@secret_option
@grace_option
@server_command
def rotate_secret(session: Session, source_id: str, secret: str | None, grace_seconds: int | None) -> None:
    """Set the provider's new signing secret."""
    if secret is None:
        raise click.UsageError("Give the new secret with --secret.")
    wanted = given(signing_secret=secret, grace_seconds=grace_seconds)
    print_value(session, session.client.post(hooks_path("sources", source_id, "rotate-secret"), wanted))
