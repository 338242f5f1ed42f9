"""README.md, "Webhooks, with curl alone": its commands, run in their order by a real bash.

Three things are not as they stand there: the server's address, the receiver's port, and that
`crossdock-data` is a link to where this server keeps its data.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook
from tests.support.engines import missing_engine
from tests.support.ports import free_port
from tests.support.server import Server

README = Path(__file__).resolve().parents[2] / "README.md"
MARKER = "<!-- tested: the commands below are run by tests/e2e/test_readme_hooks.py -->"
ADDRESS = "export CROSSDOCK=http://127.0.0.1:8420\n"
COMMANDS = (
    "user", "source", "connection", "event", "refusal", "refused", "delivered", "attempts", "late",
    "late_attempts", "plan", "job", "done", "replayed",
)  # fmt: skip
PRELUDE = """\
set -euo pipefail
curl() {
    command curl "$@" | tee "answers/$(printf %02d "$(ls answers | wc -l)")"
}
"""


def commands_of_readme() -> str:
    _, _, tested = README.read_text().partition(MARKER)
    tested = tested.partition("<!-- tested: ")[0].partition("\n## ")[0]
    return "".join(re.findall(r"^```bash\n(.*?)^```$", tested, re.MULTILINE | re.DOTALL))


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("curl") is None:
        missing_engine("curl", "install it (Debian and Ubuntu: apt install curl)")
    directory = tmp_path_factory.mktemp("readme-hooks")
    (directory / "answers").mkdir()
    commands, port = commands_of_readme(), str(free_port())
    assert commands.count(ADDRESS) == 1
    with Server() as server:
        (directory / "crossdock-data").symlink_to(server.data_dir)
        script = commands.replace(ADDRESS, f"export CROSSDOCK={server.url}\n").replace("9000", port)
        with (directory / "said").open("wb") as said:
            process = subprocess.Popen(
                ["bash", "-c", PRELUDE + script],
                cwd=directory,
                env={"PATH": os.environ["PATH"], "HOME": str(directory)},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            status = process.wait(90)
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # the receiver stays behind in the background
    assert status == 0, (directory / "said").read_text()
    return directory


@pytest.fixture(scope="module")
def answers(directory: Path) -> Mapping[str, Any]:
    found = [path.read_text() for path in sorted((directory / "answers").iterdir())]
    assert len(found) == len(COMMANDS), "a curl came or went: say here what it answers"
    named = dict(zip(COMMANDS, found, strict=True))
    return {name: json.loads(text) for name, text in named.items()}


def received(directory: Path) -> list[tuple[dict[str, str], str]]:
    lines = (directory / "received.log").read_text().splitlines()
    return [(ast.literal_eval(line[: line.index("}") + 1]), line[line.index("}") + 2 :]) for line in lines]


def test_the_webhook_arrives_with_a_signature_that_the_public_package_accepts(
    directory: Path, answers: Mapping[str, Any]
) -> None:
    headers, body = received(directory)[0]
    assert headers["webhook-id"] == answers["event"]["event_id"]
    assert body == "Hello, World!"
    Webhook(answers["connection"]["signing_secret"]).verify(body, headers, json_parse=False)


def test_a_wrong_signature_is_refused_and_kept_with_its_reason(answers: Mapping[str, Any]) -> None:
    assert answers["refusal"] == 401
    [refused] = answers["refused"]["data"]
    assert refused["reason"] == "signature_mismatch"


def test_the_delivery_and_its_attempt_can_be_seen(answers: Mapping[str, Any]) -> None:
    assert answers["delivered"]["status"] == "delivered"
    [delivery] = answers["delivered"]["deliveries"]
    assert (delivery["state"], delivery["attempts"]) == ("delivered", 1)
    assert [each["status_code"] for each in answers["attempts"]["data"]] == [200]


def test_a_broken_receiver_is_called_again_on_schedule(answers: Mapping[str, Any]) -> None:
    attempts = answers["late_attempts"]["data"]
    assert [each["status_code"] for each in attempts] == [500, 500, 500]
    assert [each["attempt_number"] for each in attempts] == [1, 2, 3]


def test_the_plan_says_how_many_and_the_replay_delivers_them(
    directory: Path, answers: Mapping[str, Any]
) -> None:
    assert answers["plan"]["would_replay"] == 1
    assert answers["done"]["state"] == "done"
    assert answers["replayed"]["status"] == "delivered"
    assert received(directory)[-1][0]["webhook-id"] == answers["late"]["event_id"]
