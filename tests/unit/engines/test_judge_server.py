from __future__ import annotations

import pytest

from crossdock.engines.sql.target import PostgresTarget, judge_server, quote_schema

GOOD = {
    "version": 15,
    "version_text": "15.1",
    "encoding": "UTF8",
    "is_standby": False,
    "may_create": True,
    "now_ms": 1_000_000,
}


def test_a_primary_of_version_15_in_utf8_that_lets_us_create_schemas_will_do() -> None:
    assert judge_server(GOOD, our_now_ms=1_002_000) == []


@pytest.mark.parametrize(
    ("difference", "expected"),
    [
        ({"version": 14, "version_text": "14.9"}, "PostgreSQL is 14.9; 15 or newer"),
        ({"encoding": "SQL_ASCII"}, "SQL_ASCII"),
        ({"is_standby": True}, "read-only standby"),
        ({"may_create": False}, "GRANT CREATE"),
        ({"now_ms": 997_999}, "differ by 2001 ms"),
        ({"now_ms": 1_002_001}, "differ by 2001 ms"),
    ],
)
def test_each_shortcoming_is_told_on_its_own(difference: dict[str, object], expected: str) -> None:
    (problem,) = judge_server({**GOOD, **difference}, our_now_ms=1_000_000)
    assert expected in problem


def test_a_password_is_in_neither_the_label_nor_the_repr() -> None:
    target = PostgresTarget("postgresql://me:secret@db.example:6432/shop")
    assert target.label == "db.example:6432/shop"
    assert "secret" not in repr(target)


@pytest.mark.parametrize("name", ['a"b', "", "Public", "a b", "a;b", "1a"])
def test_only_plain_names_become_a_search_path(name: str) -> None:
    with pytest.raises(ValueError, match="schema name"):
        quote_schema(name)
