"""Text with values of a JSON document in it: `Order {{ order.id }} of {{ customer | json }}`.

A placeholder is a dotted path, nothing more. Text stands as it is, numbers and booleans as JSON writes them,
objects and arrays as JSON; what is missing or null leaves nothing. `| json` writes any value as JSON, text in
quotes and escaped, and null for what is missing, so that a template of JSON stays JSON.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from crossdock.hooks.rules.paths import MISSING, Path, PathProblem, look_up, parse_path
from crossdock.hooks.rules.transform_work import OUTPUT_BYTES_MAX, StepFailed, Work, encode


class TemplateProblem(ValueError):
    """Why a text is no template, in a sentence."""


@dataclass(frozen=True, slots=True)
class Placeholder:
    path: Path
    as_json: bool

    def render(self, document: Any, work: Work) -> bytes:
        value = look_up(document, self.path)
        if value is MISSING or value is None:
            return b"null" if self.as_json else b""
        if isinstance(value, str) and not self.as_json:
            work.make(len(value))
            return value.encode()
        encoded = encode(value)
        work.make(len(encoded))
        return encoded


@dataclass(frozen=True, slots=True)
class Template:
    pieces: tuple[bytes | Placeholder, ...]

    @property
    def needs_document(self) -> bool:
        return any(isinstance(piece, Placeholder) for piece in self.pieces)

    def render(self, document: Any, work: Work) -> bytes:
        """Raises StepFailed if the text gets too large."""
        rendered: list[bytes] = []
        size = 0
        for piece in self.pieces:
            text = piece if isinstance(piece, bytes) else piece.render(document, work)
            size += len(text)
            if size > OUTPUT_BYTES_MAX:
                raise StepFailed(f"The text has more than {OUTPUT_BYTES_MAX // 1024} KB.")
            rendered.append(text)
        return b"".join(rendered)


_PLACEHOLDER = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)


def parse_template(text: str) -> Template:
    """Raises TemplateProblem."""
    pieces: list[bytes | Placeholder] = []
    end = 0
    for found in _PLACEHOLDER.finditer(text):
        pieces += [text[end : found.start()].encode(), _placeholder(found)]
        end = found.end()
    if "{{" in text[end:]:
        raise TemplateProblem(f"At character {text.index('{{', end) + 1}: a {{{{ has no }}}}.")
    return Template((*pieces, text[end:].encode()))


def _placeholder(found: re.Match[str]) -> Placeholder:
    where = f"At character {found.start() + 1}"
    path, bar, form = found[1].rpartition("|")
    if bar and form.strip() != "json":
        raise TemplateProblem(f"{where}: after the | may come json only.")
    text = (path if bar else form).strip()
    if "{" in text or "}" in text:
        raise TemplateProblem(f"{where}: a placeholder is {{{{ a.path }}}}, without further braces.")
    try:
        return Placeholder(parse_path(text), bool(bar))
    except PathProblem as problem:
        raise TemplateProblem(f"{where}: {problem}") from problem
