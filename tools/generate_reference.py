"""Writes docs/reference from the code: `make reference`. A test compares the two."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tools.reference.cli import cli_page
from tools.reference.data_model import data_model_page
from tools.reference.errors import errors_page
from tools.reference.settings import settings_page

DIRECTORY = Path(__file__).resolve().parent.parent / "docs" / "reference"

PAGES: dict[str, Callable[[], str]] = {
    "settings.md": settings_page,
    "cli.md": cli_page,
    "errors.md": errors_page,
    "data-model.md": data_model_page,
}


def main() -> None:
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    for name, render in PAGES.items():
        (DIRECTORY / name).write_text(render(), encoding="utf-8")
        print(f"docs/reference/{name}")


if __name__ == "__main__":
    main()
