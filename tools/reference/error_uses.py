"""Where the source makes an error, and with which code: read from syntax trees, so that none is forgotten.

A code counts when it is written out: as an argument (either side of an `if` too), in `super().__init__` of an
error class, in a table called `…CODES`, or assigned to `code`; or when it is a member of an enum of codes.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

CODE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


@dataclass(frozen=True, order=True)
class Use:
    code: str
    made_as: str
    """The class that carries it."""
    message: str
    area: str


@dataclass(frozen=True)
class Carrier:
    """A class that takes a code: where it stands among the arguments, and where the text for people does."""

    name: str
    parameters: tuple[str, ...]
    default_code: str | None

    @property
    def takes_code(self) -> bool:
        return "code" in self.parameters


def carrier(kind: type) -> Carrier:
    parameters = inspect.signature(kind).parameters
    default = parameters["code"].default if "code" in parameters else None
    return Carrier(kind.__name__, tuple(parameters), default if isinstance(default, str) else None)


def uses_in(tree: ast.AST, area: str, carriers: Mapping[str, Carrier]) -> Iterator[Use]:
    assigned = _assigned_codes(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (made := carriers.get(_name(node.func))):
            yield from _from_call(node, made, area, assigned.get(node, []))
        elif isinstance(node, ast.ClassDef) and node.name in carriers:
            yield from _from_constructor(node, area)


def members_in(tree: ast.AST, area: str, enums: Mapping[str, Mapping[str, str]]) -> Iterator[Use]:
    """Codes of enums: each member with its docstring, and each place that names one before its text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name in enums:
            yield from _documented_members(node, area, enums[node.name])
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _named_members(node, area, enums)


def _named_members(function: ast.AST, area: str, enums: Mapping[str, Mapping[str, str]]) -> Iterator[Use]:
    texts: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            texts[node.targets[0].id].append((node.lineno, _text(node.value)))
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            for argument, following in pairwise(node.args):
                for enum, code in _members(argument, enums):
                    yield Use(code, enum, _resolved(following, texts), area)


def _documented_members(enum: ast.ClassDef, area: str, members: Mapping[str, str]) -> Iterator[Use]:
    for statement, following in zip(enum.body, [*enum.body[1:], None], strict=True):
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            text = _text(following.value) if isinstance(following, ast.Expr) else ""
            yield Use(members[statement.targets[0].id], enum.name, text, area)


def _members(argument: ast.expr, enums: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, str]]:
    if isinstance(argument, ast.Attribute) and isinstance(argument.value, ast.Name):
        code = enums.get(argument.value.id, {}).get(argument.attr)
        if code is not None:
            yield argument.value.id, code


def _resolved(value: ast.expr, texts: Mapping[str, list[tuple[int, str]]]) -> str:
    """The text itself, or what the variable was last set to above."""
    if isinstance(value, ast.Name):
        above = [each for each in texts.get(value.id, []) if each[0] < value.lineno]
        return max(above)[1] if above else ""
    return _text(value)


def loose_codes_in(tree: ast.AST) -> Iterator[str]:
    """Codes in tables called `…CODES`, and those that a variable `code` may be."""
    for node in ast.walk(tree):
        targets = (
            node.targets
            if isinstance(node, ast.Assign)
            else [node.target]
            if isinstance(node, ast.AnnAssign)
            else []
        )
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        if value is not None and any(name == "code" or name.endswith("CODES") for name in names):
            parts = (part.value for part in ast.walk(value) if isinstance(part, ast.Constant))
            yield from (part for part in parts if isinstance(part, str) and CODE.fullmatch(part))


def _assigned_codes(tree: ast.AST) -> dict[ast.AST, list[str]]:
    """For every call: what a variable `code` may be in the function around it."""
    found: dict[ast.AST, list[str]] = {}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            codes = list(loose_codes_in(function))
            found |= {node: codes for node in ast.walk(function) if isinstance(node, ast.Call)}
    return found


def _from_call(call: ast.Call, made: Carrier, area: str, assigned: list[str]) -> Iterator[Use]:
    if not made.takes_code:
        return
    arguments = _arguments(call, made)
    codes = _literals(arguments["code"]) if "code" in arguments else [made.default_code or ""]
    if isinstance(arguments.get("code"), ast.Name):
        codes = assigned
    text = next((arguments[name] for name in ("message", "detail") if name in arguments), None)
    for code in codes:
        if code:
            yield Use(code, made.name, _text(text), area)


def _arguments(call: ast.Call, made: Carrier) -> dict[str, ast.expr]:
    given = dict(zip(made.parameters, call.args, strict=False))
    return given | {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}


def _from_constructor(definition: ast.ClassDef, area: str) -> Iterator[Use]:
    """`super().__init__("code", "message")`, as errors with one code of their own have it."""
    for node in ast.walk(definition):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "super().__init__" and node.args:
            for code in _literals(node.args[0]):
                yield Use(code, definition.name, _text(node.args[1] if len(node.args) > 1 else None), area)


def _name(called: ast.expr) -> str:
    return (
        called.id
        if isinstance(called, ast.Name)
        else called.attr
        if isinstance(called, ast.Attribute)
        else ""
    )


def _literals(value: ast.expr) -> list[str]:
    if isinstance(value, ast.IfExp):
        return _literals(value.body) + _literals(value.orelse)
    return [value.value] if isinstance(value, ast.Constant) and isinstance(value.value, str) else []


def _text(value: ast.expr | None) -> str:
    """The message, with `…` where something is filled in."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return value.value
    if isinstance(value, ast.JoinedStr):
        return "".join(_text(part) for part in value.values)
    if isinstance(value, ast.BinOp):
        return _text(value.left) + _text(value.right)
    if isinstance(value, ast.IfExp):
        return f"{_text(value.body)} / {_text(value.orelse)}"
    return "…" if value is not None else ""
