from __future__ import annotations

import io
import json

import pytest
from tests.support.clock import ManualClock

from crossdock.terminal.output import Output, wants_colours
from crossdock.terminal.progress import Progress, progress_text

ENTRIES: list[dict[str, object]] = [
    {"hardware_id": "AA:BB", "friendly_name": "roof", "sensors": {"temp": 1.5}},
    {"hardware_id": "CC:DD", "friendly_name": None, "sensors": {}},
]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def output(stdout: io.StringIO, *, as_json: bool = False, environ: dict[str, str] | None = None) -> Output:
    return Output.of_process(stdout, io.StringIO(), environ or {}, as_json=as_json)


def test_a_list_in_a_pipe_is_a_plain_table_with_nothing_cut() -> None:
    pipe = io.StringIO()
    output(pipe).entries([{"hardware_id": "x" * 300}], ["hardware_id"])
    assert pipe.getvalue() == "HARDWARE ID\n" + "x" * 300 + "\n"


def test_a_list_as_json_has_the_whole_entries() -> None:
    pipe = io.StringIO()
    output(pipe, as_json=True).entries(ENTRIES, ["hardware_id"])
    assert json.loads(pipe.getvalue()) == ENTRIES


def test_a_table_as_json_has_its_headers_as_names() -> None:
    pipe = io.StringIO()
    output(pipe, as_json=True).rows([["devices", True, 12]], ["STEP", "OK", "TOOK MS"])
    assert json.loads(pipe.getvalue()) == [{"step": "devices", "ok": True, "took_ms": 12}]


def test_one_thing_is_an_attribute_a_line() -> None:
    pipe = io.StringIO()
    output(pipe).value({"id": "k1", "raw_key": "abc"})
    assert pipe.getvalue() == "id       k1\nraw_key  abc\n"


def test_one_thing_as_json_is_an_object() -> None:
    pipe = io.StringIO()
    output(pipe, as_json=True).value(ENTRIES[0])
    assert json.loads(pipe.getvalue()) == ENTRIES[0]


@pytest.mark.parametrize(
    ("stream", "environ", "expected"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": ""}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
    ],
)
def test_colours_are_for_terminals_where_nobody_said_no(
    stream: io.StringIO, environ: dict[str, str], expected: bool
) -> None:
    assert wants_colours(stream, environ) is expected


def test_a_row_is_painted_on_a_terminal_and_plain_in_json() -> None:
    terminal, as_json = Terminal(), Terminal()
    for stream, json_wanted in ((terminal, False), (as_json, True)):
        output(stream, as_json=json_wanted).rows(
            [["bad"], ["good"]], ["STATE"], colour_of=lambda row: "red" if row[0] == "bad" else None
        )
    assert "\x1b[31mbad\x1b[0m\ngood\n" in terminal.getvalue()
    assert "\x1b" not in as_json.getvalue()


def test_notes_stay_out_of_the_result() -> None:
    pipe, errors = io.StringIO(), io.StringIO()
    Output.of_process(pipe, errors, {}).note("starting")
    assert (pipe.getvalue(), errors.getvalue()) == ("", "starting\n")


def test_progress_on_a_terminal_rewrites_one_line_ten_times_a_second_at_most() -> None:
    terminal, clock = Terminal(), ManualClock()
    with Progress("Importing", terminal, clock, total=1000) as progress:
        for _ in range(1000):
            clock.advance(ms=1)
            progress.advance()
    written = terminal.getvalue()
    assert written.count("\n") == 1
    assert written.endswith("Importing: 1,000 of 1,000 (100%), 1,000/s\n")
    assert 10 <= written.count("\r") <= 12


def test_progress_in_a_pipe_is_a_line_every_ten_seconds_and_the_last() -> None:
    pipe, clock = io.StringIO(), ManualClock()
    with Progress("Importing", pipe, clock, total=60) as progress:
        for _ in range(25):
            clock.advance(seconds=1)
            progress.advance()
    assert pipe.getvalue().splitlines() == [
        "Importing: 10 of 60 (16%), 1.0/s, 50 s left",
        "Importing: 20 of 60 (33%), 1.0/s, 40 s left",
        "Importing: 25 of 60 (41%), 1.0/s, 35 s left",
    ]


def test_progress_that_failed_leaves_its_last_state() -> None:
    pipe = io.StringIO()
    with pytest.raises(RuntimeError), Progress("Importing", pipe, ManualClock()) as progress:
        progress.advance(3)
        raise RuntimeError
    assert pipe.getvalue() == "Importing: 3\n"


@pytest.mark.parametrize(
    ("done", "total", "seconds", "text"),
    [
        (0, None, 0, "X: 0"),
        (5, None, 2, "X: 5, 2.5/s"),
        (0, 0, 1, "X: 0 of 0"),
        (0, 10, 5, "X: 0 of 10 (0%)"),
        (12_000, 12_000, 1, "X: 12,000 of 12,000 (100%), 12,000/s"),
    ],
)
def test_progress_says_what_is_known(done: int, total: int | None, seconds: float, text: str) -> None:
    assert progress_text("X", done, total, seconds) == text
