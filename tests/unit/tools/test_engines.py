from __future__ import annotations

from pathlib import Path

from tools.engines import Engine, start


def engine(*, program: str = "sh", fails: bool = False) -> Engine:
    def start_it(directory: Path) -> None:
        (directory / "left-behind").touch()
        if fails:
            raise RuntimeError("the disk is full")

    return Engine("it", lambda: (program,), "apt install it", start_it)


def test_an_engine_that_starts_is_no_trouble() -> None:
    assert start(engine()) is None


def test_an_engine_that_does_not_start_says_why() -> None:
    assert start(engine(fails=True)) == "the disk is full"


def test_an_engine_without_its_program_says_how_to_get_it() -> None:
    assert start(engine(program="no-such-program")) == "no no-such-program (apt install it)"
