"""Times as people type them on a command line."""

from __future__ import annotations

import re

import click

from crossdock.kit.clock import Clock, ms_from_rfc3339

_AGO = re.compile(r"-(\d{1,9})([smhd])")
_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

FORMS = "2024-01-15T10:30:00Z, milliseconds since 1970, or back from now: -90s, -15m, -24h, -7d"


def parse_moment(text: str, now_ms: int) -> int:
    """Milliseconds since 1970. Raises ValueError saying what a moment may look like."""
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return max(0, now_ms - int(ago[1]) * _UNIT_MS[ago[2]])
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        return ms_from_rfc3339(text)
    except ValueError:
        raise ValueError(f"{text!r} is no time; write {FORMS}") from None


def moment(option: str, text: str | None, clock: Clock) -> int | None:
    """An option's value; wrong usage if it is no moment."""
    if text is None:
        return None
    try:
        return parse_moment(text, clock.now_ms())
    except ValueError as error:
        raise click.BadParameter(f"{error}.", param_hint=option) from error
