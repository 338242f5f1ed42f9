"""What an outgoing call may look like, and what a redirect makes of it. Pure."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from ipaddress import ip_address
from typing import TypeAlias

from multidict import CIMultiDict
from yarl import URL

from crossdock.kit.egress import Address
from crossdock.kit.errors import FieldProblem, InvalidInput

URL_CHARACTERS_MAX = 8192
REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})

Body: TypeAlias = bytes | AsyncIterator[bytes] | None

# Parsers disagree about backslashes and blanks in a URL, and attackers live on that.
_CONFUSING = re.compile(r"[\s\\\x00-\x20\x7f]")
_METHOD = re.compile(r"[A-Z]{1,20}")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE_FORBIDDEN = re.compile(r"[\r\n\0]")

# Another origin gets none of the caller's headers but these: a key may be in any of them.
_HEADERS_FOR_ANYONE = frozenset({"accept", "accept-encoding", "accept-language", "user-agent"})
_HEADERS_OF_A_BODY = frozenset({"content-type", "content-length", "content-encoding", "transfer-encoding"})


@dataclass(frozen=True, slots=True)
class Call:
    method: str
    url: URL
    headers: CIMultiDict[str]
    body: Body

    @classmethod
    def make(cls, method: str, url: URL, headers: Mapping[str, str] | None, body: Body) -> Call:
        if not _METHOD.fullmatch(method):
            raise _invalid("method", "invalid_method", "A method is a word in capitals, like POST.")
        checked: CIMultiDict[str] = CIMultiDict()
        for name, value in (headers or {}).items():
            if not _HEADER_NAME.fullmatch(name) or _HEADER_VALUE_FORBIDDEN.search(value):
                raise _invalid("headers", "invalid_header", f"The header {name!r} can't be sent.")
            checked.add(name, value)
        return cls(method, url, checked, body)


def check_url(text: str) -> URL:
    """A URL that may be called as far as its form goes. Raises InvalidInput."""
    if len(text) > URL_CHARACTERS_MAX or _CONFUSING.search(text):
        raise _invalid_url(
            f"A URL has at most {URL_CHARACTERS_MAX} characters, no blanks and no backslashes."
        )
    try:
        url = URL(text)
        host, port = url.host, url.port
    except ValueError as error:
        raise _invalid_url("The URL can't be read.") from error
    if url.scheme not in ("http", "https"):
        raise _invalid_url("The URL must start with http:// or https://.")
    if not host or (host.replace(".", "").isdigit() and literal_address(host) is None):
        raise _invalid_url("The URL needs a host: a name, or an address like 192.0.2.1 or [2001:db8::1].")
    if url.user is not None or url.password is not None:
        raise _invalid_url("Put credentials in a header, not in the URL.")
    if port is None or not 1 <= port <= 65535:
        raise _invalid_url("The port must be from 1 to 65535.")
    return url.with_fragment(None)


@lru_cache(maxsize=4096)  # asked for every call, mostly of the same few hosts
def literal_address(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def follow(call: Call, status: int, location: str) -> Call:
    """The call that a redirect asks for. Raises InvalidInput when it can't be made."""
    try:
        target = call.url.join(URL(location))
    except ValueError as error:
        raise _invalid_url("The redirect's Location can't be read.") from error
    url = check_url(str(target))
    drops_body = status == 303 or (status in (301, 302) and call.method == "POST")
    if drops_body:
        method = "HEAD" if call.method == "HEAD" else "GET"
        kept = _without(call.headers, _HEADERS_OF_A_BODY)
        followed = replace(call, method=method, url=url, headers=kept, body=None)
    elif isinstance(call.body, bytes | None):
        followed = replace(call, url=url)
    else:
        raise _invalid_url("The redirect wants the body again, which was streamed.")
    if url.origin() == call.url.origin():
        return followed
    names = {name.lower() for name in followed.headers}
    dropped = names - _HEADERS_FOR_ANYONE - (_HEADERS_OF_A_BODY if followed.body is not None else frozenset())
    return replace(followed, headers=_without(followed.headers, dropped))


def _without(headers: CIMultiDict[str], names: frozenset[str] | set[str]) -> CIMultiDict[str]:
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in names)


def _invalid_url(detail: str) -> InvalidInput:
    return _invalid("url", "invalid_url", detail)


def _invalid(field: str, code: str, detail: str) -> InvalidInput:
    return InvalidInput(detail, FieldProblem(field, code, detail), code=code)
