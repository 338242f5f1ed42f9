"""Changing a JSON document at dotted paths.

What is given is never changed: the containers along a path are copied, the rest is shared. So a value may
stand at several places at once, and a document in which nothing was changed is the very same object.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from crossdock.hooks.rules.paths import MISSING, Part, Path, part
from crossdock.hooks.rules.transform_work import StepFailed, Work

PathTree: TypeAlias = dict[str, "PathTree | None"]
"""What to keep, by name: all that is there (None), or what the tree below names."""


def put(document: Any, path: Path, value: Any, work: Work) -> Any:
    """Makes objects where there is nothing or null, and adds to an array at the index after its last."""
    return _put(document, path, 0, value, work)


def _put(holder: Any, path: Path, depth: int, value: Any, work: Work) -> Any:
    if depth == len(path.parts):
        return value
    if isinstance(holder, list):
        return _put_into_array(holder, path, depth, value, work)
    if holder is MISSING or holder is None:
        holder = {}
    if not isinstance(holder, dict):
        raise StepFailed(f"{path.upto(depth)} is {kind_of(holder)}, so there can be no {path.text}.")
    work.copy(len(holder))
    name = path.parts[depth].name
    return {**holder, name: _put(holder.get(name, MISSING), path, depth + 1, value, work)}


def _put_into_array(array: list[Any], path: Path, depth: int, value: Any, work: Work) -> list[Any]:
    index = path.parts[depth].index
    if index is None or index > len(array):
        place = path.upto(depth + 1)
        raise StepFailed(f"{path.upto(depth)} is an array of {len(array)}, so there can be no {place}.")
    work.copy(len(array))
    before = array[index] if index < len(array) else MISSING
    return [*array[:index], _put(before, path, depth + 1, value, work), *array[index + 1 :]]


def take_out(document: Any, path: Path, work: Work) -> Any:
    """Without what is at the path, if anything; what follows in an array moves up."""
    return _take_out(document, path, 0, work)


def _take_out(holder: Any, path: Path, depth: int, work: Work) -> Any:
    key = _key_in(holder, path.parts[depth])
    if key is None:
        return holder
    is_last = depth + 1 == len(path.parts)
    inner = MISSING if is_last else _take_out(holder[key], path, depth + 1, work)
    if inner is holder[key]:
        return holder
    work.copy(len(holder))
    changed = holder.copy()
    if is_last:
        del changed[key]
    else:
        changed[key] = inner
    return changed


def rename(document: Any, path: Path, name: str, work: Work) -> Any:
    """What is at the path (it must be there) gets another name in its object, and keeps its place in it."""
    return _rename(document, path, 0, name, work)


def _rename(holder: Any, path: Path, depth: int, name: str, work: Work) -> Any:
    work.copy(len(holder))
    old = path.parts[depth]
    if depth + 1 < len(path.parts):
        changed = holder.copy()
        key = _key_in(holder, old)
        changed[key] = _rename(holder[key], path, depth + 1, name, work)
        return changed
    if not isinstance(holder, dict):
        raise StepFailed(f"{path.text} is in an array, where nothing has a name.")
    kept = ((key, value) for key, value in holder.items() if key == old.name or key != name)
    return {name if key == old.name else key: value for key, value in kept}


def tree_of(paths: Iterable[Path]) -> PathTree:
    tree: PathTree = {}
    for path in paths:
        node = tree
        for step in path.parts[:-1]:
            below = node.setdefault(step.name, {})
            if below is None:
                break
            node = below
        else:
            node[path.parts[-1].name] = None
    return tree


def pick(document: Any, tree: PathTree, work: Work) -> Any:
    """Only what the tree names, in the order of the document; arrays close up."""
    if not isinstance(document, dict | list):
        raise StepFailed(f"The body is {kind_of(document)}, with nothing in it to pick.")
    picked = _pick(document, tree, work)
    return type(document)() if picked is MISSING else picked


def _pick(value: Any, tree: PathTree | None, work: Work) -> Any:
    """MISSING if nothing that is named is in it."""
    if tree is None:
        return value
    if isinstance(value, dict):
        work.copy(len(value))
        found = {name: _pick(inner, tree[name], work) for name, inner in value.items() if name in tree}
        return {name: inner for name, inner in found.items() if inner is not MISSING} or MISSING
    if isinstance(value, list):
        work.spend(1 + len(tree))
        named = {part(name).index: below for name, below in tree.items()}
        indexes = sorted(index for index in named if index is not None and index < len(value))
        elements = (_pick(value[index], named[index], work) for index in indexes)
        return [element for element in elements if element is not MISSING] or MISSING
    return MISSING


def kind_of(value: Any) -> str:
    return _KINDS[type(value)]


def _key_in(holder: Any, step: Part) -> Any:
    """The key or index of what is there, else None."""
    if isinstance(holder, dict):
        return step.name if step.name in holder else None
    is_there = isinstance(holder, list) and step.index is not None and step.index < len(holder)
    return step.index if is_there else None


_KINDS = {
    str: "text",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    list: "an array",
    dict: "an object",
    type(None): "null",
}
