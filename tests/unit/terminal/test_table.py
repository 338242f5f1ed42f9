from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.terminal.table import cell_text, columns_of, cut, table


def test_columns_are_aligned_and_numbers_stand_to_the_right() -> None:
    rows: list[list[object]] = [["AA:BB", "north roof", 5], ["CC:DD", None, 1200]]
    assert table(rows, ["ID", "NAME", "READINGS"]).splitlines() == [
        "ID     NAME        READINGS",
        "AA:BB  north roof         5",
        "CC:DD  -               1200",
    ]


def test_a_table_without_rows_is_its_headers() -> None:
    assert table([], ["ID", "NAME"]) == "ID  NAME"


def test_a_row_with_too_few_cells_is_refused() -> None:
    with pytest.raises(ValueError, match="1 cells for 2 headers"):
        table([["a"]], ["A", "B"])


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (None, "-"),
        ("", "-"),
        (True, "yes"),
        (False, "no"),
        (0, "0"),
        (1.5, "1.5"),
        (["a", "b"], "a, b"),
        ([], "-"),
        ("two\nlines", "two\\nlines"),
        ("\x1b[31mred", "\\x1b[31mred"),
    ],
)
def test_a_cell_is_one_line_of_printable_text(cell: object, text: str) -> None:
    assert cell_text(cell) == text


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("\u65e5\u672c", 4), ("e\u0301", 1), ("", 0)])
def test_wide_and_combining_characters_take_the_columns_they_take(text: str, columns: int) -> None:
    assert columns_of(text) == columns


def test_wide_characters_keep_the_columns_aligned() -> None:
    lines = table([["\u65e5\u672c", "x"], ["abcdef", "y"]], ["NAME", "Z"]).splitlines()
    assert {columns_of(line) for line in lines} == {9}


def test_the_widest_column_is_cut_until_a_line_fits() -> None:
    lines = table([["short", "x" * 50]], ["ID", "TEXT"], width=20).splitlines()
    assert lines == ["ID     TEXT", "short  " + "x" * 12 + "…"]


CELLS = st.none() | st.booleans() | st.integers() | st.text(max_size=30)


@given(st.integers(1, 5).flatmap(lambda n: st.lists(st.lists(CELLS, min_size=n, max_size=n), min_size=1)))
def test_any_rows_make_a_line_each_and_lose_nothing_without_a_width(rows: list[list[object]]) -> None:
    headers = [f"H{position}" for position in range(len(rows[0]))]
    lines = table(rows, headers).split("\n")
    assert len(lines) == len(rows) + 1
    for line, row in zip(lines[1:], rows, strict=True):
        assert all(cell_text(cell).rstrip() in line for cell in row)


@given(st.lists(st.lists(CELLS, min_size=4, max_size=4), max_size=6), st.integers(30, 120))
def test_any_rows_fit_a_terminal_that_has_room_for_the_narrowest(
    rows: list[list[object]], width: int
) -> None:
    for line in table(rows, ["A", "B", "C", "D"], width).split("\n"):
        assert columns_of(line) <= width


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(1, 40))
def test_a_cut_text_fits_and_says_it_was_cut(text: str, width: int) -> None:
    shown = cut(text, width)
    assert columns_of(shown) <= width
    assert shown == text or shown.endswith("…")
