from __future__ import annotations

import pytest

from crossdock.cli.configuration import read_configuration
from crossdock.terminal.failures import CommandFailed, ExitCode


def test_a_flag_wins_over_its_variable_and_reaches_child_processes() -> None:
    configuration = read_configuration({"CROSSDOCK_PORT": "1", "OTHER": "x"}, {"port": "2"})
    assert configuration.settings.port == 2
    assert configuration.environ == {"CROSSDOCK_PORT": "2", "OTHER": "x"}


def test_a_variable_counts_where_there_is_no_flag() -> None:
    assert read_configuration({"CROSSDOCK_PORT": "1"}, {}).settings.port == 1


@pytest.mark.parametrize(
    ("environ", "flags", "said"),
    [
        ({}, {"port": "x"}, "--port must be a whole number, not 'x'."),
        ({"CROSSDOCK_PORT": "x"}, {}, "CROSSDOCK_PORT must be a whole number, not 'x'."),
        ({"CROSSDOCK_PORT": "1"}, {"port": "70000"}, "--port must be at most 65535, not '70000'."),
        ({}, {"workers": "0"}, "--workers must be at least 1, not '0'."),
        ({}, {"slices": "devices,hooky"}, "--slices must be hooks or devices, not 'devices,hooky'."),
    ],
)
def test_what_is_wrong_is_said_in_the_words_of_whoever_said_it(
    environ: dict[str, str], flags: dict[str, str], said: str
) -> None:
    with pytest.raises(CommandFailed) as failure:
        read_configuration(environ, flags)
    assert failure.value.message == said
    assert failure.value.exit_code == ExitCode.REFUSED_INPUT


def test_every_wrong_setting_is_named_at_once() -> None:
    with pytest.raises(CommandFailed, match=r"(?s)--port.*CROSSDOCK_ITEMS"):
        read_configuration({"CROSSDOCK_ITEMS": "sqlite"}, {"port": "x"})
