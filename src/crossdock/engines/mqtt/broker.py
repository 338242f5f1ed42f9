"""Where a broker is and who we are there, from a URL: `mqtts://user:password@broker.example:8883`."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

PORTS = {"mqtt": 1883, "mqtts": 8883}

MUST_BE = "must be a URL like mqtt://host, or with TLS mqtts://user:password@host:port, with nothing after it"


@dataclass(frozen=True, slots=True)
class Broker:
    host: str
    port: int
    tls: bool
    username: str | None = None
    password: str | None = field(default=None, repr=False)

    @property
    def label(self) -> str:
        """For logs and messages: without user and password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'mqtts' if self.tls else 'mqtt'}://{host}:{self.port}"


def parse_broker(url: str) -> Broker:
    """Raises ValueError, whose text never has a part of the URL in it: that may be a part of the password."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError(MUST_BE) from None
    if not url.isprintable() or " " in url or port == 0 or not _is_whole(parts):
        raise ValueError(MUST_BE)
    assert parts.hostname is not None
    return Broker(
        host=parts.hostname,
        port=port or PORTS[parts.scheme],
        tls=parts.scheme == "mqtts",
        username=_unquoted(parts.username),
        password=_unquoted(parts.password),
    )


def check_broker(url: str) -> None:
    """For a setting."""
    parse_broker(url)


def _is_whole(parts: SplitResult) -> bool:
    nothing_after = parts.path in ("", "/") and not parts.query and not parts.fragment
    return parts.scheme in PORTS and bool(parts.hostname) and nothing_after


def _unquoted(text: str | None) -> str | None:
    return None if text is None else unquote(text)
