"""A request as it arrived, and what is said of it. Frozen, and without I/O."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import msgspec

_decode = msgspec.json.Decoder().decode


class RefusalReason(StrEnum):
    """Why a request was not taken for the provider's. Stable: users filter by it."""

    SIGNATURE_MISSING = "signature_missing"
    SIGNATURE_MALFORMED = "signature_malformed"
    SIGNATURE_MISMATCH = "signature_mismatch"
    TIMESTAMP_MISSING = "timestamp_missing"
    TIMESTAMP_MALFORMED = "timestamp_malformed"
    TIMESTAMP_OUT_OF_TOLERANCE = "timestamp_out_of_tolerance"
    ID_MISSING = "id_missing"
    ID_MALFORMED = "id_malformed"
    URL_MALFORMED = "url_malformed"
    BODY_MALFORMED = "body_malformed"
    SECRET_UNUSABLE = "secret_unusable"  # noqa: S105 - a reason, no secret


@dataclass(frozen=True, slots=True)
class Refusal:
    reason: RefusalReason
    detail: str
    """For people: what was found, and what to do."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer in the provider's own words."""

    status: int
    content_type: str
    body: bytes


@dataclass(frozen=True)
class Arrival:
    """One request. The URL is percent-encoded as it came; headers are decoded as latin-1.

    Not slotted: the two views below are worked out once, and only if somebody asks.
    """

    method: str
    url: str
    """The whole URL as the outside sees us, for the providers that sign it or a part of it."""
    path: str
    query: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    received_at_ms: int

    def header(self, name: str) -> str | None:
        """The first header of that name, in any case."""
        return self._by_name.get(name.lower())

    @cached_property
    def _by_name(self) -> dict[str, str]:
        # Backwards, so that of two headers the first is what stays.
        return {name.lower(): value for name, value in reversed(self.headers)}

    @cached_property
    def document(self) -> object:
        """The body as JSON. None also for a body that is none, or has what no reader of ours takes."""
        try:
            return _decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None


def raw_bytes(text: str) -> bytes:
    """The bytes that a header had before it was decoded."""
    return text.encode("latin-1", "backslashreplace")
