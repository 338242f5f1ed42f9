"""`crossdock hooks users` and `keys`."""

from __future__ import annotations

import click

from crossdock.hooks.cli_options import (
    entries,
    given,
    hooks_path,
    limit_option,
    name_option,
    print_value,
    user_option,
)
from crossdock.hooks.model import KeyPermission, Plan
from crossdock.terminal.options import Session, server_command

USER_COLUMNS = ("user_id", "email", "name", "plan", "usage_this_month", "created_at")
KEY_COLUMNS = ("key_id", "name", "permissions", "key_prefix", "created_at", "last_used_at")


@click.group()
def users() -> None:
    """Those whose sources these are. For the operator."""


@users.command("create")
@click.argument("email")
@name_option
@click.option(
    "--plan", type=click.Choice([each.value for each in Plan]), help="How much, and for how long it is kept."
)
@click.option("--alert-url", metavar="URL", help="Told when a destination fails or a source refuses.")
@click.option(
    "--password",
    prompt=True,
    prompt_required=False,
    hide_input=True,
    confirmation_prompt=True,
    help="For logging in; asked for, if none follows.",
)
@server_command
def create_user(
    session: Session, *, email: str, name: str, plan: str | None, alert_url: str | None, password: str | None
) -> None:
    """Make a user."""
    wanted = given(email=email, name=name, plan=plan, alert_url=alert_url, password=password)
    print_value(session, session.client.post("/v1/hooks/users", wanted))


@users.command("list")
@limit_option
@server_command
def list_users(session: Session, limit: int) -> None:
    """List users, newest first."""
    session.output.entries(entries(session, "/v1/hooks/users", {}, limit), USER_COLUMNS)


@click.group()
def keys() -> None:
    """API keys of a user."""


@keys.command("create")
@name_option
@click.option(
    "--permissions",
    type=click.Choice([each.value for each in KeyPermission]),
    default=KeyPermission.READ.value,
    show_default=True,
    help="To look, to change things too, or to manage keys and the profile as well.",
)
@user_option
@server_command
def create_key(session: Session, name: str, permissions: str, user_id: str | None) -> None:
    """Make a key. It is printed this once."""
    wanted = given(name=name, permissions=permissions, user_id=user_id)
    print_value(session, session.client.post("/v1/hooks/keys", wanted))


@keys.command("list")
@user_option
@limit_option
@server_command
def list_keys(session: Session, user_id: str | None, limit: int) -> None:
    """List keys, newest first."""
    session.output.entries(entries(session, "/v1/hooks/keys", {"user_id": user_id}, limit), KEY_COLUMNS)


@keys.command("delete")
@click.argument("key_id", metavar="KEY")
@user_option
@server_command
def delete_key(session: Session, key_id: str, user_id: str | None) -> None:
    """Delete a key. It stops working within 5 seconds."""
    session.client.call("DELETE", hooks_path("keys", key_id), query={"user_id": user_id})
    session.output.note(f"{key_id} is deleted.")
