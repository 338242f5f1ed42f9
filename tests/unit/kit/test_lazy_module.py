from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crossdock.kit.lazy_module import lazy_module


@pytest.fixture
def package(tmp_path: Path) -> Iterator[Path]:
    """A package whose module `heavy` leaves a mark when its code runs."""
    directory = tmp_path / "lazily_read"
    directory.mkdir()
    (directory / "__init__.py").write_text("")
    mark = tmp_path / "mark"
    code = f"with open({str(mark)!r}, 'a') as file:\n    file.write('x')\nvalue = 42\n"
    (directory / "heavy.py").write_text(code)
    sys.path.insert(0, str(tmp_path))
    yield mark
    sys.path.remove(str(tmp_path))
    for name in [name for name in sys.modules if name.startswith("lazily_read")]:
        del sys.modules[name]


def test_a_module_is_read_when_it_is_first_used_and_once(package: Path) -> None:
    heavy = lazy_module("lazily_read.heavy")
    assert not package.exists()
    assert heavy.value == 42
    assert heavy.value == 42
    assert package.read_text() == "x"


def test_a_module_that_is_there_already_is_the_same(package: Path) -> None:
    first = lazy_module("lazily_read.heavy")
    assert lazy_module("lazily_read.heavy") is first
    assert not package.exists()


@pytest.mark.usefixtures("package")
def test_a_module_that_there_is_not_is_said_at_once() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"lazily_read\.missing"):
        lazy_module("lazily_read.missing")
