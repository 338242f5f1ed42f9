"""What commands need of the composition root: all that depends on which slices and stores there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

import click

from crossdock.engines.sql.target import Connection, PostgresTarget
from crossdock.settings import Settings
from crossdock.terminal.tour import Tour

Environ: TypeAlias = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class OperatorKey:
    value: str = field(repr=False)
    path: Path | None
    """Where it is kept; None: the settings give it."""
    is_new: bool
    """Made just now, and nobody has seen it."""


class Runtime(Protocol):
    @property
    def version(self) -> str: ...

    @property
    def commands(self) -> Sequence[click.Command]:
        """The slices' own."""

    @property
    def tours(self) -> Sequence[Tour]:
        """The slices' parts of `crossdock tour`."""

    def child_command(self, part: Literal["lane", "worker"]) -> tuple[str, ...]:
        """What the supervisor starts."""

    def connections_per_process(self, settings: Settings) -> int:
        """To PostgreSQL, at most, of each lane and of the worker."""

    def check_secrets(self, settings: Settings) -> None:
        """Raises SettingsError for one that is there and can't be used. Makes none."""

    def operator_key(self, settings: Settings) -> str | None:
        """As it is given or kept; None before the first start."""

    def make_secrets(self, settings: Settings) -> OperatorKey:
        """Makes those that are missing."""

    async def put_operator_key(self, settings: Settings, target: PostgresTarget) -> None:
        """Has the database know the operator key."""

    async def migrate(self, settings: Settings, target: PostgresTarget, environ: Environ) -> Sequence[str]:
        """Brings every store up to date. The names of the migrations applied."""

    async def pending(self, connection: Connection) -> Sequence[str]:
        """The names of the migrations that are not applied yet."""

    async def items_problems(
        self, settings: Settings, target: PostgresTarget | None, environ: Environ
    ) -> Sequence[str]:
        """What is wrong with the items engine or its tables, each with how to mend it.

        `target` None: there is no PostgreSQL to look into.
        """
