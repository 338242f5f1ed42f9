"""`crossdock hooks …` against a real `crossdock up`: what a user types, and what comes of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.support.ports import free_port
from tests.support.server import Server
from tests.support.waiting import wait_until

from crossdock.hooks.tour_receiver import TourReceiver
from crossdock.terminal.failures import ExitCode

SECRET = "It's a Secret to Everybody"


@dataclass(frozen=True)
class Shell:
    """What is typed after `crossdock hooks`."""

    server: Server
    user_id: str

    def json(self, *arguments: str, input: bytes | None = None) -> Any:
        done = self.server.command("hooks", *arguments, "--json", input=input)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    def text(self, *arguments: str) -> str:
        done = self.server.command("hooks", *arguments)
        assert done.exit_code == 0, done.output
        return done.stdout

    def refused(self, *arguments: str) -> tuple[int, str]:
        done = self.server.command("hooks", *arguments)
        assert done.exit_code != 0, done.output
        return done.exit_code, done.stderr

    def source(self, *arguments: str) -> str:
        made = self.json(
            "sources", "create", "GitHub", "--provider", "github", "--user", self.user_id, *arguments
        )
        return str(made["source_id"])

    def connection(self, source_id: str, url: str, *arguments: str) -> dict[str, Any]:
        made: dict[str, Any] = self.json(
            "connections", "create", source_id, url, "--name", "billing", *arguments
        )
        return made

    def status(self, event_id: str) -> str:
        return str(self.json("events", "show", event_id)["status"])


@pytest.fixture(scope="module")
def shell(embedded_server: Server) -> Shell:
    made = embedded_server.command(
        *(
            "hooks",
            "users",
            "create",
            f"{uuid4().hex}@example.com",
            "--name",
            "Ann",
            "--plan",
            "pro",
            "--json",
        )
    )
    return Shell(embedded_server, json.loads(made.stdout)["user_id"])


@pytest.fixture
def receiver() -> Iterator[TourReceiver]:
    receiver = TourReceiver()
    receiver.start()
    yield receiver
    receiver.stop()


def attribute(shown: str, name: str) -> str:
    """Of one thing, shown to people."""
    found = re.search(rf"^{name} +(.*)$", shown, re.MULTILINE)
    assert found is not None, shown
    return found[1]


# --- the first steps -------------------------------------------------------------------------------


def test_the_first_steps_lead_from_a_source_to_a_delivery(shell: Shell, receiver: TourReceiver) -> None:
    source_id = shell.source("--secret", SECRET)
    shell.connection(source_id, receiver.url)
    sent = shell.json("send", source_id, "--secret", SECRET)
    assert sent["status"] == 200
    wait_until(lambda: shell.status(sent["event_id"]) == "delivered")
    assert len(receiver.received) == 1
    [listed] = shell.json("events", "list", source_id)
    assert (listed["event_id"], listed["verified"], listed["status"]) == (sent["event_id"], True, "delivered")
    [attempt] = shell.json("events", "attempts", sent["event_id"])
    assert (attempt["status_code"], attempt["destination_url"]) == (200, receiver.url)


def test_what_is_shown_to_people_is_a_table_or_a_line_for_each_attribute(
    shell: Shell, receiver: TourReceiver
) -> None:
    source_id = shell.source()
    shell.connection(source_id, receiver.url, "--filters", '[{"on": "body", "match": {"a": 1}}]')
    assert shell.text("sources", "list", "--user", shell.user_id).startswith("SOURCE ID  ")
    assert attribute(shell.text("sources", "show", source_id), "source_id") == source_id
    [line] = shell.text("connections", "list", source_id).splitlines()[1:]
    assert receiver.url in line
    shown = shell.text("connections", "show", line.split()[0])
    assert attribute(shown, "filters") == '[{"on":"body","match":{"a":1}}]'


# --- users and keys --------------------------------------------------------------------------------


def test_a_user_is_made_and_listed(shell: Shell) -> None:
    listed = shell.json("users", "list", "--limit", "200")
    assert shell.user_id in {each["user_id"] for each in listed}


def test_a_key_is_printed_once_works_and_is_deleted(shell: Shell) -> None:
    made = shell.json("keys", "create", "--name", "laptop", "--permissions", "write", "--user", shell.user_id)
    assert made["api_key"].startswith("fh_")
    listed = shell.json("keys", "list", "--user", shell.user_id)
    assert [(each["key_id"], each["permissions"]) for each in listed] == [(made["key_id"], "write")]
    assert "api_key" not in listed[0]
    done = shell.server.command("hooks", "sources", "list", "--key", made["api_key"])
    assert done.exit_code == 0
    shell.text("keys", "delete", made["key_id"], "--user", shell.user_id)
    assert shell.json("keys", "list", "--user", shell.user_id) == []


def test_a_password_is_asked_for_if_none_follows(shell: Shell) -> None:
    email = f"{uuid4().hex}@example.com"
    arguments = ("hooks", "users", "create", email, "--name", "Bo", "--json", "--password")
    made = shell.server.command(*arguments, input=b"correct horse\ncorrect horse\n")
    assert made.exit_code == 0, made.output
    login = {"email": email, "password": "correct horse"}
    assert shell.server.client().post("/v1/hooks/login", login)["token"].startswith("fhs_")


# --- sources ---------------------------------------------------------------------------------------


def test_a_source_is_paused_resumed_and_deleted(shell: Shell) -> None:
    source_id = shell.source()
    assert shell.json("sources", "pause", source_id)["status"] == "paused"
    assert shell.json("sources", "resume", source_id)["status"] == "active"
    assert shell.refused("sources", "delete", source_id)[0] == ExitCode.FAILED  # nobody said yes
    shell.text("sources", "delete", source_id, "--yes")
    exit_code, said = shell.refused("sources", "show", source_id)
    assert (exit_code, "source_not_found" in said) == (ExitCode.NOT_FOUND, True)


def test_a_secret_is_rotated_and_the_old_one_is_good_for_a_while(shell: Shell) -> None:
    source_id = shell.source("--secret", SECRET)
    rotated = shell.json(
        "sources", "rotate-secret", source_id, "--secret", "another", "--grace-seconds", "600"
    )
    assert len(rotated["previous_secrets_valid_until"]) == 1
    assert "another" not in str(rotated)
    assert shell.refused("sources", "rotate-secret", source_id)[0] == ExitCode.REFUSED_INPUT


def test_json_options_are_taken_as_they_stand_or_from_a_file(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "dedup.json"
    file.write_text('{"path": "data.id"}')
    source_id = shell.source("--dedup", f"@{file}", "--response", '{"status": 202, "body": "ok"}')
    shown = shell.json("sources", "show", source_id)
    assert shown["dedup"]["path"] == "data.id"
    assert shown["response"]["status"] == 202


@pytest.mark.parametrize("value", ["{", "@/nowhere/at/all", "nonsense"])
def test_what_is_no_json_is_wrong_usage(shell: Shell, value: str) -> None:
    exit_code, said = shell.refused("sources", "create", "X", "--provider", "github", "--dedup", value)
    assert (exit_code, "--dedup" in said) == (ExitCode.REFUSED_INPUT, True)


# --- connections -----------------------------------------------------------------------------------


def test_a_connection_takes_all_its_options_and_shows_its_secret_once(
    shell: Shell, receiver: TourReceiver
) -> None:
    source_id = shell.source()
    made = shell.connection(
        source_id,
        receiver.url,
        *("--filters", '[{"on": "method", "match": "POST"}]', "--transform", '[{"remove": ["a"]}]'),
        *("--retry", '{"schedule_seconds": [0, 60]}', "--header", "X-Team=billing", "--header", "X-B=a=b"),
        *("--rate-limit", "10/1", "--max-in-flight", "3", "--timeout-seconds", "20"),
    )
    assert made["signing_secret"].startswith("whsec_")
    shown = shell.json("connections", "show", made["connection_id"])
    assert "signing_secret" not in shown
    assert (shown["max_in_flight"], shown["timeout_seconds"], shown["ordered"]) == (3, 20, False)
    assert shown["rate_limit"] == {"requests": 10, "per_seconds": 1}
    assert shown["headers"].keys() == {"X-Team", "X-B"}
    assert [each["connection_id"] for each in shell.json("connections", "list", source_id)] == [
        made["connection_id"]
    ]


def test_a_connection_is_paused_resumed_rotated_and_deleted(shell: Shell, receiver: TourReceiver) -> None:
    made = shell.connection(shell.source(), receiver.url, "--ordered")
    connection_id = made["connection_id"]
    assert made["ordered"] is True
    assert shell.json("connections", "pause", connection_id)["status"] == "paused"
    assert shell.json("connections", "resume", connection_id)["status"] == "active"
    rotated = shell.json("connections", "rotate-secret", connection_id, "--grace-seconds", "0")
    assert rotated["signing_secret"] != made["signing_secret"]
    shell.text("connections", "delete", connection_id, "--yes")
    assert shell.refused("connections", "show", connection_id)[0] == ExitCode.NOT_FOUND


def test_what_will_not_work_as_it_is_is_said_beside_the_result(shell: Shell) -> None:
    done = shell.server.command(
        *("hooks", "connections", "create", shell.source(), "https://crossdock.invalid/hook", "--name", "x")
    )
    assert done.exit_code == 0
    assert "destination_url: " in done.stderr
    assert attribute(done.stdout, "signing_secret").startswith("whsec_")


@pytest.mark.parametrize(
    "arguments", [("--header", "X-Team"), ("--rate-limit", "10"), ("--rate-limit", "a/b"), ("--header", "=x")]
)
def test_an_option_of_another_form_is_wrong_usage(shell: Shell, arguments: tuple[str, str]) -> None:
    exit_code, said = shell.refused("connections", "create", "s", "http://x", "--name", "x", *arguments)
    assert (exit_code, arguments[0] in said) == (ExitCode.REFUSED_INPUT, True)


# --- sending ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "secret"),
    [
        ("stripe", "whsec_anything"),
        ("github", SECRET),
        ("shopify", "grüße"),
        ("standard-webhooks", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
    ],
)
def test_a_sample_is_verified_by_a_source_of_its_provider(shell: Shell, provider: str, secret: str) -> None:
    wanted = ("sources", "create", provider, "--provider", provider, "--secret", secret)
    source_id = shell.json(*wanted, "--user", shell.user_id)["source_id"]
    event_id = shell.json("send", source_id, "--secret", secret)["event_id"]
    assert shell.json("events", "show", event_id)["verified"] is True
    exit_code, said = shell.refused("send", source_id)
    assert (exit_code, "invalid_signature" in said) == (ExitCode.NO_ACCESS, True)
    [refused] = shell.json("refused", source_id)
    assert refused["reason"] == "signature_missing"


def test_a_body_of_ones_own_is_sent_byte_for_byte_and_can_be_had_back(shell: Shell, tmp_path: Path) -> None:
    source_id, file = shell.source(), tmp_path / "body"
    file.write_bytes(bytes(range(256)))
    event_id = shell.json("send", source_id, str(file), "--path", "orders/1", "--provider", "unsigned")[
        "event_id"
    ]
    shown = shell.json("events", "show", event_id)
    assert (shown["path"], shown["size"], shown["verified"]) == ("/orders/1", 256, False)
    done = shell.server.command("hooks", "events", "show", event_id, "--body")
    assert done.stdout_bytes == bytes(range(256))
    assert "(a body of 256 bytes that are no text" in shell.text("events", "show", event_id)


def test_the_answer_that_a_source_gives_hides_no_event_id(shell: Shell) -> None:
    source_id = shell.source("--response", '{"status": 202, "body": "thanks"}')
    sent = shell.json("send", source_id)
    assert sent["status"] == 202
    assert shell.json("events", "show", sent["event_id"])["source_id"] == source_id


def test_what_can_not_be_sent_says_why(shell: Shell) -> None:
    slack = shell.json(
        *("sources", "create", "Slack", "--provider", "slack", "--user", shell.user_id, "--secret", SECRET)
    )["source_id"]
    for arguments, exit_code, said in [
        (("src_0000000000000000",), ExitCode.NOT_FOUND, "source_not_found"),
        (("src_0000000000000000", "--provider", "github"), ExitCode.NOT_FOUND, "source_not_found"),
        ((slack,), ExitCode.REFUSED_INPUT, "give --provider"),
        ((slack, "--provider", "standard-webhooks", "--secret", "#"), ExitCode.REFUSED_INPUT, "whsec_"),
        (
            ("s", "--provider", "github", "--url", f"http://127.0.0.1:{free_port()}"),
            ExitCode.UNAVAILABLE,
            "noth",
        ),
    ]:
        assert shell.refused("send", *arguments)[0] == exit_code, arguments
        assert said in shell.refused("send", *arguments)[1]


# --- events ----------------------------------------------------------------------------------------


def test_an_event_is_shown_with_headers_body_and_deliveries(shell: Shell, receiver: TourReceiver) -> None:
    source_id = shell.source()
    connection_id = shell.connection(source_id, receiver.url)["connection_id"]
    event_id = shell.json("send", source_id)["event_id"]
    wait_until(lambda: shell.status(event_id) == "delivered")
    shown = shell.text("events", "show", event_id)
    for part in (event_id, "x-github-event:  push", '"ref":"refs/heads/main"', connection_id, "delivered"):
        assert part in shown


def test_events_are_listed_by_status_time_and_content(shell: Shell) -> None:
    source_id = shell.source()
    event_id = shell.json("send", source_id)["event_id"]
    wait_until(lambda: shell.status(event_id) == "filtered")
    match, other = (
        '[{"on": "body", "match": {"pusher": {"name": "octocat"}}}]',
        '[{"on": "path", "match": "/x"}]',
    )

    def listed(*arguments: str) -> list[str]:
        return [each["event_id"] for each in shell.json("events", "list", source_id, *arguments)]

    assert listed() == listed("--status", "filtered", "--from", "-1h", "--match", match) == [event_id]
    assert listed("--status", "failed") == listed("--to", "-1h") == listed("--match", other) == []


def test_one_event_is_replayed(shell: Shell, receiver: TourReceiver) -> None:
    source_id = shell.source()
    connection_id = shell.connection(source_id, receiver.url)["connection_id"]
    event_id = shell.json("send", source_id)["event_id"]
    wait_until(lambda: shell.status(event_id) == "delivered")
    replayed = shell.json("events", "replay", event_id, "--connection", connection_id)
    assert replayed["connections"] == [connection_id]
    wait_until(lambda: len(receiver.received) == 2)


# --- replays ---------------------------------------------------------------------------------------


@pytest.fixture
def failed(shell: Shell, receiver: TourReceiver) -> str:
    """A source with three events that its broken receiver did not take."""
    source_id = shell.source()
    shell.connection(source_id, receiver.url, "--retry", '{"schedule_seconds": [0]}')
    receiver.status = 500
    event_ids = [shell.json("send", source_id)["event_id"] for _ in range(3)]
    wait_until(lambda: all(shell.status(event_id) == "failed" for event_id in event_ids))
    receiver.status = 200
    receiver.received.clear()
    return source_id


def test_many_events_are_replayed_after_a_plan(shell: Shell, receiver: TourReceiver, failed: str) -> None:
    plan = shell.json("replays", "plan", failed, "--status", "failed")
    assert (plan["would_replay"], plan["deliveries"], plan["at_least"]) == (3, 3, False)
    done = shell.server.command("hooks", "replays", "run", failed, "--status", "failed", "--yes")
    assert done.exit_code == 0, done.output
    assert "Replaying: 3 of 3 (100%)" in done.stderr
    assert attribute(done.stdout, "state") == "done"
    wait_until(lambda: len(receiver.received) == 3)
    [listed] = shell.json("replays", "list", failed)
    shown = shell.json("replays", "show", listed["replay_id"])
    assert (shown["state"], shown["replayed"]) == ("done", 3)
    exit_code, said = shell.refused("replays", "cancel", listed["replay_id"])
    assert (exit_code, "replay_ended" in said) == (ExitCode.CONFLICT, True)


def test_a_replay_is_not_begun_without_a_yes(shell: Shell, receiver: TourReceiver, failed: str) -> None:
    done = shell.server.command("hooks", "replays", "run", failed, input=b"n\n")
    assert done.exit_code == ExitCode.FAILED
    assert "Send 3 events, in 3 deliveries, again?" in done.output
    assert shell.json("replays", "list", failed) == []
    assert receiver.received == []


def test_a_replay_need_not_be_waited_for(shell: Shell, receiver: TourReceiver, failed: str) -> None:
    begun = shell.json("replays", "run", failed, "--yes", "--no-wait")
    assert begun["state"] == "running"
    wait_until(lambda: len(receiver.received) == 3)


def test_a_time_that_is_none_is_wrong_usage(shell: Shell) -> None:
    command: Callable[..., tuple[int, str]] = shell.refused
    for arguments in (("replays", "plan", "s", "--from", "soon"), ("events", "list", "s", "--to", "soon")):
        exit_code, said = command(*arguments)
        assert (exit_code, "'soon' is no time" in said) == (ExitCode.REFUSED_INPUT, True)
