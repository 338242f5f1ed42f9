"""Plain aligned tables, pure: what a list looks like to a person."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

GAP = "  "
_COLUMN_WIDTH_MIN = 6


def table(rows: Sequence[Sequence[object]], headers: Sequence[str], width: int | None = None) -> str:
    """Lines with columns aligned, numbers to the right. None shows as `-`.

    With `width`, the widest columns are cut (with an ellipsis) until a line fits; without, nothing is cut.
    """
    texts = [[cell_text(cell) for cell in row] for row in rows]
    for row in texts:
        if len(row) != len(headers):
            raise ValueError(f"a row has {len(row)} cells for {len(headers)} headers")
    widths = [max(map(columns_of, column)) for column in zip(headers, *texts, strict=True)]
    if width is not None:
        widths = _fitted(widths, width)
    to_the_right = [
        bool(rows) and all(_is_number(row[position]) or row[position] is None for row in rows)
        for position in range(len(headers))
    ]
    return "\n".join(_line(cells, widths, to_the_right) for cells in (headers, *texts))


def cell_text(cell: object) -> str:
    """One line without control characters: what is shown may come from anybody."""
    if cell is None:
        return "-"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, (list, tuple)):
        return ", ".join(map(cell_text, cell)) or "-"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(cell)) or "-"


def columns_of(text: str) -> int:
    """How many columns of a terminal the text takes."""
    return sum(map(_columns_of_character, text))


def cut(text: str, width: int) -> str:
    if columns_of(text) <= width:
        return text
    kept, used = "", 0
    for character in text:
        used += _columns_of_character(character)
        if used > width - 1:
            break
        kept += character
    return kept + "…"


def _columns_of_character(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _is_number(cell: object) -> bool:
    return isinstance(cell, (int, float)) and not isinstance(cell, bool)


def _fitted(widths: Sequence[int], width: int) -> list[int]:
    """Take from the widest column until a line fits, or none can give any more."""
    fitted = list(widths)
    room = width - len(GAP) * (len(widths) - 1)
    while sum(fitted) > room and max(fitted) > _COLUMN_WIDTH_MIN:
        fitted[fitted.index(max(fitted))] -= 1
    return fitted


def _line(cells: Sequence[str], widths: Sequence[int], to_the_right: Sequence[bool]) -> str:
    padded: list[str] = []
    for text, width, right in zip(cells, widths, to_the_right, strict=True):
        shown = cut(text, width)
        blank = " " * (width - columns_of(shown))
        padded.append(blank + shown if right else shown + blank)
    return GAP.join(padded).rstrip()
