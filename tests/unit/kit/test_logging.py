from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.kit.logging import (
    HumanFormatter,
    JsonFormatter,
    clean,
    clean_text,
    configure,
    fields,
    is_secret_name,
)


def record(message: str = "hello", *args: object, **values: object) -> logging.LogRecord:
    made = logging.LogRecord("crossdock.devices", logging.INFO, "f.py", 1, message, args, None)
    made.created = 1_705_314_600.1234
    made.fields = values
    return made


def line_of(made: logging.LogRecord) -> dict[str, Any]:
    text = JsonFormatter("lane-1").format(made)
    assert "\n" not in text
    line = json.loads(text)
    assert isinstance(line, dict)
    return line


def test_a_line_is_json_with_time_level_logger_message_process_and_fields() -> None:
    assert line_of(record("stored %d", 12, batch_id="b1", rows=12)) == {
        "time": "2024-01-15T10:30:00.123Z",
        "level": "info",
        "logger": "crossdock.devices",
        "message": "stored 12",
        "process": "lane-1",
        "pid": os.getpid(),
        "batch_id": "b1",
        "rows": 12,
    }


def test_an_exception_is_a_traceback_field() -> None:
    try:
        raise ValueError("no such thing: postgresql://me:hunter2@db/x")
    except ValueError:
        made = record()
        made.exc_info = sys.exc_info()
    line = line_of(made)
    assert "ValueError: no such thing" in line["traceback"]
    assert "Traceback (most recent call last)" in line["traceback"]
    assert "hunter2" not in line["traceback"]


def test_a_field_never_replaces_a_name_of_the_format() -> None:
    line = line_of(record(time="noon", level=3, batch_id="b"))
    assert (line["level"], line["field_time"], line["field_level"]) == ("info", "noon", 3)


@pytest.mark.parametrize(
    "name",
    [
        *("authorization", "Authorization", "Proxy-Authorization", "authorization_header", "key", "api_key"),
        *("X-API-Key", "apiKey", "apikey", "operator_key", "secret", "signing_secret", "previousSecrets"),
        *("token", "access_token", "password", "PASSWORD", "db_password", "Cookie", "Set-Cookie", "dsn"),
    ],
)
def test_a_name_that_says_secret_is_recognised(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "key_id",
            "keyId",
            "token_count",
            "monkey",
            "keyboard",
            "secret_version",
            "Idempotency-Key",
            "sort_key",
        ),
        *("batch_id", "", "123", "tokenizer", "cookie_count"),
    ],
)
def test_a_name_that_only_sounds_like_a_secret_is_left_alone(name: str) -> None:
    assert not is_secret_name(name)


def test_a_secret_field_is_masked_at_any_depth() -> None:
    headers = {"X-API-Key": "hunter2", "Accept": "*/*", "nested": [{"password": "hunter2"}]}
    line = line_of(record(api_key="hunter2", headers=headers, key_id="k1", token=None))
    assert line["api_key"] == "***"
    assert line["token"] is None
    assert line["headers"] == {"X-API-Key": "***", "Accept": "*/*", "nested": [{"password": "***"}]}
    assert line["key_id"] == "k1"
    assert "hunter2" not in json.dumps(line)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("postgresql://me:hunter2@db:5432/x", "postgresql://me:***@db:5432/x"),
        ("postgresql://me:hunt@er2@db/x", "postgresql://me:***@db/x"),
        ("redis://:hunter2@cache", "redis://:***@cache"),
        ("two: a://b:hunter2@d, e://f:hunter2@h", "two: a://b:***@d, e://f:***@h"),
        ("Authorization: Bearer hunter2hunter2", "Authorization: Bearer ***"),
        ("host=db password=hunter2 user=me", "host=db password=*** user=me"),
        ("https://h/cb?token=hunter2&x=1", "https://h/cb?token=***&x=1"),
        ("http://127.0.0.1:8420/x?mail=a@b.c", "http://127.0.0.1:8420/x?mail=a@b.c"),
        ("http://host/path:with@sign", "http://host/path:with@sign"),
        ("the bearer of news", "the bearer of news"),
    ],
)
def test_passwords_and_bearer_tokens_in_a_text_are_masked(text: str, cleaned: str) -> None:
    assert clean_text(text) == cleaned
    assert line_of(record(text))["message"] == cleaned
    assert line_of(record(value=text))["value"] == cleaned


def test_a_huge_text_is_cut_and_its_size_told() -> None:
    assert clean_text("x" * 100_000).endswith("... (100000 characters)")
    assert len(clean_text("x" * 100_000)) < 9_000


@pytest.mark.timeout(5)
@pytest.mark.parametrize(
    "part", ["x", "://", "a://b:", "://:@", "bearer ", "password=", " ", "://u:p", "Bearer a"]
)
def test_a_hostile_text_of_a_megabyte_is_cleaned_in_no_time(part: str) -> None:
    assert len(clean_text(part * (1_000_000 // len(part)))) < 9_000


def test_a_structure_without_end_is_cut() -> None:
    endless: list[object] = []
    endless.append(endless)
    assert json.dumps(clean(endless)).count("[") < 10


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.integers(), inner, max_size=4),
    max_leaves=20,
)


@given(st.text(), st.dictionaries(st.text(), ANYTHING, max_size=5))
def test_any_message_with_any_fields_is_one_line_of_strict_json(
    message: str, values: dict[str, object]
) -> None:
    made = record(message)
    made.fields = values
    text = JsonFormatter("worker").format(made)
    assert "\n" not in text
    assert text.isascii()

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    json.loads(text, parse_constant=refuse)


@given(st.text())
def test_a_client_cannot_forge_a_line_or_send_control_characters_to_a_terminal(text: str) -> None:
    assert HumanFormatter("up").format(record(text, value=text)).isprintable()


def test_a_readable_line_shows_message_and_fields() -> None:
    assert (
        HumanFormatter("lane-1").format(record("stored", batch_id="b1", rows=2))
        == '10:30:00.123 INFO    lane-1     crossdock.devices: stored batch_id="b1" rows=2'
    )


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def restored_logging() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("crossdock")
    kept = (root.handlers[:], root.level, ours.level)
    yield
    root.handlers[:], root.level = kept[0], kept[1]
    ours.setLevel(kept[2])
    logging.captureWarnings(False)


@pytest.mark.usefixtures("restored_logging")
def test_a_terminal_gets_readable_lines_and_a_pipe_gets_json() -> None:
    for stream in (Terminal(), io.StringIO()):
        configure("up", stream=stream)
        logging.getLogger("crossdock.x").info("started", extra=fields(port=8420))
        assert stream.getvalue().startswith("{") is not stream.isatty()
        assert "8420" in stream.getvalue()


@pytest.mark.usefixtures("restored_logging")
def test_the_level_is_ours_and_libraries_speak_from_warning_on() -> None:
    stream = io.StringIO()
    configure("up", level="debug", stream=stream)
    logging.getLogger("crossdock.x").debug("ours")
    logging.getLogger("somelibrary").info("chatter")
    logging.getLogger("somelibrary").warning("trouble")
    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == ["ours", "trouble"]


@pytest.mark.usefixtures("restored_logging")
def test_configuring_twice_does_not_write_lines_twice() -> None:
    stream = io.StringIO()
    configure("up", stream=stream)
    configure("lane-1", stream=stream)
    logging.getLogger("crossdock.x").info("once")
    assert [json.loads(line)["process"] for line in stream.getvalue().splitlines()] == ["lane-1"]


def test_a_process_logs_to_stderr_and_importing_the_module_changes_nothing() -> None:
    program = (
        "import logging, crossdock.kit.logging as ours\n"
        "assert logging.getLogger().handlers == []\n"
        "ours.configure('worker')\n"
        "logging.getLogger('crossdock.x').error('broken \\udc80')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert done.stdout == ""
    assert json.loads(done.stderr)["message"] == "broken \udc80"
