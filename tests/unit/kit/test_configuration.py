from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.kit.configuration import (
    IpNetwork,
    SettingsError,
    describe,
    group,
    load,
    setting,
    unknown,
    url,
    variables,
)


@dataclass(frozen=True, slots=True)
class Inner:
    retention_days: int = setting(90, "Days to keep.", minimum=0, maximum=3650)
    ratio: float = setting(0.5, "A share.", minimum=0, maximum=1)


@dataclass(frozen=True, slots=True)
class Settings:
    host: str = setting("127.0.0.1", "Address to listen on.")
    port: int = setting(8420, "Port.", minimum=1, maximum=65535)
    verbose: bool = setting(False, "More words.")
    items: Literal["postgres", "dynamodb"] = setting("postgres", "Backend.")
    mode: str = setting("a", "Mode.", choices=("a", "b"))
    slices: tuple[str, ...] = setting(("devices",), "What serves.", choices=("devices", "hooks"))
    data_dir: Path = setting(Path("data"), "Where.")
    database_url: str | None = setting(
        None, "External.", secret=True, check=url("postgresql", host_required=False)
    )
    public_url: str | None = setting(None, "As seen.", check=url("http", "https"))
    egress_allow: tuple[IpNetwork, ...] | None = setting(None, "Reachable.")
    secret_key: str = setting("hunter2hunter2", "Seals.", secret=True)
    workers: int | None = setting(None, "Processes.", minimum=1)
    devices: Inner = group(Inner)


def loaded(**environ: str) -> Settings:
    return load(Settings, {f"CROSSDOCK_{name}": value for name, value in environ.items()}, "CROSSDOCK_")


def problem(**environ: str) -> str:
    with pytest.raises(SettingsError) as caught:
        loaded(**environ)
    return caught.value.message


def test_an_empty_environment_gives_the_defaults() -> None:
    assert loaded() == Settings()


@pytest.mark.parametrize(
    ("variable", "text", "field", "value"),
    [
        ("HOST", "0.0.0.0", "host", "0.0.0.0"),
        ("HOST", "", "host", ""),
        ("PORT", " 80 ", "port", 80),
        ("PORT", "", "port", 8420),
        ("VERBOSE", "YES", "verbose", True),
        ("VERBOSE", "0", "verbose", False),
        ("ITEMS", "dynamodb", "items", "dynamodb"),
        ("MODE", "b", "mode", "b"),
        ("SLICES", "devices, hooks,", "slices", ("devices", "hooks")),
        ("SLICES", "", "slices", ()),
        ("DATA_DIR", "/var/lib/x", "data_dir", Path("/var/lib/x")),
        ("DATA_DIR", "~/x", "data_dir", Path.home() / "x"),
        ("DATABASE_URL", "postgresql://u:p@h/db", "database_url", "postgresql://u:p@h/db"),
        ("DATABASE_URL", "postgresql:///db?host=/run/pg", "database_url", "postgresql:///db?host=/run/pg"),
        ("DATABASE_URL", "", "database_url", None),
        ("PUBLIC_URL", "https://[::1]:8420/x", "public_url", "https://[::1]:8420/x"),
        (
            "EGRESS_ALLOW",
            "10.0.0.0/8,::1",
            "egress_allow",
            (ip_network("10.0.0.0/8"), ip_network("::1/128")),
        ),
        ("EGRESS_ALLOW", "", "egress_allow", ()),
        ("WORKERS", "2", "workers", 2),
        ("WORKERS", "", "workers", None),
    ],
)
def test_a_variable_is_read_as_its_field_says(variable: str, text: str, field: str, value: object) -> None:
    assert getattr(loaded(**{variable: text}), field) == value


def test_a_group_reads_variables_under_its_own_name() -> None:
    assert loaded(DEVICES_RETENTION_DAYS="7", DEVICES_RATIO="0.25").devices == Inner(7, 0.25)


@pytest.mark.parametrize(
    ("variable", "text", "says"),
    [
        ("PORT", "http", "must be a whole number, not 'http'"),
        ("PORT", "1.5", "must be a whole number"),
        ("PORT", "0", "must be at least 1"),
        ("PORT", "65536", "must be at most 65535"),
        ("VERBOSE", "perhaps", "must be true or false"),
        ("ITEMS", "mongo", "must be postgres or dynamodb"),
        ("MODE", "c", "must be a or b"),
        ("SLICES", "devices,hook", "must be devices or hooks"),
        ("PUBLIC_URL", "example.com", "must be a URL that starts with http:// or https://"),
        ("PUBLIC_URL", "https://", "must be a URL"),
        ("PUBLIC_URL", "https://h:0", "must be a URL"),
        ("PUBLIC_URL", "https://h:99999", "must be a URL"),
        ("PUBLIC_URL", "https://[::1", "must be a URL"),
        ("EGRESS_ALLOW", "10.0.0.1/8", "CIDR"),
        ("EGRESS_ALLOW", "example.com", "CIDR"),
        ("WORKERS", "0", "must be at least 1"),
        ("DEVICES_RATIO", "nan", "must be a finite number"),
        ("DEVICES_RATIO", "2", "must be at most 1"),
        ("DEVICES_RETENTION_DAYS", "-1", "must be at least 0"),
    ],
)
def test_a_bad_value_is_refused_naming_the_variable_and_what_it_must_be(
    variable: str, text: str, says: str
) -> None:
    message = problem(**{variable: text})
    assert message.startswith(f"CROSSDOCK_{variable} ")
    assert says in message


def test_every_bad_variable_is_reported_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        loaded(PORT="x", MODE="c", DEVICES_RATIO="9")
    assert [line.split()[0] for line in caught.value.problems] == [
        "CROSSDOCK_PORT",
        "CROSSDOCK_MODE",
        "CROSSDOCK_DEVICES_RATIO",
    ]


@pytest.mark.parametrize("text", ["mysql://me:hunter3@host/db", "postgresql://me:hunter3/x@host/db"])
def test_a_bad_secret_is_reported_without_its_value(text: str) -> None:
    message = problem(DATABASE_URL=text)
    assert "CROSSDOCK_DATABASE_URL must be a URL" in message
    assert "hunter3" not in message


def test_secrets_are_in_neither_repr_nor_reference() -> None:
    settings = loaded(DATABASE_URL="postgresql://u:hunter3@h/db")
    assert "hunter" not in repr(settings)
    assert "hunter" not in repr(describe(Settings))


def test_the_reference_describes_every_variable_that_load_reads() -> None:
    described = {each.variable: each for each in describe(Settings)}
    assert described.keys() == variables(Settings)
    assert all(each.help for each in described.values())
    port = described["CROSSDOCK_PORT"]
    assert (port.kind, port.default) == ("whole number from 1 to 65535", "8420")
    assert described["CROSSDOCK_ITEMS"].kind == "postgres or dynamodb"
    assert described["CROSSDOCK_SLICES"].kind == "devices or hooks, comma-separated"
    assert described["CROSSDOCK_EGRESS_ALLOW"].kind == "CIDR range, comma-separated"
    assert described["CROSSDOCK_VERBOSE"].default == "false"
    assert described["CROSSDOCK_DEVICES_RATIO"].kind == "number from 0 to 1"


def test_a_misspelt_variable_is_listed_with_the_one_it_looks_like() -> None:
    environ = {"CROSSDOCK_PROT": "1", "CROSSDOCK_ZZZ": "1", "CROSSDOCK_PORT": "1", "PATH": "/bin"}
    assert unknown(environ, variables(Settings)) == {
        "CROSSDOCK_PROT": "CROSSDOCK_PORT",
        "CROSSDOCK_ZZZ": None,
    }


def test_a_field_without_a_description_is_refused() -> None:
    @dataclass(frozen=True)
    class Bare:
        port: int = 1

    with pytest.raises(TypeError, match=r"Bare\.port"):
        load(Bare, {})


@given(st.dictionaries(st.sampled_from(sorted(variables(Settings))), st.text(max_size=30)))
def test_any_environment_gives_settings_within_bounds_or_a_settings_error(environ: dict[str, str]) -> None:
    try:
        settings = load(Settings, environ)
    except SettingsError as error:
        assert all(line.split()[0] in environ for line in error.problems)
    else:
        assert 1 <= settings.port <= 65535
        assert settings.mode in ("a", "b")
        assert 0 <= settings.devices.ratio <= 1
