"""`crossdock doctor` beside a real server: nothing to say when all is well, and what to mend when not."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.ports import free_port
from tests.support.server import Server, run_command

NO_DATABASE = "postgresql://crossdock:hush@127.0.0.1:{port}/crossdock"


@dataclass(frozen=True)
class Diagnosis:
    exit_code: int
    found: dict[str, tuple[str, str]]
    """State and detail of each check."""
    stderr: str

    @property
    def problems(self) -> dict[str, str]:
        return {what: detail for what, (state, detail) in self.found.items() if state == "problem"}


def doctor_of(server: Server, **environ: str) -> Diagnosis:
    port = server.url.rpartition(":")[2]
    done = run_command("doctor", "--json", "--port", port, environ={**server.environ, **environ})
    assert "Traceback" not in done.stderr
    assert "hush" not in done.stdout + done.stderr
    rows = json.loads(done.stdout)
    found = {row["check"]: (row["state"], row["detail"]) for row in rows}
    assert len(found) == len(rows)
    return Diagnosis(done.returncode, found, done.stderr)


@pytest.mark.parametrize(
    ("backend", "items"),
    [
        ("embedded_server", "postgres"),
        pytest.param("dynamodb_server", "dynamodb", marks=pytest.mark.dynamodb),
    ],
)
def test_beside_a_healthy_server_all_is_well(
    request: pytest.FixtureRequest, backend: str, items: str
) -> None:
    server: Server = request.getfixturevalue(backend)
    diagnosis = doctor_of(server)
    assert (diagnosis.exit_code, diagnosis.stderr) == (0, "")
    assert {state for state, _ in diagnosis.found.values()} == {"ok"}
    assert diagnosis.found["server"][1] == f"{server.url} is ready"
    assert diagnosis.found["items tables"][1] == f"as declared, in {items}"


def test_before_the_first_start_there_are_notes_and_no_problems(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    environ = {"CROSSDOCK_DATA_DIR": str(data_dir), "CROSSDOCK_PORT": str(free_port())}
    done = run_command("doctor", "--json", environ=environ)
    assert done.returncode == 0
    assert {row["state"] for row in json.loads(done.stdout)} == {"ok", "note"}
    assert not data_dir.exists()


def test_a_database_that_is_away_is_told_with_where_it_is_looked_for(embedded_server: Server) -> None:
    port = free_port()
    diagnosis = doctor_of(embedded_server, CROSSDOCK_DATABASE_URL=NO_DATABASE.format(port=port))
    assert (diagnosis.exit_code, diagnosis.stderr) == (1, "Error: 1 problem found.\n")
    [(what, detail)] = diagnosis.problems.items()
    assert what == "PostgreSQL"
    assert detail.startswith(f"Can't connect to PostgreSQL at 127.0.0.1:{port}/crossdock: ")
    assert detail.endswith(
        "Check that it runs and that CROSSDOCK_DATABASE_URL names its host, user, password and database."
    )


def test_dynamodb_that_is_away_is_told_with_the_settings_that_name_it(embedded_server: Server) -> None:
    endpoint = f"127.0.0.1:{free_port()}"
    diagnosis = doctor_of(
        embedded_server,
        CROSSDOCK_ITEMS="dynamodb",
        CROSSDOCK_DYNAMODB_ENDPOINT=f"http://{endpoint}",
        AWS_REGION="us-east-1",
        AWS_ACCESS_KEY_ID="key",
        AWS_SECRET_ACCESS_KEY="hush",
    )
    assert (diagnosis.exit_code, diagnosis.stderr) == (1, "Error: 1 problem found.\n")
    [(what, detail)] = diagnosis.problems.items()
    assert what == "items tables"
    assert f"Cannot connect to host {endpoint}" in detail
    assert "Check that CROSSDOCK_DYNAMODB_ENDPOINT and the AWS_ variables name it" in detail


def test_everything_that_is_wrong_is_told_at_once(embedded_server: Server) -> None:
    diagnosis = doctor_of(
        embedded_server,
        CROSSDOCK_DATABASE_URL=NO_DATABASE.format(port=free_port()),
        CROSSDOCK_ITEMS="dynamodb",
        CROSSDOCK_DYNAMODB_ENDPOINT=f"http://127.0.0.1:{free_port()}",
        AWS_REGION="us-east-1",
        AWS_ACCESS_KEY_ID="key",
        AWS_SECRET_ACCESS_KEY="hush",
        CROSSDOCK_REDIS_URL=f"redis://:hush@127.0.0.1:{free_port()}",
        CROSSDOCK_WORKERZ="2",
    )
    assert (diagnosis.exit_code, diagnosis.stderr) == (1, "Error: 4 problems found.\n")
    assert diagnosis.problems.keys() == {"settings", "PostgreSQL", "items tables", "Redis"}
    assert diagnosis.problems["settings"] == "CROSSDOCK_WORKERZ is no setting. Is CROSSDOCK_WORKERS meant?"
