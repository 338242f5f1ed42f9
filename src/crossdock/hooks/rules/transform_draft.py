"""A message between its first step and its last."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from crossdock.hooks.rules.paths import MISSING, decode_document
from crossdock.hooks.rules.transform_work import INPUT_BYTES_MAX, StepFailed, Work, encode

CONTENT_TYPE = "content-type"


class Draft:
    """The body is read when a step first needs its JSON, and written once, at the end, if it was changed.

    A content type that a step has set in so many words stays; otherwise a new body brings its own.
    """

    def __init__(self, body: bytes, headers: Iterable[tuple[str, str]]) -> None:
        self.work = Work()
        self.headers = list(headers)
        self._body = body
        self._content_type: str | None = None
        """That of `_body`; None: it is the one that came."""
        self._content_type_is_set = False
        self._read: Any = MISSING
        self._document: Any = MISSING

    @property
    def document(self) -> Any:
        """The body's JSON. Never changed in place. Raises StepFailed."""
        if self._document is MISSING:
            if self._content_type is None and len(self._body) > INPUT_BYTES_MAX:
                raise StepFailed(f"The body has more than {INPUT_BYTES_MAX // 1024} KB.")
            self._read = self._document = decode_document(self._body)
            if self._document is MISSING:
                raise StepFailed("The body is not JSON.")
        return self._document

    def replace(self, document: Any) -> None:
        self._document = document

    def write_text(self, text: bytes, content_type: str) -> None:
        self._body, self._content_type = text, content_type
        self._read = self._document = MISSING

    def set_header(self, name: str, value: str) -> None:
        self.remove_header(name)
        self.headers.append((name, value))

    def remove_header(self, name: str) -> None:
        lowered = name.lower()
        self.headers = [each for each in self.headers if each[0].lower() != lowered]
        self._content_type_is_set |= lowered == CONTENT_TYPE

    def finish(self) -> tuple[bytes, tuple[tuple[str, str], ...]]:
        """Body and headers. Raises StepFailed if the body gets too large."""
        if self._document is not self._read:
            self._body, self._content_type = encode(self._document), "application/json"
        if self._content_type is not None and not self._content_type_is_set:
            self.set_header("Content-Type", self._content_type)
        return self._body, tuple(self.headers)
