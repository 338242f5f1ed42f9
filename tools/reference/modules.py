"""Every module of the package, imported: importing does nothing, so this is only a way to look at it."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import crossdock

T = TypeVar("T")

PACKAGE_DIRECTORY = Path(crossdock.__file__).parent


def all_modules() -> list[ModuleType]:
    names = (found.name for found in pkgutil.walk_packages(crossdock.__path__, "crossdock."))
    return [importlib.import_module(name) for name in sorted(names) if not name.endswith("__main__")]


def instances(kind: type[T]) -> Iterator[tuple[ModuleType, T]]:
    """Every value of this type, with the module that makes it: those that only import it don't count."""
    for module in all_modules():
        for name in _assigned_names(module):
            value = vars(module).get(name)
            if isinstance(value, kind):
                yield module, value


def _assigned_names(module: ModuleType) -> Iterator[str]:
    assert module.__file__ is not None
    for statement in ast.parse(Path(module.__file__).read_text(encoding="utf-8")).body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        yield from (target.id for target in targets if isinstance(target, ast.Name))
