"""What the steps of a transform do to a draft. Each raises StepFailed if it can't."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from crossdock.hooks.rules.paths import MISSING, Path, look_up
from crossdock.hooks.rules.templates import Template
from crossdock.hooks.rules.transform_document import PathTree, pick, put, rename, take_out
from crossdock.hooks.rules.transform_draft import Draft
from crossdock.hooks.rules.transform_functions import Evaluate
from crossdock.hooks.rules.transform_work import StepFailed


class Step(Protocol):
    @property
    def name(self) -> str: ...

    def apply(self, draft: Draft) -> None: ...


@dataclass(frozen=True, slots=True)
class SetValues:
    name: ClassVar[str] = "set"
    values: tuple[tuple[Path, Any], ...]

    def apply(self, draft: Draft) -> None:
        document = draft.document
        for path, value in self.values:
            document = put(document, path, value, draft.work)
        draft.replace(document)


@dataclass(frozen=True, slots=True)
class Copy:
    name: ClassVar[str] = "copy"
    source: Path
    target: Path
    if_present: bool

    def apply(self, draft: Draft) -> None:
        value = _found(draft, self.source, self.if_present)
        if value is not MISSING:
            draft.replace(put(draft.document, self.target, value, draft.work))


@dataclass(frozen=True, slots=True)
class Move:
    """Takes out first, then puts: an index in `target` counts what is left."""

    name: ClassVar[str] = "move"
    source: Path
    target: Path
    if_present: bool

    def apply(self, draft: Draft) -> None:
        value = _found(draft, self.source, self.if_present)
        if value is not MISSING:
            rest = take_out(draft.document, self.source, draft.work)
            draft.replace(put(rest, self.target, value, draft.work))


@dataclass(frozen=True, slots=True)
class Rename:
    name: ClassVar[str] = "rename"
    source: Path
    to: str
    if_present: bool

    def apply(self, draft: Draft) -> None:
        if _found(draft, self.source, self.if_present) is not MISSING:
            draft.replace(rename(draft.document, self.source, self.to, draft.work))


@dataclass(frozen=True, slots=True)
class Remove:
    name: ClassVar[str] = "remove"
    paths: tuple[Path, ...]

    def apply(self, draft: Draft) -> None:
        document = draft.document
        for path in self.paths:
            document = take_out(document, path, draft.work)
        draft.replace(document)


@dataclass(frozen=True, slots=True)
class Pick:
    name: ClassVar[str] = "pick"
    tree: PathTree

    def apply(self, draft: Draft) -> None:
        draft.replace(pick(draft.document, self.tree, draft.work))


@dataclass(frozen=True, slots=True)
class SetHeaders:
    name: ClassVar[str] = "set_headers"
    headers: tuple[tuple[str, str], ...]

    def apply(self, draft: Draft) -> None:
        for name, value in self.headers:
            draft.set_header(name, value)


@dataclass(frozen=True, slots=True)
class RemoveHeaders:
    name: ClassVar[str] = "remove_headers"
    names: tuple[str, ...]

    def apply(self, draft: Draft) -> None:
        for name in self.names:
            draft.remove_header(name)


@dataclass(frozen=True, slots=True)
class Reshape:
    name: ClassVar[str] = "jmespath"
    evaluate: Evaluate

    def apply(self, draft: Draft) -> None:
        draft.replace(self.evaluate(draft.document, draft.work))


@dataclass(frozen=True, slots=True)
class WriteText:
    name: ClassVar[str] = "template"
    template: Template
    content_type: str

    def apply(self, draft: Draft) -> None:
        document = draft.document if self.template.needs_document else None
        draft.write_text(self.template.render(document, draft.work), self.content_type)


def _found(draft: Draft, source: Path, if_present: bool) -> Any:
    value = look_up(draft.document, source)
    if value is MISSING and not if_present:
        raise StepFailed(f'There is no {source.text}. If it may be missing, say "if_present": true.')
    return value
