"""How far along a long command is: one line that rewrites itself on a terminal, some lines in a pipe."""

from __future__ import annotations

from types import TracebackType
from typing import Self, TextIO

from crossdock.kit.clock import Clock

_EVERY_SECONDS_ON_A_TERMINAL = 0.1
_EVERY_SECONDS_IN_A_PIPE = 10.0
_CLEAR_LINE = "\r\x1b[K"


class Progress:
    """Used in a `with`; the last state is left on the screen, also when the work failed."""

    def __init__(self, label: str, stream: TextIO, clock: Clock, *, total: int | None = None) -> None:
        self._label = label
        self._stream = stream
        self._clock = clock
        self._total = total
        self._done = 0
        self._rewrites = stream.isatty()
        self._every_seconds = _EVERY_SECONDS_ON_A_TERMINAL if self._rewrites else _EVERY_SECONDS_IN_A_PIPE
        self._began_at = self._shown_at = clock.monotonic()

    def advance(self, count: int = 1) -> None:
        self._done += count
        if self._clock.monotonic() - self._shown_at >= self._every_seconds:
            self._show()

    def __enter__(self) -> Self:
        if self._rewrites:
            self._show()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._show()
        if self._rewrites:
            self._stream.write("\n")
            self._stream.flush()

    def _show(self) -> None:
        self._shown_at = self._clock.monotonic()
        text = progress_text(self._label, self._done, self._total, self._shown_at - self._began_at)
        self._stream.write(_CLEAR_LINE + text if self._rewrites else text + "\n")
        self._stream.flush()


def progress_text(label: str, done: int, total: int | None, seconds: float) -> str:
    """`Importing: 1,200 of 5,000 (24%), 600/s, 6 s left`"""
    rate = done / seconds if seconds > 0 else 0.0
    parts = [f"{done:,}"]
    if total is not None:
        share = f" ({100 * done // total}%)" if total else ""
        parts = [f"{done:,} of {total:,}{share}"]
    if rate:
        parts.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s")
        if total is not None and done < total:
            parts.append(f"{(total - done) / rate:,.0f} s left")
    return f"{label}: {', '.join(parts)}"
