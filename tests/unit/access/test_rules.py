from __future__ import annotations

import hashlib
import os
import re
from uuid import UUID

import pytest

from crossdock.access.rules import (
    SETTINGS,
    WRITE_WORKSPACES,
    check_operator_key,
    fingerprint,
    is_setting_key,
    looks_like_key,
    make_key,
    principal_of_key,
)


def test_a_new_key_has_256_random_bits_in_base62() -> None:
    keys = {make_key(os.urandom) for _ in range(100)}
    assert len(keys) == 100
    assert all(re.fullmatch(r"dk_[0-9A-Za-z]{43}", key) for key in keys)
    assert all(looks_like_key(key) for key in keys)


def test_what_is_kept_of_a_key_is_its_hash_and_the_first_8_random_characters() -> None:
    kept = fingerprint("dk_abcdefghijkl")
    assert kept.key_hash == hashlib.sha256(b"dk_abcdefghijkl").hexdigest()
    assert kept.key_prefix == "abcdefgh"


@pytest.mark.parametrize(
    ("raw", "good"),
    [
        ("dk_" + "a" * 32, True),
        ("dk_" + "aZ9_-" * 10, True),
        ("dk_" + "a" * 200, True),
        ("dk_" + "a" * 31, False),
        ("dk_" + "a" * 201, False),
        ("dk_" + "a" * 31 + " ", False),
        ("dk_" + "a" * 40 + "\n", False),
        ("DK_" + "a" * 40, False),
        ("", False),
    ],
)
def test_only_what_looks_like_a_key_is_looked_up(raw: str, good: bool) -> None:
    assert looks_like_key(raw) is good
    if good:
        check_operator_key(raw)
    else:
        with pytest.raises(ValueError, match="dk_"):
            check_operator_key(raw)


def test_a_key_without_a_workspace_is_an_operators() -> None:
    principal = principal_of_key(UUID(int=1), None)
    assert (principal.kind, principal.id, principal.tenant) == ("operator", str(UUID(int=1)), None)
    assert principal.may("anything")


def test_a_workspaces_key_is_bound_to_it_and_may_not_what_is_the_operators() -> None:
    principal = principal_of_key(UUID(int=1), UUID(int=2))
    assert (principal.kind, principal.tenant) == ("workspace", str(UUID(int=2)))
    assert principal.may("sync:write")
    assert not principal.may(SETTINGS)
    assert not principal.may(WRITE_WORKSPACES)


@pytest.mark.parametrize(
    ("key", "good"),
    [
        ("global_max_concurrency", True),
        ("a", True),
        ("a.b_9", True),
        ("a" * 64, True),
        ("a" * 65, False),
        ("A", False),
        ("9a", False),
        ("a-b", False),
        ("a\n", False),
        ("", False),
    ],
)
def test_a_setting_has_a_plain_key(key: str, good: bool) -> None:
    assert is_setting_key(key) is good
