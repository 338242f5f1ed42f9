"""The repository as text and as syntax trees, for tests of its shape."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ROOT / "src"

Function = ast.FunctionDef | ast.AsyncFunctionDef


def product_files() -> list[Path]:
    return sorted(PRODUCT.rglob("*.py"))


def repository_files() -> list[Path]:
    """What is, or with the next commit would be, in the repository: not what git ignores."""
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    return [path for name in sorted(listed.split("\0")) if name and (path := ROOT / name).is_file()]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def length(function: Function) -> int:
    """Lines from `def` to the end, decorators left out."""
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1


def inner_imports(tree: ast.AST) -> list[int]:
    """The lines of imports inside functions."""
    return sorted(
        {
            node.lineno
            for function in functions(tree)
            for node in ast.walk(function)
            if isinstance(node, ast.Import | ast.ImportFrom)
        }
    )
