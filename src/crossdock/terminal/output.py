"""What a command prints: tables and values for people, or the same as JSON with `--json`.

Results go to stdout and nothing else does; notes, progress and errors go to stderr. So `crossdock ... --json`
can be piped into a program, and a list without `--json` into `grep`, with nothing cut and no colours in it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

import msgspec

from crossdock.kit.clock import Clock
from crossdock.terminal.progress import Progress
from crossdock.terminal.table import cell_text, table

_COLOURS = {"green": "32", "red": "31", "yellow": "33", "dim": "2", "bold": "1"}


def wants_colours(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Only on a terminal that knows them, and where nobody said no (https://no-color.org)."""
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


@dataclass(frozen=True, slots=True)
class Output:
    stdout: TextIO
    stderr: TextIO
    as_json: bool
    colours: bool
    width: int | None
    """Columns of the terminal; None: not a terminal, so nothing is cut."""

    @classmethod
    def of_process(
        cls, stdout: TextIO, stderr: TextIO, environ: Mapping[str, str], *, as_json: bool = False
    ) -> Output:
        """As the streams and the environment ask for."""
        width = shutil.get_terminal_size().columns if stdout.isatty() else None
        return cls(stdout, stderr, as_json, wants_colours(stdout, environ) and not as_json, width)

    def entries(self, entries: Sequence[Mapping[str, object]], columns: Sequence[str]) -> None:
        """A list: these columns as a table, or the whole entries as JSON."""
        if self.as_json:
            self._json(list(entries))
            return
        headers = [name.replace("_", " ").upper() for name in columns]
        self.rows([[entry.get(name) for name in columns] for entry in entries], headers)

    def rows(
        self,
        rows: Sequence[Sequence[object]],
        headers: Sequence[str],
        *,
        colour_of: Callable[[Sequence[object]], str | None] = lambda row: None,
    ) -> None:
        """A table, each line in its row's colour; as JSON, objects with the headers as names."""
        if self.as_json:
            self._json([dict(zip(map(_name, headers), row, strict=True)) for row in rows])
        else:
            first, *rest = table(rows, headers, self.width).split("\n")
            self._line(self.paint(first, "bold"))
            for line, row in zip(rest, rows, strict=True):
                colour = colour_of(row)
                self._line(line if colour is None else self.paint(line, colour))

    def value(self, value: Mapping[str, object]) -> None:
        """One thing, an attribute a line."""
        if self.as_json:
            self._json(value)
            return
        width = max(map(len, value), default=0)
        for name, each in value.items():
            self._line(f"{self.paint(name.ljust(width), 'dim')}  {cell_text(each)}")

    def note(self, text: str) -> None:
        """Said to the person, kept out of the result."""
        self.stderr.write(text + "\n")
        self.stderr.flush()

    def progress(self, label: str, clock: Clock, total: int | None = None) -> Progress:
        return Progress(label, self.stderr, clock, total=total)

    def paint(self, text: str, colour: str) -> str:
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if self.colours else text

    def _line(self, text: str) -> None:
        self.stdout.write(text + "\n")

    def _json(self, value: object) -> None:
        self._line(msgspec.json.format(msgspec.json.encode(value)).decode())


def _name(header: str) -> str:
    return header.lower().replace(" ", "_")
