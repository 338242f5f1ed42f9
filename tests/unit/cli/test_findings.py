from __future__ import annotations

import stat
from pathlib import Path

import pytest

from crossdock.cli.findings import (
    FREE_BYTES_MIN,
    Finding,
    State,
    findings,
    judge_disk,
    judge_modes,
    judge_pending,
    judge_unknown,
)


def test_every_problem_is_a_finding_of_its_own() -> None:
    assert findings("port", ["taken", "low"], "free") == [
        Finding("port", State.PROBLEM, "taken"),
        Finding("port", State.PROBLEM, "low"),
    ]


def test_without_problems_it_says_what_is_well() -> None:
    assert findings("port", [], "free") == [Finding("port", State.OK, "free")]


def test_an_unknown_variable_is_named_with_the_one_it_looks_like() -> None:
    likely, strange = judge_unknown({"CROSSDOCK_PROT": "CROSSDOCK_PORT", "CROSSDOCK_X": None})
    assert "CROSSDOCK_PROT" in likely
    assert "Is CROSSDOCK_PORT meant?" in likely
    assert "Remove it" in strange


@pytest.mark.parametrize(
    ("free_bytes", "is_well"), [(FREE_BYTES_MIN, True), (FREE_BYTES_MIN - 1, False), (0, False)]
)
def test_a_disk_with_less_than_a_gigabyte_left_is_a_problem(free_bytes: int, is_well: bool) -> None:
    assert (judge_disk(Path("data"), free_bytes) == []) is is_well


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o700])
def test_secrets_that_only_we_can_read_are_well(mode: int) -> None:
    assert judge_modes({Path("key"): stat.S_IFREG | mode}) == []


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601, 0o777])
def test_a_secret_open_to_others_is_a_problem_with_its_mend(mode: int) -> None:
    (problem,) = judge_modes({Path("key"): stat.S_IFREG | mode})
    assert f"{mode:04o}" in problem
    assert "chmod 600 key" in problem


def test_a_directory_of_secrets_keeps_its_right_of_way() -> None:
    (problem,) = judge_modes({Path("secrets"): stat.S_IFDIR | 0o755})
    assert "chmod 700 secrets" in problem


def test_migrations_that_are_not_applied_are_named() -> None:
    assert judge_pending([]) == []
    assert "a/0001_x, a/0002_y" in judge_pending(["a/0001_x", "a/0002_y"])[0]
