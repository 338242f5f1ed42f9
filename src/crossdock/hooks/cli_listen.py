"""`crossdock hooks listen`: a source's events on a developer's own machine, as they come.

It asks the server for everything, so nobody has to be able to reach this machine. Each event is sent on once,
in the order in which it was told; when the connection is lost it goes on after the last one that was sent on.
"""

from __future__ import annotations

import io
import random
import time
from collections import OrderedDict
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import click
import msgspec

from crossdock.hooks.cli_options import hooks_path
from crossdock.hooks.rules.forwarding import forwarded_headers, is_below, target_url
from crossdock.kit.backoff import Backoff
from crossdock.terminal.failures import CommandFailed, ExitCode
from crossdock.terminal.options import Session, check_url, server_command
from crossdock.terminal.sending import NotAnswered, send_request
from crossdock.terminal.streaming import ServerEvent, StreamingClient
from crossdock.terminal.table import cell_text

RECONNECT = Backoff(base_seconds=0.5, cap_seconds=15.0)
COLOURS = {"ok": "green", "refused": "yellow", "unanswered": "red"}
REMEMBERED_MAX = 5_000
"""Events that were sent on, so that none is when it is told again."""


@dataclass(frozen=True, slots=True)
class Forwarded:
    """An event, and what became of it here. `status` None: it got no answer, and `error` says why."""

    received_at: str
    event_id: str
    method: str
    path: str
    size: int
    status: int | None = None
    duration_ms: float | None = None
    error: str | None = None

    @property
    def outcome(self) -> str:
        if self.status is None:
            return "unanswered"
        return "ok" if 200 <= self.status < 300 else "refused"


@click.command()
@click.option("--source", "source_id", required=True, metavar="ID", help="The source to listen to.")
@click.option(
    "--to",
    "target",
    required=True,
    metavar="URL",
    help="Where to send its events: http://localhost:3000/hook.",
)
@click.option(
    "--path",
    "below",
    metavar="PATH",
    default="",
    help="Only events that came to this path below the source's.",
)
@click.option(
    "--status-ok-only", is_flag=True, help="Print only what was answered with 2xx; all are counted."
)
@server_command
def listen(session: Session, *, source_id: str, target: str, below: str, status_ok_only: bool) -> None:
    """Send a source's new events to this machine, until stopped.

    Each goes out as it came in: its method, its path below --to, its query, its headers, and its body byte
    for byte; credentials are not kept, so they are not there. No connection from outside is needed. With
    --json every event is a line of JSON.
    """
    listening = Listening(session, source_id, check_url(target), below, ok_only=status_ok_only)
    try:
        listening.run()
    except KeyboardInterrupt:
        session.output.note(f"\n{listening.summary()}")


class Listening:
    def __init__(self, session: Session, source_id: str, target: str, below: str, *, ok_only: bool) -> None:
        self._session = session
        self._client = StreamingClient.like(session.client)
        self._source_id = source_id
        self._target = target
        self._below = below
        self._ok_only = ok_only
        self._last_event_id: str | None = None
        self._sent_on: OrderedDict[str, None] = OrderedDict()
        self._counts = dict.fromkeys(COLOURS, 0)
        self._failures = 0
        """Since something last went well."""
        self._was_open = False
        self._is_lost = False
        """And that was said."""

    def run(self) -> None:
        """Until interrupted. Raises CommandFailed for what trying again would not mend."""
        while True:
            try:
                goes_on = self._follow()
            except CommandFailed as failure:
                if not self._was_open or failure.exit_code != ExitCode.UNAVAILABLE:
                    raise
                goes_on = False
                self._tell_lost(failure)
            if not goes_on:
                self._failures += 1
                time.sleep(RECONNECT.delay_seconds(self._failures, random.random))

    def summary(self) -> str:
        counts = self._counts
        return (
            f"{sum(counts.values()):,} events: {counts['ok']:,} answered with 2xx,"
            f" {counts['refused']:,} with something else, {counts['unanswered']:,} not at all."
        )

    def _follow(self) -> bool:
        """Until the stream ends, or says that something is missing. Whoever asks again gets that: at once
        (True), unless nothing came this time."""
        events = self._client.events(
            "/v1/hooks/stream",
            {"source_id": self._source_id},
            last_event_id=self._last_event_id,
            on_open=self._tell_open,
        )
        is_new = False
        with closing(events):
            for event in events:
                if event.name == "event":
                    is_new = self._take(event) or is_new
                elif event.name == "lagged":
                    return is_new
                self._last_event_id = event.last_event_id
        return False

    def _tell_open(self) -> None:
        if not self._was_open:
            where = f"{self._source_id} -> {self._target}"
            self._session.output.note(f"Listening: {where}. Ctrl-C stops it.")
        elif self._is_lost:
            self._session.output.note("Listening again.")
        self._was_open, self._is_lost = True, False

    def _tell_lost(self, failure: CommandFailed) -> None:
        if not self._is_lost:
            self._session.output.note(f"{failure.message} Trying again.")
        self._is_lost = True

    def _take(self, told: ServerEvent) -> bool:
        """False: it was sent on before."""
        summary = msgspec.json.decode(told.data)
        event_id = summary["event_id"]
        is_new = event_id not in self._sent_on
        if is_new and is_below(summary["path"], self._below):
            self._print(self._forward(summary))
        self._sent_on[event_id] = None
        if len(self._sent_on) > REMEMBERED_MAX:
            self._sent_on.popitem(last=False)
        self._failures = 0
        return is_new

    def _forward(self, summary: dict[str, Any]) -> Forwarded:
        names = ("received_at", "event_id", "method", "path", "size")
        known = {name: summary[name] for name in names}
        where, body = hooks_path("events", summary["event_id"]), io.BytesIO()
        try:
            event = self._session.client.get(where)
            self._session.client.download(f"{where}/body", body, accept="*/*")
        except CommandFailed as failure:
            if failure.exit_code == ExitCode.UNAVAILABLE:
                raise  # it comes again with the next connection
            return Forwarded(**known, error=failure.message)
        url = target_url(self._target, event["path"], event["query"])
        headers = forwarded_headers(event["headers"])
        try:
            reply = send_request(event["method"], url, headers, body.getvalue(), clock=self._session.clock)
        except NotAnswered as failure:
            return Forwarded(**known, error=str(failure))
        return Forwarded(**known, status=reply.status, duration_ms=round(reply.duration_ms, 1))

    def _print(self, forwarded: Forwarded) -> None:
        outcome = forwarded.outcome
        self._counts[outcome] += 1
        if self._ok_only and outcome != "ok":
            return
        output = self._session.output
        if output.as_json:
            line = msgspec.json.encode(forwarded).decode()
        else:
            line = output.paint(log_line(forwarded), COLOURS[outcome])
        output.stdout.write(line + "\n")
        output.stdout.flush()


def log_line(forwarded: Forwarded) -> str:
    """`10:30:00  evt_0123456789abcdef  POST /orders  1,024 B -> 200  12 ms`"""
    clock_time = forwarded.received_at.partition("T")[2][:8]
    what = f"{cell_text(forwarded.method)} {cell_text(forwarded.path or '/')}"
    outcome = (
        f"no answer: {cell_text(forwarded.error)}"
        if forwarded.status is None
        else f"{forwarded.status}  {forwarded.duration_ms:.0f} ms"
    )
    return f"{clock_time}  {forwarded.event_id}  {what}  {forwarded.size:,} B -> {outcome}"
