"""The bytes a provider signed, from a template like `{timestamp}.{body}`. Bodies are never re-encoded."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from crossdock.hooks.rules.providers.claims import Claim
from crossdock.hooks.rules.providers.model import Arrival, Refusal, RefusalReason, raw_bytes

_Part: TypeAlias = Callable[[Arrival, Claim], bytes]

_FIELDS: dict[str, _Part] = {
    "body": lambda arrival, _: arrival.body,
    "timestamp": lambda _, claim: raw_bytes(claim.timestamp),
    "id": lambda _, claim: raw_bytes(claim.message_id),
    "url": lambda arrival, _: raw_bytes(arrival.url),
    "method": lambda arrival, _: raw_bytes(arrival.method),
    "path": lambda arrival, _: raw_bytes(_path_of(arrival.url)),
    "url_with_marks": lambda arrival, _: raw_bytes(_with_marks(arrival.url)),
}
_OF_THE_URL = frozenset({"url", "path", "url_with_marks"})

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")

# Where the URL stands right before the body, part of a signed body could be passed off as more of the path.
# No URL has these characters unescaped, and no JSON object can do without them.
_NEVER_IN_URL = re.compile(r'[^!-~]|["<>\\{}]')

# HubSpot signs the URL with these decoded, and all others as they are.
_MARKS = re.compile(r"%(3A|2F|3F|40|21|24|27|28|29|2A|2C|3B)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Payload:
    """`parts`: what stands between fields, as it is, and fields by function."""

    template: str
    parts: tuple[bytes | _Part, ...]
    signs_url: bool

    def of(self, arrival: Arrival, claim: Claim) -> bytes | Refusal:
        if self.signs_url and _NEVER_IN_URL.search(arrival.url):
            detail = "The URL is part of the signature, and has characters that no URL has unescaped."
            return Refusal(RefusalReason.URL_MALFORMED, detail)
        return b"".join([part if isinstance(part, bytes) else part(arrival, claim) for part in self.parts])


def payload(template: str) -> Payload:
    """Raises KeyError for a field that there is not."""
    pieces = _PLACEHOLDER.split(template)
    texts, names = pieces[0::2], pieces[1::2]
    parts: list[bytes | _Part] = [texts[0].encode()]
    for name, text in zip(names, texts[1:], strict=True):
        parts += [_FIELDS[name], text.encode()]
    kept = tuple(part for part in parts if part)
    return Payload(template, kept, not _OF_THE_URL.isdisjoint(names))


def fields_of(template: str) -> list[str] | None:
    """The names in a template, known or not; None if a brace is left over."""
    if "{" in (rest := _PLACEHOLDER.sub("", template)) or "}" in rest:
        return None
    return _PLACEHOLDER.findall(template)


def _path_of(url: str) -> str:
    """As the provider calls it, whatever part of that is our own."""
    _, slash, rest = url.partition("?")[0].partition("://")[2].partition("/")
    return slash + rest


def _with_marks(url: str) -> str:
    return _MARKS.sub(lambda match: chr(int(match[1], 16)), url)
