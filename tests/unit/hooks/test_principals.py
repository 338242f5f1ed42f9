"""Whose things a request is about."""

from __future__ import annotations

import os

import pytest

from crossdock.hooks.model import KeyPermission
from crossdock.hooks.service.principals import (
    ALL,
    HOOKS_USER,
    PERMISSIONS,
    checked_user_id,
    new_token,
    session_hash_of,
    user_of,
)
from crossdock.http.principals import ALL_PERMISSIONS, Principal
from crossdock.kit.errors import CrossdockError, Forbidden, InvalidInput, NotFound

OWN, OTHER = "usr_0123456789abcdef", "usr_fedcba9876543210"
USER = Principal(HOOKS_USER, "key_1", OWN, ALL)
OPERATOR = Principal("operator", "1", None, ALL_PERMISSIONS)
WORKSPACE = Principal("workspace", "2", OWN, frozenset({"keys:write"}))


def test_a_user_is_its_own_and_the_operator_says_whose() -> None:
    assert user_of(USER, None) == user_of(USER, OWN) == OWN
    assert user_of(OPERATOR, OTHER) == OTHER


@pytest.mark.parametrize(
    ("principal", "user_id", "expected"),
    [
        (USER, OTHER, NotFound),
        (USER, "", NotFound),
        (OPERATOR, None, InvalidInput),
        (OPERATOR, "", NotFound),
        (OPERATOR, "usr_", NotFound),
        (OPERATOR, OWN + "\n", NotFound),
        (WORKSPACE, None, Forbidden),
        (WORKSPACE, OWN, Forbidden),
    ],
)
def test_nobody_else_gets_a_user(
    principal: Principal, user_id: str | None, expected: type[CrossdockError]
) -> None:
    with pytest.raises(expected):
        user_of(principal, user_id)


def test_what_can_not_be_a_user_is_not_there() -> None:
    assert checked_user_id(OWN) == OWN
    with pytest.raises(NotFound):
        checked_user_id("usr_0123456789abcde")


def test_each_permission_holds_those_below_it() -> None:
    read, write, admin = (PERMISSIONS[each] for each in KeyPermission)
    assert read < write < admin == ALL == {"hooks:read", "hooks:write", "hooks:admin"}


def test_tokens_are_43_characters_of_256_random_bits() -> None:
    tokens = {new_token("fh_", os.urandom) for _ in range(100)}
    assert len(tokens) == 100
    assert {len(token) for token in tokens} == {46}


def test_only_a_session_has_a_session_hash() -> None:
    assert session_hash_of(Principal(HOOKS_USER, "ses_abc", OWN, ALL)) == "abc"
    for principal in (USER, OPERATOR, Principal("device", "ses_abc", None, frozenset())):
        assert session_hash_of(principal) is None
