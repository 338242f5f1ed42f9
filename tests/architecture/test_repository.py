from __future__ import annotations

import re

import pytest
from tests.architecture.source import name_of, repository_files

# Where packages come from is the business of whoever installs: their pip and Maven are set up for it.
REGISTRIES = re.compile(
    r"pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|yarnpkg\.com|repo1?\.maven|maven\.org|mvnrepository\.com"
    r"|crates\.io|rubygems\.org|artifactor[y]|jfrog\.io|(?:index|registry)-url\s*[= ]\s*['\"]?https?://(?![\w.-]*\bexample\b)",
    re.IGNORECASE,
)
SOMEBODYS_PATHS = re.compile(r"(?<![\w.$}~-])/(?:home/\w+|root|work|Users/\w+)(?:/|\b(?![\w-]))")


def lines_with(pattern: re.Pattern[str]) -> list[str]:
    found = []
    for path in repository_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [
            f"{name_of(path)}:{number}: {line.strip()[:120]}"
            for number, line in enumerate(text.splitlines(), 1)
            if pattern.search(line)
        ]
    return found


def test_there_are_files_to_check() -> None:
    assert len(repository_files()) > 50


def test_no_file_names_the_host_of_a_package_registry() -> None:
    assert lines_with(REGISTRIES) == []


def test_no_file_names_a_path_of_the_machine_it_was_written_on() -> None:
    assert lines_with(SOMEBODYS_PATHS) == []


@pytest.mark.parametrize(
    "directory", ["home/ann/x", "root/.cache", "root", "work/thing", "Users/ann/Library"]
)
def test_a_path_in_somebodys_home_is_recognised(directory: str) -> None:
    assert SOMEBODYS_PATHS.search(f'open("/{directory}")')


@pytest.mark.parametrize(
    "text", ["src/work/x.py", "${HOME}/work/", "https://example.org/home", "/v1/work", "/rooted"]
)
def test_other_paths_are_not_mistaken_for_it(text: str) -> None:
    assert not SOMEBODYS_PATHS.search(text)
