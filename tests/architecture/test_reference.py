from __future__ import annotations

import ast

import pytest
from tests.architecture.source import ROOT
from tools.generate_reference import DIRECTORY, PAGES
from tools.reference.error_uses import Use, carrier, loose_codes_in, members_in, uses_in

from crossdock.kit.errors import FieldProblem, InvalidInput, NotFound


@pytest.mark.parametrize("name", PAGES)
def test_a_reference_page_says_what_the_code_says(name: str) -> None:
    assert (DIRECTORY / name).read_text(encoding="utf-8") == PAGES[name](), "run: make reference"


def test_nothing_else_is_in_the_directory_of_generated_pages() -> None:
    assert {path.name for path in DIRECTORY.iterdir()} == PAGES.keys(), f"in {DIRECTORY.relative_to(ROOT)}"


class TeapotError(NotFound):
    def __init__(self) -> None:
        super().__init__("teapot", "I am a teapot.")


CARRIERS = {kind.__name__: carrier(kind) for kind in (NotFound, InvalidInput, FieldProblem, TeapotError)}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("NotFound('gone', 'It is gone.')", [("gone", "NotFound", "It is gone.")]),
        ("errors.NotFound(code='gone', message=f'{name} is gone.')", [("gone", "NotFound", "… is gone.")]),
        (
            "NotFound('gone' if x else 'hidden', text)",
            [("gone", "NotFound", "…"), ("hidden", "NotFound", "…")],
        ),
        ("InvalidInput('Wrong.', problem)", [("invalid_input", "InvalidInput", "Wrong.")]),
        ("InvalidInput('Wrong.', code='bad')", [("bad", "InvalidInput", "Wrong.")]),
        ("FieldProblem('limit', 'too_low', 'Ask for more.')", [("too_low", "FieldProblem", "Ask for more.")]),
        (
            "class TeapotError(NotFound):\n def __init__(self): super().__init__('teapot', 'Tea.')",
            [("teapot", "TeapotError", "Tea.")],
        ),
        (
            "def f():\n code = 'a_b' if x else 'c'\n raise NotFound(code, 'Gone.')",
            [("a_b", "NotFound", "Gone."), ("c", "NotFound", "Gone.")],
        ),
        ("TeapotError()", []),
        ("NotFound(code, 'Which?')", []),
        ("Other('gone', 'no error')", []),
    ],
)
def test_codes_are_found_where_errors_are_made(source: str, expected: list[tuple[str, str, str]]) -> None:
    assert list(uses_in(ast.parse(source), "area", CARRIERS)) == [Use(*each, "area") for each in expected]


def test_members_of_enums_of_codes_come_with_the_texts_beside_them() -> None:
    source = """
class RejectionCode(StrEnum):
    EXPIRED = "expired"
    '''Too old.'''
    LATE = "late"

def judge(item):
    if item.late:
        detail = "It is late."
        return reject(item, RejectionCode.LATE, detail)
    return reject(item, RejectionCode.EXPIRED, "It is old.")
"""
    enums = {"RejectionCode": {"EXPIRED": "expired", "LATE": "late"}}
    assert set(members_in(ast.parse(source), "area", enums)) == {
        Use("expired", "RejectionCode", "Too old.", "area"),
        Use("expired", "RejectionCode", "It is old.", "area"),
        Use("late", "RejectionCode", "", "area"),
        Use("late", "RejectionCode", "It is late.", "area"),
    }


def test_codes_in_tables_and_variables_are_found() -> None:
    source = "_CODES = ((re.compile('Not A Code'), 'wrong_type'),)\ncode = next(found, 'other')\nname = 'x'"
    assert list(loose_codes_in(ast.parse(source))) == ["wrong_type", "other"]
