"""`crossdock tour` against a real `crossdock up`: all of it comes true, and nothing of it stays."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from subprocess import CompletedProcess
from typing import Any

import pytest
from tests.crash.stores import TABLES, PostgresStore, Store
from tests.support.ports import free_port
from tests.support.server import Server, run_command

from crossdock.settings import SLICES
from crossdock.terminal.failures import ExitCode

KEYS, DEVICES = "/v1/devices/keys", "/v1/devices"


@dataclass(frozen=True)
class Toured:
    server: Server
    store: Store

    def tour(self, *arguments: str) -> CompletedProcess[str]:
        return run_command("tour", *arguments, environ=self.server.environ)

    async def traces(self) -> list[Any]:
        """Everything that a tour could leave, but for its key, which is kept revoked."""
        client = self.server.client()
        rows = [await self.store.rows(self.server, table) for table in TABLES]
        return [*rows, list(client.pages(DEVICES)), self.usable_keys()]

    def usable_keys(self) -> list[str]:
        return [each["key_id"] for each in self.server.client().pages(KEYS) if each["is_active"]]


@pytest.fixture(params=["embedded", pytest.param("dynamodb", marks=pytest.mark.dynamodb)])
def toured(request: pytest.FixtureRequest) -> Toured:
    if request.param == "embedded":
        return Toured(request.getfixturevalue("embedded_server"), PostgresStore())
    return Toured(request.getfixturevalue("dynamodb_server"), request.getfixturevalue("dynamodb_store"))


async def test_every_step_of_the_tour_goes_well_and_nothing_is_left(toured: Toured) -> None:
    before = await toured.traces()
    done = toured.tour("--json")
    assert (done.returncode, done.stderr) == (0, f"All {len(steps(done))} steps went as they should.\n")
    assert [step for step in steps(done) if not step["ok"]] == []
    assert {step["slice"] for step in steps(done)} == set(SLICES)
    assert await toured.traces() == before


def test_what_happened_is_printed_a_line_for_each_step(embedded_server: Server) -> None:
    done = run_command("tour", environ=embedded_server.environ)
    header, *lines = done.stdout.splitlines()
    assert header.split() == ["SLICE", "STEP", "EXPECTED", "CAME", "MS", "OK"]
    assert done.stderr == f"All {len(lines)} steps went as they should.\n"
    assert {line.split()[-1] for line in lines} == {"yes"}


def test_a_step_that_fails_is_shown_with_its_reason_and_makes_the_tour_fail(embedded_server: Server) -> None:
    """A workspace's key may look at keys, and do nothing with devices."""
    client = embedded_server.client()
    workspace = client.post("/v1/sync/workspaces", {"name": "tour"})
    key = client.post("/v1/sync/keys", {"label": "tour", "workspace_id": workspace["id"]})["key"]
    done = run_command("tour", "--json", "--key", key, environ=embedded_server.environ)
    failed = [step for step in steps(done) if not step["ok"]]
    assert (done.returncode, done.stderr) == (
        ExitCode.FAILED,
        f"Error: {len(failed)} of {len(steps(done))} steps failed.\n",
    )
    assert {
        "This credential lacks the permission devices:manage. (permission_denied)",
        "not tried: a step that it needs failed",
    } <= {step["came"] for step in failed}


# Arguments as a function of the server's URL and key; the exit code; what stderr says.
NOT_BEGUN: dict[str, tuple[Callable[[str, str], Sequence[str]], ExitCode, str]] = {
    "a key that nobody has": (
        lambda url, key: ["--key", key[:-1] + ("0" if key[-1] != "0" else "1")],
        ExitCode.NO_ACCESS,
        "The key or session is not valid, or not any more. (invalid_credential)",
    ),
    "what is no key at all": (
        lambda url, key: ["--key", "no key"],
        ExitCode.NO_ACCESS,
        "The key has characters that no key has.",
    ),
    "a port where nothing listens": (
        lambda url, key: ["--url", f"http://127.0.0.1:{free_port()}"],
        ExitCode.UNAVAILABLE,
        "nothing listens there. Start the server with: crossdock up",
    ),
    "a host that there is not": (
        lambda url, key: ["--url", "http://crossdock.invalid:8420", "--key", key],
        ExitCode.UNAVAILABLE,
        "http://crossdock.invalid:8420 can't be reached: ",
    ),
    "another machine, and no key for it": (
        lambda url, key: ["--url", "http://crossdock.invalid:8420"],
        ExitCode.NO_ACCESS,
        "No key: give --key, or set CROSSDOCK_OPERATOR_KEY, or CROSSDOCK_DATA_DIR",
    ),
    "a URL below which there is nothing": (
        lambda url, key: ["--url", f"{url}/elsewhere"],
        ExitCode.NOT_FOUND,
        "Nothing is at this path. (not_found)",
    ),
    "what is no URL": (
        lambda url, key: ["--url", "127.0.0.1"],
        ExitCode.REFUSED_INPUT,
        "'127.0.0.1' is not a URL like http://127.0.0.1:8420.",
    ),
}


@pytest.mark.parametrize(("arguments", "exit_code", "said"), NOT_BEGUN.values(), ids=NOT_BEGUN.keys())
def test_a_tour_that_can_not_begin_says_why_in_one_line(
    embedded_server: Server,
    arguments: Callable[[str, str], Sequence[str]],
    exit_code: ExitCode,
    said: str,
) -> None:
    given = arguments(embedded_server.url, embedded_server.operator_key)
    done = run_command("tour", *given, environ=embedded_server.environ)
    assert (done.returncode, done.stdout) == (exit_code, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("Error: ")
    assert said in line


def steps(done: CompletedProcess[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(done.stdout)
    assert found
    return found


def test_a_slice_that_is_switched_off_is_left_out_and_said() -> None:
    with Server("--slices", "") as server:
        result = run_command("tour", environ=server.environ)
    assert result.returncode == 0, result.stderr
    assert "The slice devices is switched off there." in result.stderr + result.stdout
