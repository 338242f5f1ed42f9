"""The pure parts of running PostgreSQL: its configuration, its socket's place, its pid file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from crossdock.engines.sql.postmaster import PidFile, parse_pid_file
from crossdock.engines.sql.server_account import ServerAccount, may_search
from crossdock.engines.sql.server_files import choose_socket_dir, configure, socket_target

TEMPORARY = Path("/tmp")


def test_the_socket_is_in_the_data_directory() -> None:
    assert choose_socket_dir(Path("/var/lib/crossdock"), TEMPORARY) == Path("/var/lib/crossdock/run/postgres")


@pytest.mark.parametrize(("length", "is_inside"), [(73, True), (74, False), (300, False)])
def test_a_socket_path_over_100_bytes_moves_to_the_temporary_directory(length: int, is_inside: bool) -> None:
    data_dir = Path("/" + "d" * (length - 1))
    chosen = choose_socket_dir(data_dir, TEMPORARY)
    assert (data_dir in chosen.parents) is is_inside
    assert len(bytes(chosen / ".s.PGSQL.5432")) <= 100


def test_bytes_count_not_characters() -> None:
    data_dir = Path("/" + "ü" * 40)
    assert data_dir not in choose_socket_dir(data_dir, TEMPORARY).parents


def test_a_path_with_a_comma_moves_too_because_clients_would_split_it() -> None:
    data_dir = Path("/srv/a,b")
    assert data_dir not in choose_socket_dir(data_dir, TEMPORARY).parents


def test_the_place_in_the_temporary_directory_depends_on_the_data_directory_only() -> None:
    one, other = Path("/" + "a" * 200), Path("/" + "b" * 200)
    assert choose_socket_dir(one, TEMPORARY) == choose_socket_dir(one, TEMPORARY)
    assert choose_socket_dir(one, TEMPORARY) != choose_socket_dir(other, TEMPORARY)


def test_given_settings_win_over_defaults() -> None:
    text = configure(Path("/s"), {"me"}, {"max_connections": "17"}).postgresql_conf
    assert "max_connections = '17'\n" in text
    assert text.count("max_connections") == 1


def test_values_cannot_end_their_quotes() -> None:
    text = configure(Path("/it's"), {"me"}, {"application_name": "a\\'b"}).postgresql_conf
    assert """unix_socket_directories = '"/it''s"'\n""" in text
    assert """application_name = 'a\\\\''b'\n""" in text


def test_the_fingerprint_changes_with_anything_that_matters() -> None:
    fingerprints = {
        configure(Path("/s"), {"me"}, {}).fingerprint,
        configure(Path("/t"), {"me"}, {}).fingerprint,
        configure(Path("/s"), {"me", "you"}, {}).fingerprint,
        configure(Path("/s"), {"me"}, {"jit": "on"}).fingerprint,
    }
    assert len(fingerprints) == 4
    assert (
        configure(Path("/s"), {"a", "b"}, {}).fingerprint == configure(Path("/s"), {"b", "a"}, {}).fingerprint
    )


def test_only_the_named_accounts_may_connect_and_only_by_peer() -> None:
    configuration = configure(Path("/s"), {"root", "crossdock"}, {})
    assert configuration.pg_hba_conf == "local all all peer map=crossdock\n"
    assert configuration.pg_ident_conf == 'crossdock "crossdock" crossdock\ncrossdock "root" crossdock\n'


def test_a_socket_directory_survives_the_way_through_a_url() -> None:
    assert socket_target(Path("/a b&c%d")).dsn.endswith("?host=/a%20b%26c%25d&port=5432")


READY = "4711\n/data/postgres\n1700000000\n5432\n/data/run\n\n 123 456\nready   \n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (READY, PidFile(4711, Path("/data/run"), is_ready=True)),
        (READY.replace("ready", "starting"), PidFile(4711, Path("/data/run"), is_ready=False)),
        (READY.replace("ready", "stopping"), PidFile(4711, Path("/data/run"), is_ready=False)),
        ("\n".join(READY.split("\n")[:5]), PidFile(4711, Path("/data/run"), is_ready=False)),
        ("4711\n/data/postgres\n", None),
        ("", None),
        ("-12\n/data\n1\n5432\n/run\n", None),
    ],
)
def test_a_pid_file_is_read_at_every_stage_of_its_writing(text: str, expected: PidFile | None) -> None:
    assert parse_pid_file(text) == expected


@pytest.mark.parametrize(
    ("owner", "group", "mode", "expected"),
    [
        (50, 60, 0o100, True),
        (50, 60, 0o011, False),  # the owner's bits count for the owner, even when others have more
        (1, 60, 0o010, True),
        (1, 60, 0o101, False),
        (1, 2, 0o001, True),
        (1, 2, 0o770, False),
    ],
)
def test_who_may_pass_through_a_directory(owner: int, group: int, mode: int, expected: bool) -> None:
    account = ServerAccount("server", uid=50, gid=60, is_current=False)
    status = os.stat_result((stat.S_IFDIR | mode, 0, 0, 1, owner, group, 0, 0, 0, 0))
    assert may_search(status, account) is expected
