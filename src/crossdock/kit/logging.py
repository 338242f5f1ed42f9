"""Log lines: one format for every process, JSON for machines and a readable line on a terminal.

    log.info("batch stored", extra=fields(batch_id=batch_id, rows=12))
    {"time":"2024-01-15T10:30:00.123Z","level":"info","logger":"crossdock.devices","message":"batch stored",
     "process":"lane-1","pid":4711,"batch_id":"...","rows":12}

Secrets stay out: a field named like one is masked, at any depth, and so are passwords in URLs and bearer
tokens in any text, tracebacks included. This is the last net; the rule is still not to log them.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TextIO, TypeAlias

Field: TypeAlias = "bool | int | float | str | list[Field] | dict[str, Field] | None"

MASK = "***"
_TEXT_CHARACTERS_MAX = 8_000
_TRACEBACK_CHARACTERS_MAX = 32_000
_DEPTH_MAX = 6
_OWN_NAMES = frozenset({"time", "level", "logger", "message", "process", "pid", "traceback"})

_SECRET_WORDS = frozenset(
    {"key", "keys", "secret", "secrets", "token", "tokens", "password", "passwords", "passphrase", "pepper"}
    | {"authorization", "cookie", "cookies", "credential", "credentials", "dsn", "apikey"}
)
# Named like a secret, and none: they are what one looks for in a log.
_PUBLIC_NAMES = frozenset({"idempotency_key", "partition_key", "sort_key", "primary_key", "object_key"})
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

# Every repetition is bounded or starts at a rare literal: a text of a megabyte must not stop the loop.
_SECRETS_IN_TEXT = (
    (re.compile(r"(://[^\s:/?#@\"']{0,200}:)[^\s/?#\"']{1,1000}@"), rf"\1{MASK}@"),
    (re.compile(r"\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE), rf"\1 {MASK}"),
    (re.compile(r"\b((?:ssl)?password|secret|token)=[^\s&\"']+", re.IGNORECASE), rf"\1={MASK}"),
)


def configure(
    process_name: str,
    *,
    level: str = "INFO",
    stream: TextIO | None = None,
    human: bool | None = None,
) -> None:
    """Send every logger's lines to `stream` (stderr). `human` None: readable on a terminal, else JSON.

    `level` is ours; libraries speak from WARNING on, so that DEBUG isn't drowned by them.
    """
    target = sys.stderr if stream is None else stream
    handler = logging.StreamHandler(target)
    readable = target.isatty() if human is None else human
    handler.setFormatter(HumanFormatter(process_name) if readable else JsonFormatter(process_name))
    root = logging.getLogger()
    for each in tuple(root.handlers):
        root.removeHandler(each)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("crossdock").setLevel(level.upper())
    logging.captureWarnings(True)


def fields(**values: object) -> dict[str, object]:
    """For `extra=`: values to search by, beside the message."""
    return {"fields": values}


class JsonFormatter(logging.Formatter):
    def __init__(self, process_name: str) -> None:
        super().__init__()
        self._process_name = process_name

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Field] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": clean_text(record.getMessage()),
            "process": self._process_name,
            "pid": os.getpid(),
        }
        line.update(_fields(record))
        trace = _traceback(self, record)
        if trace:
            line["traceback"] = trace
        return json.dumps(line, separators=(",", ":"))


class HumanFormatter(logging.Formatter):
    def __init__(self, process_name: str) -> None:
        super().__init__()
        self._process_name = process_name

    def format(self, record: logging.LogRecord) -> str:
        values = "".join(
            f" {name}={json.dumps(value, ensure_ascii=False)}" for name, value in _fields(record).items()
        )
        message = _printable(clean_text(record.getMessage()))
        trace = _traceback(self, record)
        return (
            f"{_time(record)[11:23]} {record.levelname:<7} {self._process_name:<10} {record.name}: {message}"
            f"{_printable(values)}" + (f"\n{trace}" if trace else "")
        )


def is_secret_name(name: str) -> bool:
    """Does the name say secret? Its last word decides: `api_key` and `X-Api-Key` do, `key_id` does not."""
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or "_".join(words) in _PUBLIC_NAMES:
        return False
    return words[-1] in _SECRET_WORDS or "authorization" in words


def clean_text(text: str, characters_max: int = _TEXT_CHARACTERS_MAX) -> str:
    for pattern, replacement in _SECRETS_IN_TEXT:
        text = pattern.sub(replacement, text)
    return text if len(text) <= characters_max else f"{text[:characters_max]}... ({len(text)} characters)"


def clean(value: object, depth: int = 0) -> Field:
    """The value as JSON can say it, with secrets masked."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth >= _DEPTH_MAX:
        return "..."
    if isinstance(value, Mapping):
        return _clean_mapping(value, depth)
    if isinstance(value, (list, tuple, set, frozenset)):
        return [clean(element, depth + 1) for element in value]
    return clean_text(str(value))


def _clean_mapping(values: Mapping[object, object], depth: int) -> dict[str, Field]:
    return {
        str(name): MASK if is_secret_name(str(name)) and value is not None else clean(value, depth + 1)
        for name, value in values.items()
    }


def _fields(record: logging.LogRecord) -> dict[str, Field]:
    given = getattr(record, "fields", None)
    if not isinstance(given, Mapping):
        return {}
    cleaned = _clean_mapping(given, 0)
    return {f"field_{name}" if name in _OWN_NAMES else name: value for name, value in cleaned.items()}


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    parts = [
        formatter.formatException(record.exc_info) if record.exc_info else "",
        formatter.formatStack(record.stack_info) if record.stack_info else "",
    ]
    return clean_text("\n".join(part for part in parts if part), _TRACEBACK_CHARACTERS_MAX)


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _printable(text: str) -> str:
    """No control characters: what a client sent must not move the reader's cursor or forge a line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
