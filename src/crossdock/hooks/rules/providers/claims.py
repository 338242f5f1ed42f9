"""What a request says of its own signature, and where in its headers it says so."""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from crossdock.hooks.rules.providers.model import Arrival, Refusal, RefusalReason

SIGNATURES_MAX = 16
"""How many signatures of one request are looked at: a rotation has two or three, a flood has thousands."""

_TIMESTAMP = re.compile(r"[0-9]{1,16}")


class Encoding(StrEnum):
    HEX = "hex"
    BASE64 = "base64"


@dataclass(frozen=True, slots=True)
class Claim:
    """Signatures decoded, timestamp and id as sent: they are signed as text. Empty: not of this provider."""

    signatures: tuple[bytes, ...]
    timestamp: str = ""
    message_id: str = ""


Reader: TypeAlias = Callable[[Arrival], Claim | Refusal]


def in_headers(
    signature: str,
    encoding: Encoding,
    *,
    prefix: str = "",
    timestamp: str | None = None,
    message_id: str | None = None,
) -> Reader:
    """A signature in a header of its own, perhaps a timestamp and an id in others."""

    def read(arrival: Arrival) -> Claim | Refusal:
        given = arrival.header(signature)
        if not given:
            return missing(signature)
        value = decoded(given.removeprefix(prefix), encoding) if given.startswith(prefix) else None
        if not value:
            return malformed(signature, f"{prefix}<signature in {encoding}>")
        stamp = _stamp(arrival, timestamp)
        if isinstance(stamp, Refusal):
            return stamp
        identity = "" if message_id is None else arrival.header(message_id)
        if identity is None:
            return Refusal(RefusalReason.ID_MISSING, f"The header {message_id} is missing; it is signed.")
        return Claim((value,), stamp, identity)

    return read


def in_pairs(header: str, separator: str, timestamp: str, signature: str) -> Reader:
    """One header of pairs, like `t=1614265330,v1=<hex>,v1=<hex>`: during a rotation there are several."""

    def read(arrival: Arrival) -> Claim | Refusal:
        given = arrival.header(header)
        if not given:
            return missing(header)
        pairs = [(name.strip(), value.strip()) for name, _, value in _partitions(given, separator)]
        stamps = [value for name, value in pairs if name == timestamp]
        if not stamps:
            return Refusal(RefusalReason.TIMESTAMP_MISSING, f"There is no {timestamp}= in {header}.")
        if not _TIMESTAMP.fullmatch(stamps[0]):
            return _malformed_timestamp(header)
        texts = [value for name, value in pairs if name == signature]
        if not texts:
            return Refusal(RefusalReason.SIGNATURE_MISSING, f"There is no {signature}= in {header}.")
        values = _all_decoded(texts, Encoding.HEX)
        if not values:
            return malformed(header, f"{timestamp}=<seconds>{separator}{signature}=<signature in hex>")
        return Claim(values, stamps[0])

    return read


def in_versions(prefixes: tuple[str, ...], version: str) -> Reader:
    """Standard Webhooks: `<prefix>-id`, `-timestamp`, and in `-signature` a list like `v1,… v1a,…`."""

    def read(arrival: Arrival) -> Claim | Refusal:
        prefix = chosen_prefix(arrival, prefixes)
        if prefix is None:
            return missing(f"{prefixes[0]}-signature")
        message_id = arrival.header(f"{prefix}-id")
        if not message_id:
            return Refusal(RefusalReason.ID_MISSING, f"The header {prefix}-id is missing; it is signed.")
        if _LIKE_TWO_MESSAGES.search(message_id):
            detail = (
                f"The header {prefix}-id holds a timestamp, so another message could be read as this one."
            )
            return Refusal(RefusalReason.ID_MALFORMED, detail)
        stamp = _stamp(arrival, f"{prefix}-timestamp")
        if isinstance(stamp, Refusal):
            return stamp
        header = f"{prefix}-signature"
        found = _partitions(arrival.header(header) or "", " ", ",")
        values = _all_decoded([text for name, _, text in found if name == version], Encoding.BASE64)
        if not values:
            return malformed(header, f"{version},<signature in base64>")
        return Claim(values, stamp, message_id)

    return read


# What is signed is id.timestamp.body. An id that ends in a timestamp is another message's id, its timestamp
# now taken for part of the id, and the beginning of its body for the timestamp.
_LIKE_TWO_MESSAGES = re.compile(r"\.[0-9]{9,}(?:\.|\Z)")


def chosen_prefix(arrival: Arrival, prefixes: tuple[str, ...]) -> str | None:
    """Which of the aliases the request uses. Id, time and signature all come from the same one."""
    return next((prefix for prefix in prefixes if arrival.header(f"{prefix}-signature")), None)


def decoded(text: str, encoding: Encoding) -> bytes | None:
    """Strict but for padding, which some leave out."""
    try:
        if encoding is Encoding.HEX:
            return binascii.unhexlify(text)
        return binascii.a2b_base64(text + "=" * (-len(text) % 4), strict_mode=True)
    except ValueError:
        return None


def missing(header: str) -> Refusal:
    detail = f"The header {header} is missing: not from this provider, or it has no signing secret yet."
    return Refusal(RefusalReason.SIGNATURE_MISSING, detail)


def malformed(header: str, form: str) -> Refusal:
    return Refusal(RefusalReason.SIGNATURE_MALFORMED, f"The header {header} is not of the form {form}.")


def _stamp(arrival: Arrival, header: str | None) -> str | Refusal:
    if header is None:
        return ""
    given = arrival.header(header)
    if not given:
        return Refusal(RefusalReason.TIMESTAMP_MISSING, f"The header {header} is missing; it is signed.")
    return given if _TIMESTAMP.fullmatch(given) else _malformed_timestamp(header)


def _malformed_timestamp(header: str) -> Refusal:
    detail = f"The time in the header {header} is no whole number since 1970."
    return Refusal(RefusalReason.TIMESTAMP_MALFORMED, detail)


def _partitions(text: str, separator: str, inner: str = "=") -> list[tuple[str, str, str]]:
    return [part.partition(inner) for part in text.split(separator)]


def _all_decoded(texts: list[str], encoding: Encoding) -> tuple[bytes, ...]:
    values = (decoded(text, encoding) for text in texts[:SIGNATURES_MAX])
    return tuple(value for value in values if value)
