"""`crossdock hooks send`: a webhook as a provider would send it."""

from __future__ import annotations

import os
from typing import Any, BinaryIO

import click
import msgspec

from crossdock.hooks.cli_options import hooks_path, secret_option, source_argument
from crossdock.hooks.rules.samples import SAMPLE_PROVIDERS, sample_webhook
from crossdock.terminal.failures import CommandFailed, ExitCode, exit_code_of_status
from crossdock.terminal.options import Session, server_command
from crossdock.terminal.sending import NotAnswered, Reply, send_request


@click.command()
@source_argument
@click.argument("file", type=click.File("rb"), required=False)
@click.option(
    "--provider", type=click.Choice(SAMPLE_PROVIDERS), help="As whom; by default the source's provider."
)
@secret_option
@click.option("--path", "below", metavar="PATH", default="", help="Below the source's URL.")
@server_command
def send(
    session: Session,
    *,
    source_id: str,
    file: BinaryIO | None,
    provider: str | None,
    secret: str | None,
    below: str,
) -> None:
    """Send a webhook to a source, signed as its provider signs.

    FILE is the body; `-` is standard input, and without it there is one made up. Without --secret the webhook
    has no signature: a source that has a secret refuses it.
    """
    as_whom = provider or provider_of(session, source_id)
    body = None if file is None else file.read()
    try:
        webhook = sample_webhook(as_whom, secret, body, session.clock.now_ms(), os.urandom)
    except ValueError as error:
        raise CommandFailed(
            f"The secret can't be one of {as_whom}: {error}.", ExitCode.REFUSED_INPUT
        ) from error
    where = f"/in/{source_id}" + (f"/{below.lstrip('/')}" if below else "")
    try:
        reply = send_request(
            "POST", session.client.base_url + where, webhook.headers, webhook.body, clock=session.clock
        )
    except NotAnswered as error:
        raise CommandFailed(
            f"{session.client.base_url} can't be reached: {error}.", ExitCode.UNAVAILABLE
        ) from error
    if not 200 <= reply.status < 300:
        raise refusal(reply)
    session.output.value({"event_id": event_id_of(reply), "status": reply.status, "bytes": len(webhook.body)})


def provider_of(session: Session, source_id: str) -> str:
    provider = str(session.client.get(hooks_path("sources", source_id))["provider"])
    if provider not in SAMPLE_PROVIDERS:
        raise CommandFailed(
            f"There is no sample of {provider}; give --provider: {', '.join(SAMPLE_PROVIDERS)}.",
            ExitCode.REFUSED_INPUT,
        )
    return provider


def event_id_of(reply: Reply) -> str | None:
    """A source may answer what it likes; the header is there then."""
    said = _document(reply).get("event_id")
    return reply.header("crossdock-event-id") or (str(said) if said is not None else None)


def refusal(reply: Reply) -> CommandFailed:
    problem = _document(reply)
    code, detail = str(problem.get("code", "")), str(problem.get("detail", ""))
    message = detail or f"The server answered {reply.status}."
    return CommandFailed(
        f"{message} ({code})" if code else message,
        exit_code_of_status(reply.status),
        code=code,
        status=reply.status,
    )


def _document(reply: Reply) -> dict[str, Any]:
    try:
        document = msgspec.json.decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return document if isinstance(document, dict) else {}
