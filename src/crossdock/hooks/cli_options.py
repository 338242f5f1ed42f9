"""What the commands of `crossdock hooks` share: options, kinds of values, and the reading of lists."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import click
import msgspec

from crossdock.hooks.rules.searching import moment as rfc3339_ms
from crossdock.terminal.client import path
from crossdock.terminal.moments import FORMS, moment
from crossdock.terminal.options import Session

PAGE_MAX = 200


class JsonType(click.ParamType[Any]):
    """JSON as it stands, or `@FILE`."""

    name = "json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            text = Path(value[1:]).read_bytes() if value.startswith("@") else value.encode()
            return msgspec.json.decode(text)
        except OSError as error:
            return self.fail(f"{value[1:]}: {error.strerror}.", param, ctx)
        except (msgspec.DecodeError, UnicodeError) as error:
            return self.fail(f"{value!r} is not JSON ({error}). A file is given as @FILE.", param, ctx)


class PairType(click.ParamType[tuple[str, str]]):
    """`NAME=VALUE`"""

    name = "name=value"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        name, equals, content = str(value).partition("=")
        if not equals or not name:
            self.fail(f"{value!r} is not of the form NAME=VALUE.", param, ctx)
        return name, content


class RateType(click.ParamType[dict[str, int]]):
    """`10/1`: so many requests in so many seconds."""

    name = "n/seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, int]:
        if isinstance(value, dict):
            return value
        requests, slash, seconds = str(value).partition("/")
        if not slash or not requests.isdecimal() or not seconds.isdecimal():
            self.fail(f"{value!r} is not of the form REQUESTS/SECONDS, like 10/1.", param, ctx)
        return {"requests": int(requests), "per_seconds": int(seconds)}


limit_option = click.option(
    "--limit", type=click.IntRange(min=1), default=50, show_default=True, help="Entries at most."
)
user_option = click.option(
    "--user", "user_id", metavar="ID", help="Whose. The operator has to say; for others it is themselves."
)
name_option = click.option("--name", metavar="TEXT", required=True, help="For people.")
grace_option = click.option(
    "--grace-seconds",
    type=click.IntRange(min=0),
    metavar="N",
    help="How long the secret until now stays good, too: a day, unless given.",
)
secret_option = click.option(
    "--secret",
    metavar="SECRET",
    envvar="CROSSDOCK_HOOKS_SIGNING_SECRET",
    help="The provider's signing secret. The variable keeps it out of the list of processes.",
)
source_argument = click.argument("source_id", metavar="SOURCE")
connection_argument = click.argument("connection_id", metavar="CONNECTION")
event_argument = click.argument("event_id", metavar="EVENT")
from_option = click.option("--from", "from_text", metavar="TIME", help=f"Since when: {FORMS}.")
to_option = click.option("--to", "to_text", metavar="TIME", help="Until when; by default, now.")


def hooks_path(*segments: str) -> str:
    return path("v1", "hooks", *segments)


def entries(session: Session, where: str, query: Mapping[str, object], limit: int) -> list[dict[str, Any]]:
    return list(islice(session.client.pages(where, {**query, "limit": min(limit, PAGE_MAX)}), limit))


def given(**values: object) -> dict[str, object]:
    """Those that were given."""
    return {name: value for name, value in values.items() if value is not None}


def time_text(session: Session, option: str, text: str | None) -> str | None:
    """A moment as people write it, as the API takes it."""
    ms = moment(option, text, session.clock)
    return None if ms is None else rfc3339_ms(ms)


def print_value(session: Session, value: Mapping[str, Any]) -> None:
    """One thing; to people what is nested in it is shown as JSON, too, since that is how it is written."""
    if not session.output.as_json:
        value = {name: _flat(each) for name, each in value.items()}
    session.output.value(value)


def _flat(value: Any) -> Any:
    is_nested = isinstance(value, (dict, list)) and not all(isinstance(each, str) for each in value)
    return msgspec.json.encode(value).decode() if is_nested or isinstance(value, dict) else value
