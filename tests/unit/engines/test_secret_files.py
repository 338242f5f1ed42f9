"""A secret is made once, is the same for everyone, and nobody else can read it."""

from __future__ import annotations

import itertools
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from crossdock.engines.secret_files import SecretFiles
from crossdock.kit.errors import Unavailable


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_first_call_makes_the_secret_and_later_ones_read_it(tmp_path: Path) -> None:
    files = SecretFiles(tmp_path / "secrets")
    assert files.get_or_create("operator.key", lambda: "first") == ("first", True)
    assert files.get_or_create("operator.key", lambda: "second") == ("first", False)
    assert SecretFiles(tmp_path / "secrets").get("operator.key") == "first"


def test_a_secret_that_was_never_made_is_absent(tmp_path: Path) -> None:
    assert SecretFiles(tmp_path).get("operator.key") is None


def test_only_our_account_can_read_it(tmp_path: Path) -> None:
    files = SecretFiles(tmp_path / "secrets")
    files.get_or_create("operator.key", lambda: "secret")
    assert (mode(tmp_path / "secrets"), mode(files.path("operator.key"))) == (0o700, 0o600)


def test_a_file_that_was_opened_to_others_is_closed_when_it_is_read(tmp_path: Path) -> None:
    files = SecretFiles(tmp_path / "secrets")
    files.get_or_create("operator.key", lambda: "secret")
    files.path("operator.key").chmod(0o644)
    (tmp_path / "secrets").chmod(0o755)
    assert files.get("operator.key") == "secret"
    assert (mode(tmp_path / "secrets"), mode(files.path("operator.key"))) == (0o700, 0o600)


def test_a_secret_that_an_operator_wrote_with_an_editor_has_no_newline(tmp_path: Path) -> None:
    (tmp_path / "operator.key").write_text("typed\n")
    assert SecretFiles(tmp_path).get("operator.key") == "typed"


def test_nothing_but_the_secret_is_left_in_the_directory(tmp_path: Path) -> None:
    SecretFiles(tmp_path).get_or_create("operator.key", lambda: "secret")
    assert [path.name for path in tmp_path.iterdir()] == ["operator.key"]


def test_an_empty_file_is_an_error_that_names_it_not_an_empty_secret(tmp_path: Path) -> None:
    (tmp_path / "operator.key").touch()
    with pytest.raises(Unavailable, match=r"operator\.key"):
        SecretFiles(tmp_path).get_or_create("operator.key", lambda: "secret")


@pytest.mark.parametrize("name", ["../operator", "a/b", "", ".hidden", "Upper"])
def test_a_name_that_is_a_path_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="plain file name"):
        SecretFiles(tmp_path).get(name)


@pytest.mark.parametrize("secret", ["", "two\nlines"])
def test_a_secret_that_could_not_be_read_back_is_not_written(secret: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="one line"):
        SecretFiles(tmp_path).get_or_create("operator.key", lambda: secret)
    assert list(tmp_path.iterdir()) == []


def test_of_many_threads_at_once_one_makes_it_and_all_get_the_same(tmp_path: Path) -> None:
    numbers = itertools.count()
    files = SecretFiles(tmp_path)
    with ThreadPoolExecutor(16) as threads:
        answers = list(
            threads.map(lambda _: files.get_or_create("operator.key", lambda: f"s{next(numbers)}"), range(64))
        )
    assert len({secret for secret, _ in answers}) == 1
    assert sum(created for _, created in answers) == 1


ASK = """
import os, sys
from pathlib import Path
from crossdock.engines.secret_files import SecretFiles
print(*SecretFiles(Path(sys.argv[1])).get_or_create("operator.key", lambda: os.urandom(8).hex()))
"""


def test_of_many_processes_at_once_one_makes_it_and_all_get_the_same(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", ASK, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    answers = [process.communicate(timeout=30)[0].split() for process in processes]
    assert len({secret for secret, _ in answers}) == 1
    assert sorted(created for _, created in answers) == ["False"] * 5 + ["True"]
