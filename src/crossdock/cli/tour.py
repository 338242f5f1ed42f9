"""`crossdock tour`: drives a running server through all its slices, as a user would."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import click

from crossdock.cli.runtime import Runtime
from crossdock.terminal.failures import CommandFailed
from crossdock.terminal.options import Session, server_command
from crossdock.terminal.tour import Outcome, Tour, Visitor, walk

HEADERS = ("SLICE", "STEP", "EXPECTED", "CAME", "MS", "OK")


def tour_command(runtime: Runtime) -> click.Command:
    @click.command("tour")
    @server_command
    def tour(session: Session) -> None:
        """Use every slice of a running server as a user would, and print what happened.

        What the tour makes, it removes again. The exit code is 1 if any step failed.
        """
        session.client.get("/v1/sync/keys", {"limit": 1})  # nobody there, or a wrong key: said once, at once
        served = slices_served(session.client.get("/openapi.json"))
        for tour in runtime.tours:
            if tour.slice not in served:
                session.output.note(f"The slice {tour.slice} is switched off there.")
        rows = list(travel([tour for tour in runtime.tours if tour.slice in served], session))
        session.output.rows(rows, HEADERS, colour_of=lambda row: None if row[-1] else "red")
        failed = sum(not row[-1] for row in rows)
        if failed:
            raise CommandFailed(f"{failed} of {len(rows)} steps failed.")
        session.output.note(f"All {len(rows)} steps went as they should.")

    return tour


def slices_served(openapi: Mapping[str, Any]) -> set[str]:
    """By the paths it describes: `/v1/{slice}/…`."""
    parts = (path.split("/") for path in openapi["paths"])
    return {each[2] for each in parts if len(each) > 2 and each[1] == "v1"}


def travel(tours: Sequence[Tour], session: Session) -> Iterator[tuple[object, ...]]:
    visitor = Visitor(session.client, session.client_with, session.clock, os.urandom)
    for tour in tours:
        with closing(walk(tour.steps(visitor), session.clock)) as outcomes:
            for outcome in outcomes:
                yield row(tour.slice, outcome)


def row(slice_name: str, outcome: Outcome) -> tuple[object, ...]:
    step = outcome.step
    return slice_name, step.name, step.expected, outcome.came, round(outcome.duration_ms, 1), outcome.ok
