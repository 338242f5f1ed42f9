from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.architecture.source import ROOT

LOCKS = ROOT / "requirements"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())


def wanted(requirements: Iterable[str]) -> dict[str, Requirement]:
    parsed = (Requirement(text) for text in requirements)
    return {canonicalize_name(requirement.name): requirement for requirement in parsed}


RUNTIME = wanted(PROJECT["project"]["dependencies"])
DEVELOPMENT = wanted(PROJECT["dependency-groups"]["dev"])
BUILD = wanted(PROJECT["build-system"]["requires"])


def pins(lock: Path) -> dict[str, str]:
    """Name and version of every package in a lock file; each must have its hashes."""
    pinned: dict[str, str] = {}
    for entry in re.split(r"\n(?=\S)", lock.read_text()):
        match = re.match(r"([A-Za-z0-9._-]+)==(\S+)", entry)
        if match:
            assert "--hash=sha256:" in entry, f"{lock.name}: {match[1]} has no hash"
            pinned[canonicalize_name(match[1])] = match[2]
        else:
            assert entry.startswith("#"), f"{lock.name} has a line that is no pin: {entry[:80]}"
    return pinned


@pytest.mark.parametrize(
    ("lock", "requirements"),
    [
        ("runtime.txt", RUNTIME),
        ("dev.txt", RUNTIME | DEVELOPMENT),
        ("build.txt", BUILD),
    ],
)
def test_every_dependency_is_pinned_to_a_version_that_it_allows(
    lock: str, requirements: dict[str, Requirement]
) -> None:
    pinned = pins(LOCKS / lock)
    assert requirements.keys() <= pinned.keys(), "run: make lock"
    not_allowed = {name for name, wish in requirements.items() if not wish.specifier.contains(pinned[name])}
    assert not not_allowed, "run: make lock"


def test_all_locks_agree_on_the_version_of_a_package() -> None:
    versions: dict[str, set[str]] = {}
    for lock in LOCKS.glob("*.txt"):
        for name, version in pins(lock).items():
            versions.setdefault(name, set()).add(version)
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}


def test_what_development_adds_is_not_in_the_runtime_lock() -> None:
    """What a user installs stays small: nothing of the tests comes with it."""
    assert not DEVELOPMENT.keys() - RUNTIME.keys() & pins(LOCKS / "runtime.txt").keys()


def test_every_dependency_has_its_reason_in_the_architecture() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    section = re.search(r"^## Dependencies\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert section, "ARCHITECTURE.md has no section Dependencies"
    lines = re.findall(r"^\| `?([A-Za-z0-9._-]+)`? +\| *\w", section[1], re.MULTILINE)
    named = {canonicalize_name(name) for name in lines} - {"package"}
    assert RUNTIME.keys() <= named, "without a reason"
    assert named <= (RUNTIME | DEVELOPMENT | BUILD).keys(), "no longer needed"
