"""The headers of an outgoing message. Pure.

Three layers, the later one wins: the headers that the message came with, those that the destination's owner
set, and `webhook-id`, `webhook-timestamp`, `webhook-signature`, which nothing overrides.

Never passed on: what belongs to the connection that the message came by (hop-by-hop headers, and those that
`Connection` names), what our own call says for itself (`host`, `content-length`, …), and what the caller
names (credentials). The sender's own `webhook-*` are passed on as `original-webhook-*`, so that a receiver
can still check them. A name that came twice goes out twice, in lower case like all of the sender's: the
client would take two spellings of one name for a replacement.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from multidict import CIMultiDict

from crossdock.delivery.model import Outbound
from crossdock.delivery.parsing import convert, invalid, within
from crossdock.kit.errors import FieldProblem
from crossdock.kit.signing import sign

HEADERS_MAX = 50
HEADERS_BYTES_MAX = 8192

_OURS = frozenset({"host", "content-length", "expect", "accept-encoding"})
_HOP_BY_HOP = frozenset({"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"})
_NOT_PASSED_ON = _OURS | _HOP_BY_HOP
_RESERVED_PREFIX = "webhook-"
_PROXY_PREFIX = "proxy-"

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# Control characters end a header or are refused by the client; a lone surrogate has no bytes to send.
_UNSENDABLE = re.compile("[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")

Headers = tuple[tuple[str, str], ...]


def forwarded_headers(
    originals: Iterable[tuple[str, str]],
    own: Sequence[tuple[str, str]] = (),
    *,
    without: AbstractSet[str] = frozenset(),
) -> Headers:
    """The sender's headers with the owner's in place of theirs. `without`: lower-case names to leave out.

    An original that can't be sent as it is (a control character in it) is left out: it must not keep the
    message from arriving.
    """
    lowered = [(name.lower(), value) for name, value in originals]
    left_out = {name.lower() for name, _ in own} | _named_by_connection(lowered) | without
    kept = [
        (f"original-{name}" if name.startswith(_RESERVED_PREFIX) else name, value)
        for name, value in lowered
        if name not in left_out
        and name not in _NOT_PASSED_ON
        and not name.startswith(_PROXY_PREFIX)
        and _NAME.fullmatch(name)
        and not _UNSENDABLE.search(value)
    ]
    return (*kept, *own)


def signed_headers(outbound: Outbound, timestamp_s: int) -> CIMultiDict[str]:
    """All that goes out with one attempt. Raises ValueError for a secret that is none."""
    headers = CIMultiDict(outbound.headers)
    headers["accept-encoding"] = "identity"  # a thousand characters are read: nothing to gain, bombs to meet
    headers["webhook-id"] = outbound.message_id
    headers["webhook-timestamp"] = str(timestamp_s)
    if outbound.secrets:
        headers["webhook-signature"] = sign(outbound.secrets, outbound.message_id, timestamp_s, outbound.body)
    else:
        headers.popall("webhook-signature", None)
    return headers


def check_headers(raw: object, field: str = "headers") -> Headers:
    """A destination's own headers, from an object of names and values; None: none. Raises InvalidInput."""
    headers = {} if raw is None else convert(raw, dict[str, Any], field)
    if len(headers) > HEADERS_MAX:
        raise invalid(field, FieldProblem(field, "too_many", f"There may be at most {HEADERS_MAX} headers."))
    seen: set[str] = set()
    problems = [problem for name in headers if (problem := _problem(name, headers[name], seen, field))]
    if problems:
        raise invalid(field, *problems)
    if sum(len(name) + len(value.encode()) for name, value in headers.items()) > HEADERS_BYTES_MAX:
        detail = f"Names and values may have at most {HEADERS_BYTES_MAX} bytes together."
        raise invalid(field, FieldProblem(field, "too_large", detail))
    return tuple(headers.items())


def _problem(name: str, value: object, seen: set[str], field: str) -> FieldProblem | None:
    """What is wrong with the header, if anything. Adds its name to `seen`."""
    lowered, place = name.lower(), within(field, name)
    if not _NAME.fullmatch(name):
        return FieldProblem(place, "wrong_format", "A name has letters, digits and hyphens, and no blanks.")
    if lowered in _NOT_PASSED_ON or lowered.startswith((_RESERVED_PREFIX, _PROXY_PREFIX)):
        return FieldProblem(place, "reserved", "This header is not yours to set.")
    if lowered in seen:
        return FieldProblem(place, "duplicate", "The name is there twice, in different case.")
    seen.add(lowered)
    if not isinstance(value, str):
        return FieldProblem(place, "wrong_type", "A value is text.")
    if _UNSENDABLE.search(value):
        return FieldProblem(place, "wrong_format", "A value has no line breaks and no control characters.")
    return None


def _named_by_connection(lowered: Iterable[tuple[str, str]]) -> set[str]:
    values = [value for name, value in lowered if name == "connection"]
    return {token.strip().lower() for value in values for token in value.split(",")}
