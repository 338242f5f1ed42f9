"""What whoever listens to a source is told of it, and in which form processes tell one another. Pure.

Notices travel as PostgreSQL notifications, which are small: texts that a sender chooses are cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

from crossdock.hooks.model import Delivery, DeliveryState, Event
from crossdock.hooks.rules.searching import moment

TEXT_BYTES_MAX = 256

Kind: TypeAlias = Literal["listening", "event", "delivery", "lagged"]


class LiveEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Of an event that was accepted. Its texts may be cut; the event itself has them whole."""

    event_id: str
    source_id: str
    method: str
    path: str
    content_type: str
    received_at: str
    size: int
    """Of the body, in bytes."""


class LiveDelivery(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Of a delivery that went from one state to another."""

    event_id: str
    connection_id: str
    state: DeliveryState
    attempts: int
    status_code: int | None = None
    """Of the answer, if there was one."""


class LiveBeginning(msgspec.Struct, frozen=True):
    """From here on all is told."""

    source_id: str


class Notice(msgspec.Struct, frozen=True, array_like=True):
    source_id: str
    kind: Kind
    position: str
    """Where in the source's events it stands; empty for all that is no event."""
    data: msgspec.Raw = msgspec.Raw(b"{}")


_encode = msgspec.json.Encoder().encode
_decode_notices = msgspec.json.Decoder(list[Notice]).decode


def live_event(event: Event) -> LiveEvent:
    return LiveEvent(
        event_id=event.event_id,
        source_id=event.source_id,
        method=cut_text(event.method),
        path=cut_text(event.path),
        content_type=cut_text(event.content_type),
        received_at=moment(event.received_at),
        size=len(event.body),
    )


def beginning_notice(source_id: str, position: Position | None) -> Notice:
    """`position`: for a client that has none yet, to come back to."""
    text = "" if position is None else position.text
    return Notice(source_id, "listening", text, msgspec.Raw(_encode(LiveBeginning(source_id))))


def event_notice(event: Event) -> Notice:
    position = Position(event.received_at, event.event_id).text
    return Notice(event.source_id, "event", position, msgspec.Raw(_encode(live_event(event))))


def delivery_notice(delivery: Delivery, status_code: int | None) -> Notice:
    told = LiveDelivery(
        event_id=delivery.event_id,
        connection_id=delivery.connection_id,
        state=delivery.state,
        attempts=delivery.attempts,
        status_code=status_code or None,
    )
    return Notice(delivery.source_id, "delivery", "", msgspec.Raw(_encode(told)))


def lag_notice(source_id: str) -> Notice:
    """Some of the source's notices were lost."""
    return Notice(source_id, "lagged", "")


def cut_text(text: str) -> str:
    """Of at most `TEXT_BYTES_MAX` bytes of UTF-8, and such as there is UTF-8 for."""
    return text.encode("utf-8", "replace")[:TEXT_BYTES_MAX].decode("utf-8", "ignore")


# --- between processes -----------------------------------------------------------------------------


def encoded(notice: Notice) -> bytes:
    return _encode(notice)


def packed(entries: Iterable[bytes], bytes_max: int) -> Iterator[str]:
    """JSON arrays of entries that are JSON already, as few as have at most `bytes_max` bytes each."""
    together: list[bytes] = []
    size = 1
    for entry in entries:
        if together and size + len(entry) + 1 > bytes_max:
            yield _array(together)
            together, size = [], 1
        together.append(entry)
        size += len(entry) + 1
    if together:
        yield _array(together)


def _array(entries: list[bytes]) -> str:
    return (b"[" + b",".join(entries) + b"]").decode()


def unpacked(payload: str) -> list[Notice]:
    """Raises msgspec.MsgspecError for what is none of ours."""
    return _decode_notices(payload)


# --- where one was ---------------------------------------------------------------------------------

_LEAST_ID = "evt_" + "-" * 16
"""It sorts before every other, and is no event's."""
_POSITION = re.compile(r"(\d{13})-(evt_[0-9A-Za-z_-]{16})")


@dataclass(frozen=True, slots=True)
class Position:
    """An event's place among its source's, as clients keep it: the `id:` of the stream."""

    received_at: int
    event_id: str

    @property
    def text(self) -> str:
        return f"{self.received_at:013d}-{self.event_id}"

    @classmethod
    def before_all(cls, at_ms: int) -> Position:
        """Before every event that is received at this time or later."""
        return cls(at_ms, _LEAST_ID)

    @property
    def is_of_event(self) -> bool:
        return self.event_id != _LEAST_ID

    @classmethod
    def parse(cls, text: str) -> Position | None:
        """None for anything that never was one of ours."""
        match = _POSITION.fullmatch(text) if text.isascii() else None
        return None if match is None else cls(int(match[1]), match[2])
