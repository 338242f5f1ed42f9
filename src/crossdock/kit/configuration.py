"""Settings: environment variables read once into frozen dataclasses.

    @dataclass(frozen=True, slots=True)
    class ServerSettings:
        port: int = setting(8420, "TCP port to listen on.", minimum=1, maximum=65535)
        database_url: str | None = setting(None, "External PostgreSQL.", secret=True, check=url("postgresql"))
        devices: DevicesSettings = group(DevicesSettings)

    load(ServerSettings, os.environ, "CROSSDOCK_")    # CROSSDOCK_PORT, CROSSDOCK_DEVICES_RETENTION_DAYS, ...

A field is a `str`, `int`, `float`, `bool`, `Path`, `IpNetwork`, a `Literal` of strings, a tuple of any of
these (comma-separated), any of them or `None`, or a group of further settings.

An empty variable is an empty tuple where the field is one, `None` where it may be `None`, an empty text where
it is one, and otherwise as good as unset: compose files pass on empty variables for what nobody set.

Every wrong variable is reported, not just the first, and the value of a secret is never repeated.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar
from urllib.parse import urlsplit

from crossdock.kit.errors import CrossdockError

PREFIX = "CROSSDOCK_"

IpNetwork: TypeAlias = IPv4Network | IPv6Network
Check: TypeAlias = Callable[[Any], None]
"""Raises ValueError saying what the value must be."""

T = TypeVar("T")


class SettingsError(CrossdockError):
    """One or more variables that can't be used; `problems` has a line for each, naming the variable."""

    def __init__(self, *problems: str) -> None:
        super().__init__("invalid_settings", "\n".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class _Setting:
    help: str
    minimum: float | None
    maximum: float | None
    choices: tuple[str, ...]
    secret: bool
    check: Check | None


@dataclass(frozen=True, slots=True)
class SettingDescription:
    """One variable, as the generated reference shows it. A secret's default is never in it."""

    variable: str
    kind: str
    default: str
    help: str
    secret: bool


def setting(
    default: object,
    help: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: Collection[str] | None = None,
    secret: bool = False,
    check: Check | None = None,
) -> Any:
    """A dataclass field that `load` reads from a variable. `help` is the sentence the reference prints."""
    about = _Setting(help, minimum, maximum, tuple(choices or ()), secret, check)
    return dataclasses.field(default=default, repr=not secret, metadata={"setting": about})


def group(settings: Callable[[], object]) -> Any:
    """A field of further settings; the field's name joins the prefix."""
    return dataclasses.field(default_factory=settings)


def url(*schemes: str, host_required: bool = True) -> Check:
    """A check for `setting`: an absolute URL with one of these schemes."""

    def check(value: str) -> None:
        if not _is_url(value, schemes, host_required):
            raise ValueError(f"must be a URL that starts with {' or '.join(s + '://' for s in schemes)}")

    return check


def _is_url(value: str, schemes: Collection[str], host_required: bool) -> bool:
    try:
        parts = urlsplit(value)
        return (
            parts.scheme in schemes
            and (not host_required or bool(parts.hostname))
            and (parts.port is None or parts.port > 0)
        )
    except ValueError:  # its text may quote a part of the password, so it isn't passed on
        return False


def load(cls: type[T], environ: Mapping[str, str], prefix: str = PREFIX) -> T:
    """The settings as the environment has them. Raises SettingsError naming every variable that is wrong."""
    problems: list[str] = []
    settings = _load(cls, environ, prefix, problems)
    if problems:
        raise SettingsError(*problems)
    return settings


def describe(cls: type, prefix: str = PREFIX) -> list[SettingDescription]:
    """Every variable, in the order of the fields."""
    return [
        SettingDescription(
            variable=variable,
            kind=_kind(annotation, about),
            default="" if about.secret else _as_text(default),
            help=about.help,
            secret=about.secret,
        )
        for variable, annotation, about, default in _variables(cls, prefix)
    ]


def variables(cls: type, prefix: str = PREFIX) -> frozenset[str]:
    """The names that `load` reads: the `known` of `unknown`."""
    return frozenset(variable for variable, *_ in _variables(cls, prefix))


def unknown(
    environ: Mapping[str, str], known: Collection[str], prefix: str = PREFIX
) -> dict[str, str | None]:
    """Variables with our prefix that nothing reads, each with the known name it looks like, if any."""
    return {
        name: next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.8)), None)
        for name in sorted(environ)
        if name.startswith(prefix) and name not in known
    }


# --- the tree --------------------------------------------------------------------------------------


def _fields(cls: type) -> Iterator[tuple[dataclasses.Field[Any], Any, _Setting | None]]:
    annotations = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        about = field.metadata.get("setting")
        annotation = annotations[field.name]
        if about is None and not dataclasses.is_dataclass(annotation):
            raise TypeError(f"{cls.__name__}.{field.name} is declared without setting(...) or group(...)")
        yield field, annotation, about


def _variables(cls: type, prefix: str) -> Iterator[tuple[str, Any, _Setting, object]]:
    for field, annotation, about in _fields(cls):
        variable = prefix + field.name.upper()
        if about is None:
            yield from _variables(annotation, variable + "_")
        else:
            yield variable, annotation, about, field.default


def _load(cls: type[T], environ: Mapping[str, str], prefix: str, problems: list[str]) -> T:
    values: dict[str, Any] = {}
    for field, annotation, about in _fields(cls):
        variable = prefix + field.name.upper()
        if about is None:
            values[field.name] = _load(annotation, environ, variable + "_", problems)
        elif variable in environ:
            try:
                values[field.name] = _read(environ[variable].strip(), annotation, about, field.default)
            except ValueError as error:
                shown = "" if about.secret else f", not {environ[variable]!r}"
                problems.append(f"{variable} {error}{shown}.")
    return cls(**values)


# --- one value -------------------------------------------------------------------------------------


def _read(text: str, annotation: Any, about: _Setting, default: object) -> object:
    inner, optional = _without_none(annotation)
    if text or inner is str or typing.get_origin(inner) is tuple:
        if not text and optional and inner is str:
            return None
        value = _parse(text, inner, about)
        _check(value, about)
        return value
    return None if optional else default


def _without_none(annotation: Any) -> tuple[Any, bool]:
    if typing.get_origin(annotation) not in (types.UnionType, typing.Union):
        return annotation, False
    arguments = typing.get_args(annotation)
    others = tuple(argument for argument in arguments if argument is not type(None))
    return typing.Union[others], len(others) < len(arguments)  # noqa: UP007 (built from a tuple)


def _parse(text: str, annotation: Any, about: _Setting) -> object:
    if typing.get_origin(annotation) is tuple:
        element = typing.get_args(annotation)[0]
        return tuple(_parse(part.strip(), element, about) for part in text.split(",") if part.strip())
    choices = about.choices or _literals(annotation)
    if choices and text not in choices:
        raise ValueError(f"must be {' or '.join(choices)}")
    if _literals(annotation):
        return text
    parser = _PARSERS.get(annotation)
    if parser is None:
        raise TypeError(f"a setting can't be {annotation}")
    return parser(text)


def _literals(annotation: Any) -> tuple[str, ...]:
    return typing.get_args(annotation) if typing.get_origin(annotation) is Literal else ()


def _check(value: object, about: _Setting) -> None:
    if isinstance(value, (int, float)):
        if about.minimum is not None and value < about.minimum:
            raise ValueError(f"must be at least {about.minimum}")
        if about.maximum is not None and value > about.maximum:
            raise ValueError(f"must be at most {about.maximum}")
    if about.check is not None:
        about.check(value)


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("must be a whole number") from None


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError("must be a number") from None
    if not math.isfinite(value):
        raise ValueError("must be a finite number")
    return value


def _boolean(text: str) -> bool:
    word = text.lower()
    if word not in _BOOLEANS:
        raise ValueError("must be true or false")
    return _BOOLEANS[word]


def _network(text: str) -> IpNetwork:
    try:
        return ip_network(text)
    except ValueError:
        raise ValueError(
            "must be addresses or CIDR ranges like 10.0.0.0/8, without bits after the /"
        ) from None


_BOOLEANS = {
    **dict.fromkeys(("true", "1", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "no", "off"), False),
}

_PARSERS: dict[Any, Callable[[str], object]] = {
    str: str,
    int: _integer,
    float: _number,
    bool: _boolean,
    Path: lambda text: Path(text).expanduser(),
    IpNetwork: _network,
}

_KINDS: dict[Any, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    Path: "path",
    IpNetwork: "CIDR range",
}


def _kind(annotation: Any, about: _Setting) -> str:
    inner, _ = _without_none(annotation)
    if typing.get_origin(inner) is tuple:
        return f"{_kind(typing.get_args(inner)[0], about)}, comma-separated"
    choices = about.choices or _literals(inner)
    if choices:
        return " or ".join(choices)
    bounds = [
        f"{word} {bound}"
        for word, bound in (("from", about.minimum), ("to", about.maximum))
        if bound is not None
    ]
    return " ".join([_KINDS[inner], *bounds])


def _as_text(default: object) -> str:
    if default is None:
        return ""
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, tuple):
        return ",".join(_as_text(element) for element in default)
    return str(default)
