"""Which migrations are still to do, and when the database and the files can't both be right."""

from __future__ import annotations

import pytest

from crossdock.engines.migrations import PLATFORM
from crossdock.engines.sql.migrations import (
    Migration,
    Migrations,
    choose_pending,
    order_files,
    read_migrations,
)
from crossdock.kit.errors import Conflict

FIRST = Migration("devices", 1, "first", "CREATE TABLE a (id int);\n")
SECOND = Migration("devices", 2, "second", "CREATE TABLE b (id int);\n")


@pytest.mark.parametrize(
    ("applied", "expected"),
    [
        ({}, [FIRST, SECOND]),
        ({1: FIRST.checksum}, [SECOND]),
        ({1: FIRST.checksum, 2: SECOND.checksum}, []),
    ],
)
def test_what_is_not_applied_is_pending_in_order(applied: dict[int, str], expected: list[Migration]) -> None:
    assert choose_pending(applied, [FIRST, SECOND], "devices") == expected


def test_a_file_that_changed_after_it_was_applied_is_refused_by_name() -> None:
    with pytest.raises(Conflict, match=r"devices/0001_first\.sql") as raised:
        choose_pending({1: "another checksum"}, [FIRST, SECOND], "devices")
    assert raised.value.code == "migration_changed"


def test_a_database_that_knows_more_than_the_code_is_refused() -> None:
    with pytest.raises(Conflict, match="0002 of 'devices'") as raised:
        choose_pending({1: FIRST.checksum, 2: SECOND.checksum}, [FIRST], "devices")
    assert raised.value.code == "database_is_newer"


def test_line_endings_are_not_a_change() -> None:
    converted = Migration("devices", 1, "first", FIRST.sql.replace("\n", "\r\n"))
    assert converted.checksum == FIRST.checksum


def test_the_platforms_own_files_keep_the_rules() -> None:
    assert [migration.label for migration in read_migrations(PLATFORM)][:1] == ["engines/0001_leases"]


def test_files_are_taken_by_number_and_known_by_their_slice() -> None:
    source = Migrations("derrick", "crossdock.access.migrations")
    ordered = order_files(source, {"0010_j.sql": "10"} | {f"000{n}_x.sql": str(n) for n in range(9, 0, -1)})
    assert [migration.sql for migration in ordered] == [str(n) for n in range(1, 11)]
    assert ordered[9].label == "access/0010_j"


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        (["0001_a.sql", "0003_c.sql"], "without gaps"),
        (["0001_a.sql", "0001_b.sql"], "without gaps"),
        (["0002_a.sql"], "without gaps"),
        (["1_a.sql"], "not named like"),
        (["0001-a.sql"], "not named like"),
    ],
)
def test_badly_numbered_files_are_refused(files: list[str], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        order_files(Migrations("devices", "crossdock.devices.migrations"), dict.fromkeys(files, "SELECT 1;"))
