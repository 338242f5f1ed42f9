"""What `crossdock doctor` finds, and how it judges what it saw. Pure."""

from __future__ import annotations

import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

FREE_BYTES_MIN = 1 << 30
"""Less than the write-ahead log may take, so that a busy hour fills the disk."""


class State(StrEnum):
    OK = "ok"
    NOTE = "note"
    """Not as it will be when all runs, and nothing wrong."""
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    what: str
    state: State
    detail: str
    """What is there; of a problem, what is wrong and how to mend it."""


def findings(what: str, problems: Sequence[str], fine: str) -> list[Finding]:
    """A finding for each problem, or one that says that all is well."""
    if problems:
        return [Finding(what, State.PROBLEM, problem) for problem in problems]
    return [Finding(what, State.OK, fine)]


def judge_unknown(unknown: Mapping[str, str | None]) -> list[str]:
    """`unknown`: variable to the known one that it looks like."""
    return [
        f"{name} is no setting. " + (f"Is {alike} meant?" if alike else "Remove it; see crossdock settings.")
        for name, alike in unknown.items()
    ]


def judge_disk(directory: Path, free_bytes: int) -> list[str]:
    if free_bytes >= FREE_BYTES_MIN:
        return []
    return [
        f"Only {in_megabytes(free_bytes)} are free in {directory}, and {in_megabytes(FREE_BYTES_MIN)} are "
        "needed: make room, or move the data directory."
    ]


def judge_modes(modes: Mapping[Path, int]) -> list[str]:
    """`modes`: of the directory of secrets and of the files in it."""
    return [
        f"{path} is open to other accounts (mode {stat.S_IMODE(mode):04o}): "
        f"chmod {'700' if stat.S_ISDIR(mode) else '600'} {path}"
        for path, mode in modes.items()
        if stat.S_IMODE(mode) & 0o077
    ]


def judge_pending(names: Sequence[str]) -> list[str]:
    if not names:
        return []
    return [f"Not applied: {', '.join(names)}. Run crossdock migrate; crossdock up does it, too."]


def in_megabytes(count: int) -> str:
    return f"{count // (1 << 20):,} MB"
