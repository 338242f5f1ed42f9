"""A kept event as the request that it was, sent once more to a developer's own machine. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote, urlsplit, urlunsplit

from crossdock.hooks.rules.outbound import REDACTED

_NOT_FORWARDED = frozenset(
    {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "expect"}
    | {"host", "content-length", "proxy-authorization", "proxy-connection"}
)
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# http.client refuses a line break, and encodes nothing that has no bytes.
_UNSENDABLE = re.compile("[\x00\r\n\ud800-\udfff]")

_PATH_SAFE = "/:@!$&'()*+,;=~"
_QUERY_SAFE = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) != "#")


def target_url(base: str, path: str, query: str) -> str:
    """`path` comes below the base's own, `query` after its own. `path` is unquoted, `query` as it came."""
    parts = urlsplit(base)
    below = quote(path.encode("utf-8", "replace"), safe=_PATH_SAFE)
    whole_path = (parts.path.rstrip("/") + below) if below else parts.path
    own_query = quote(query.encode("latin-1", "replace"), safe=_QUERY_SAFE)
    whole_query = "&".join(each for each in (parts.query, own_query) if each)
    return urlunsplit((parts.scheme, parts.netloc, whole_path or "/", whole_query, ""))


def forwarded_headers(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Without what belonged to the connection that it came by, and credentials, which were not kept."""
    given = [(name, value) for name, value in headers]
    named = {
        token.strip().lower()
        for name, value in given
        if name.lower() == "connection"
        for token in value.split(",")
    }
    return [
        (name, value)
        for name, value in given
        if name.lower() not in _NOT_FORWARDED
        and name.lower() not in named
        and value != REDACTED
        and _NAME.fullmatch(name)
        and not _UNSENDABLE.search(value)
    ]


def is_below(path: str, prefix: str) -> bool:
    """Whether a path is the one that is meant, or one below it: `/orders/1` is below `/orders`."""
    wanted = "/" + prefix.strip("/")
    return wanted in ("/", path) or path.startswith(wanted + "/")
