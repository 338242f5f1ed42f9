from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.hooks.rules.paths import MISSING, PathProblem, decode_document, look_up, parse_path

DOCUMENT = {
    "a": {"b": {"c": 1}},
    "items": [{"id": "x"}, {"id": "y", "tags": [["t"]]}],
    "0": "zero",
    "dot.ted": {"back\\slash": 2},
    "null": None,
    " ": "blank",
    "Zoë": "🦊",
}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a", ["a"]),
        ("a.b.c", ["a", "b", "c"]),
        ("a\\.b", ["a.b"]),
        ("a\\\\.b", ["a\\", "b"]),
        ("a\\b", ["a\\b"]),
        ("a\\", ["a\\"]),
        ("\\.", ["."]),
        ("\\\\", ["\\"]),
        ("a.\\.", ["a", "."]),
        (" ", [" "]),
        ("a b.Zoë", ["a b", "Zoë"]),
        ("a\nb.c", ["a\nb", "c"]),
        ("items.0", ["items", "0"]),
        (".".join(["a"] * 32), ["a"] * 32),
    ],
)
def test_a_path_is_names_between_dots(text: str, names: list[str]) -> None:
    path = parse_path(text)
    assert [part.name for part in path.parts] == names
    assert path.text == text


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", ".".join(["a"] * 33), "a" * 1_025])
def test_a_path_with_nothing_between_dots_or_too_long_is_none(text: str) -> None:
    with pytest.raises(PathProblem):
        parse_path(text)


@pytest.mark.parametrize(
    ("text", "index"),
    [("0", 0), ("7", 7), ("12", 12), ("01", None), ("-1", None), ("1.0", 1), ("٣", None), ("9" * 10, None)],
)
def test_a_part_that_is_a_number_is_an_index(text: str, index: int | None) -> None:
    assert parse_path(text).parts[0].index == index


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a.b.c", 1),
        ("a.b", {"c": 1}),
        ("a.c", MISSING),
        ("a.b.c.d", MISSING),
        ("items.0.id", "x"),
        ("items.1.tags.0.0", "t"),
        ("items.2", MISSING),
        ("items.id", MISSING),
        ("items.-1", MISSING),
        ("items.00", MISSING),
        ("0", "zero"),
        ("a.0", MISSING),
        ("dot\\.ted.back\\slash", 2),
        ("dot.ted", MISSING),
        ("null", None),
        ("null.a", MISSING),
        (" ", "blank"),
        ("Zoë", "🦊"),
        ("Zoë.0", MISSING),
    ],
)
def test_looking_up_finds_the_value_or_that_it_is_missing(text: str, value: Any) -> None:
    assert look_up(DOCUMENT, parse_path(text)) == value


@given(st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=5))
def test_any_names_can_be_written_as_a_path(names: list[str]) -> None:
    text = ".".join(name.replace("\\", "\\\\").replace(".", "\\.") for name in names)
    path = parse_path(text)
    assert [part.name for part in path.parts] == names
    assert path.upto(len(names)) == text


@pytest.mark.parametrize(
    "body", [b"", b"{", b"{} {}", b"[NaN]", b"[1e999]", b"\xff", b'"\\ud800"', b"[" * 100_000, b"9" * 5_000]
)
def test_what_is_no_json_has_no_document(body: bytes) -> None:
    assert decode_document(body) is MISSING


def test_a_byte_order_mark_is_no_part_of_the_document() -> None:
    assert decode_document(b'\xef\xbb\xbf{"a": null}') == {"a": None}
    assert decode_document(b"null") is None
