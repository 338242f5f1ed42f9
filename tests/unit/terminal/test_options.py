from __future__ import annotations

import re

import pytest

from crossdock.terminal.failures import CommandFailed, ExitCode
from crossdock.terminal.options import Surroundings, is_this_machine, open_session


class Machine:
    def url(self) -> str:
        return "http://10.0.0.9:8420"

    def operator_key(self) -> str | None:
        return "dk_kept"


HERE = Surroundings({}, Machine())


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1", "http://localhost", "http://[::1]:8420/x", "http://127.9.9.9"]
)
def test_loopback_is_this_machine(url: str) -> None:
    assert is_this_machine(url)


@pytest.mark.parametrize(
    "url", ["http://10.0.0.1", "https://example.org", "http://localhost.example.org", "nonsense"]
)
def test_anything_else_is_not(url: str) -> None:
    assert not is_this_machine(url)


def test_the_kept_key_goes_to_the_server_of_this_machine() -> None:
    assert open_session(HERE, None, None, False).client.base_url == "http://10.0.0.9:8420"
    assert open_session(HERE, "http://127.0.0.1:1", None, False).client.base_url == "http://127.0.0.1:1"


def test_the_kept_key_is_not_sent_to_another_machine() -> None:
    with pytest.raises(CommandFailed) as failure:
        open_session(HERE, "https://example.org", None, False)
    assert failure.value.exit_code == ExitCode.NO_ACCESS


def test_a_key_that_is_given_goes_where_it_is_sent() -> None:
    assert (
        open_session(HERE, "https://example.org", "dk_given", False).client.base_url == "https://example.org"
    )


@pytest.mark.parametrize("key", ["dk_\nX-Admin: yes", "dk_é", "a b", "\x00"])
def test_a_key_that_no_header_can_carry_is_refused(key: str) -> None:
    with pytest.raises(CommandFailed) as failure:
        open_session(HERE, None, key, False)
    assert failure.value.exit_code == ExitCode.NO_ACCESS


@pytest.mark.parametrize(
    "url",
    ["http://x:99999", "http://x:0", "http://[::1", "http://a b/", "ftp://x", "localhost:8420", "http://"],
)
def test_a_wrong_url_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(CommandFailed, match=re.escape("http://127.0.0.1:8420")) as failure:
        open_session(HERE, url, "dk_given", False)
    assert failure.value.exit_code == ExitCode.REFUSED_INPUT
