from __future__ import annotations

import ast
from textwrap import dedent

from tests.architecture.source import functions, inner_imports, length, name_of, product_files

FILE_LINES_MAX = 399
FUNCTION_LINES_MAX = 49

# A name goes in here with its reason, or the file is split.
LONG_FILES_ALLOWED: frozenset[str] = frozenset()
LONG_FUNCTIONS_ALLOWED: frozenset[str] = frozenset()


def test_there_are_files_to_check() -> None:
    assert len(product_files()) > 30


def test_no_file_has_400_lines_or_more() -> None:
    lengths = {name_of(path): len(path.read_text().splitlines()) for path in product_files()}
    too_long = {name: lines for name, lines in lengths.items() if lines > FILE_LINES_MAX}
    assert too_long.keys() == LONG_FILES_ALLOWED, too_long


def test_no_function_has_50_lines_or_more() -> None:
    too_long = {
        f"{name_of(path)}:{function.name}": length(function)
        for path in product_files()
        for function in functions(ast.parse(path.read_text()))
        if length(function) > FUNCTION_LINES_MAX
    }
    assert too_long.keys() == LONG_FUNCTIONS_ALLOWED, too_long


def test_nothing_is_imported_inside_a_function() -> None:
    found = {
        name_of(path): lines
        for path in product_files()
        if (lines := inner_imports(ast.parse(path.read_text())))
    }
    assert not found


def test_the_length_of_a_function_runs_from_def_to_its_last_line() -> None:
    source = """
        @decorated
        async def long(
            self,
        ):
            def inner():
                pass

            return (
                inner
            )
    """
    assert {f.name: length(f) for f in functions(ast.parse(dedent(source)))} == {"long": 9, "inner": 2}


def test_imports_inside_functions_are_seen_however_deep() -> None:
    source = """
        import outside
        class C:
            import at_class_level
            def method(self):
                if self:
                    from somewhere import something
    """
    assert inner_imports(ast.parse(dedent(source))) == [7]
