"""README.md, "The first five minutes": its commands, run in their order by a real bash.

Two things are not as they stand there: the server's address, and that `crossdock-data` is a link to where
this server keeps its data. Each answer of curl is also kept in a file of its own, as they come without a
newline.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.engines import missing_engine
from tests.support.server import Server

README = Path(__file__).resolve().parents[2] / "README.md"
MARKER = "<!-- tested: the commands below are run by tests/e2e/test_readme.py -->"
ADDRESS = "export CROSSDOCK=http://127.0.0.1:8420\n"

COMMANDS = ("key", "device", "sent", "sent_again", "latest", "range", "buckets", "gaps", "csv", "list")
"""What the curls of README.md are for, one by one."""

PRELUDE = """\
set -euo pipefail
curl() {
    command curl --fail-with-body "$@" | tee "answers/$(printf %02d "$(ls answers | wc -l)")"
}
"""

DEVICE = "AA:BB:CC:DD:EE:FF"
BOOT_ID = "7c9e6679-7425-40de-944b-e07fc1f90ae7"


def commands_of_readme() -> str:
    _, _, tested = README.read_text().partition(MARKER)
    tested = tested.partition("<!-- tested: ")[0]
    return "".join(re.findall(r"^```bash\n(.*?)^```$", tested, re.MULTILINE | re.DOTALL))


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the commands have run: `answers/` has what each curl answered."""
    if shutil.which("curl") is None:
        missing_engine("curl", "install it (Debian and Ubuntu: apt install curl)")
    directory = tmp_path_factory.mktemp("readme")
    (directory / "answers").mkdir()
    with Server() as server:
        (directory / "crossdock-data").symlink_to(server.data_dir)
        commands = commands_of_readme()
        assert commands.count(ADDRESS) == 1
        script = PRELUDE + commands.replace(ADDRESS, f"export CROSSDOCK={server.url}\n")
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=directory,
            env={"PATH": os.environ["PATH"], "HOME": str(directory)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return directory


@pytest.fixture(scope="module")
def texts(directory: Path) -> Mapping[str, str]:
    found = [path.read_text() for path in sorted((directory / "answers").iterdir())]
    assert len(found) == len(COMMANDS), "a curl came or went: say here what it answers"
    return dict(zip(COMMANDS, found, strict=True))


@pytest.fixture(scope="module")
def answers(texts: Mapping[str, str]) -> Mapping[str, Any]:
    return {name: json.loads(text) for name, text in texts.items() if name != "csv"}


@pytest.fixture(scope="module")
def sent_at_ms(directory: Path) -> int:
    request = json.loads((directory / "readings.json").read_text())
    return int(request["readings"][0]["timestamp_ms"])


def test_a_key_is_made_and_shown(answers: Mapping[str, Any]) -> None:
    assert re.fullmatch(r"[0-9a-f]{64}", answers["key"]["api_key"])
    assert answers["key"]["description"] == "greenhouse"


def test_the_device_registers_with_that_key(answers: Mapping[str, Any]) -> None:
    assert answers["device"]["hardware_id"] == DEVICE
    assert answers["device"]["capabilities"] == {
        "sensors": ["bme280"],
        "features": {"offline_buffering": True},
    }


def test_readings_sent_twice_are_acknowledged_and_then_duplicates(
    answers: Mapping[str, Any], sent_at_ms: int
) -> None:
    batch_id = f"batch-{sent_at_ms}"
    first, second = answers["sent"], answers["sent_again"]
    assert (first["acknowledged"], first["duplicates"]) == ([batch_id], [])
    assert (second["acknowledged"], second["duplicates"]) == ([], [batch_id])


def test_the_bad_reading_is_rejected_alone_with_the_reason(answers: Mapping[str, Any]) -> None:
    for name in ("sent", "sent_again"):
        [rejected] = answers[name]["rejected"]
        assert (rejected["batch_id"], rejected["index"]) == ("unset-clock", 1)
        assert rejected["code"] == "timestamp_out_of_range"
        assert "set the device's clock" in rejected["detail"]


def test_the_latest_reading_and_the_range_are_the_one_that_was_sent(
    answers: Mapping[str, Any], sent_at_ms: int
) -> None:
    latest = answers["latest"]
    assert (latest["timestamp_ms"], latest["boot_id"]) == (sent_at_ms, BOOT_ID)
    assert latest["sensors"] == {"temp_c": 22.5}
    assert answers["range"] == {"data": [latest], "next_cursor": None}


def test_the_chart_has_its_hour(answers: Mapping[str, Any], sent_at_ms: int) -> None:
    hour_ms = 3_600_000
    values = {"temp_c": {"min": 22.5, "max": 22.5, "avg": 22.5}}
    hour = {"start_ms": sent_at_ms - sent_at_ms % hour_ms, "sensors": values}
    assert answers["buckets"] == {"data": [hour], "next_cursor": None}


def test_the_silence_is_the_day_before_the_reading(answers: Mapping[str, Any], sent_at_ms: int) -> None:
    [gap] = answers["gaps"]["data"]
    assert gap["to_ms"] == sent_at_ms
    assert gap["from_ms"] == pytest.approx(time.time() * 1000 - 86_400_000, abs=120_000)


def test_the_file_has_the_reading(texts: Mapping[str, str], sent_at_ms: int) -> None:
    [row] = csv.DictReader(texts["csv"].splitlines())
    assert (row["timestamp_ms"], row["sensors.temp_c"]) == (str(sent_at_ms), "22.5")
    assert row["sensor_status.bme280"] == "ok"


def test_the_device_is_listed_as_reporting(answers: Mapping[str, Any]) -> None:
    [device] = answers["list"]["data"]
    assert (device["hardware_id"], device["status"]) == (DEVICE, "reporting")


def test_the_pages_that_readme_sends_its_reader_to_are_there() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README.read_text())
    assert links
    assert [link for link in links if not (README.parent / link).exists()] == []
