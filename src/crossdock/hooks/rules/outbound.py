"""An event as the message that goes to one connection. Pure."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from crossdock.delivery.model import Outbound
from crossdock.delivery.prepare import forwarded_headers
from crossdock.hooks.model import Connection, Event
from crossdock.hooks.rules.transforms import Message, Transform

REPLAY_HEADER = "crossdock-replay"
REDACTED = "[redacted]"


def outbound_message(
    event: Event,
    connection: Connection,
    generation: str,
    *,
    transform: Transform | None,
    own_headers: tuple[tuple[str, str], ...],
    secrets: tuple[str, ...],
    credentials: AbstractSet[str],
) -> Outbound:
    """`credentials`: lower-case names of headers that are not passed on. Raises TransformFailed."""
    message = Message(event.body, event.headers)
    if transform is not None:
        message = transform.apply(message)
    headers = forwarded_headers(message.headers, own_headers, without=credentials)
    if generation:
        headers = (*headers, (REPLAY_HEADER, generation))
    return Outbound(
        message_id=event.event_id,
        url=connection.destination_url,
        body=message.body,
        headers=headers,
        secrets=secrets,
        timeout_seconds=connection.timeout_seconds,
    )


def redacted(
    headers: tuple[tuple[str, str], ...], credentials: AbstractSet[str]
) -> tuple[tuple[str, str], ...]:
    """As they are kept: a credential is of use to nobody who reads them later."""
    return tuple((name, REDACTED if name.lower() in credentials else value) for name, value in headers)
