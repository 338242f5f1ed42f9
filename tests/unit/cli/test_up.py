from __future__ import annotations

from pathlib import Path

import pytest

from crossdock.cli.runtime import OperatorKey
from crossdock.cli.this_machine import local_url
from crossdock.cli.up import announcement, only_server_of
from crossdock.kit.errors import Conflict


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8420"),
        ("localhost", "http://localhost:8420"),
        ("0.0.0.0", "http://127.0.0.1:8420"),
        ("::", "http://[::1]:8420"),
        ("::1", "http://[::1]:8420"),
        ("10.1.2.3", "http://10.1.2.3:8420"),
    ],
)
def test_this_machine_reaches_a_server_wherever_it_listens(host: str, url: str) -> None:
    assert local_url(host, 8420) == url


def test_the_announcement_shows_the_key_and_where_it_is_kept() -> None:
    said = announcement(OperatorKey("dk_secret", Path("data/secrets/operator_key"), True))
    assert "dk_secret" in said
    assert "data/secrets/operator_key" in said


def test_an_operator_key_is_in_no_repr() -> None:
    assert "dk_secret" not in repr(OperatorKey("dk_secret", None, True))


def test_a_data_directory_has_one_server_at_a_time(tmp_path: Path) -> None:
    with only_server_of(tmp_path / "data"):
        with pytest.raises(Conflict) as conflict, only_server_of(tmp_path / "data"):
            pass
        assert conflict.value.code == "data_directory_in_use"
    with only_server_of(tmp_path / "data"):
        pass
