from __future__ import annotations

import logging

import asyncpg
import msgspec
import pytest

from crossdock.engines.items.port import ItemRejected, OutcomeUnknown
from crossdock.http.problems import MethodNotAllowed, Problem, UnsupportedMediaType, problem_for
from crossdock.kit.errors import (
    Conflict,
    CrossdockError,
    FieldProblem,
    Forbidden,
    InvalidInput,
    MalformedRequest,
    NotFound,
    TooLarge,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
)


def headers(problem: Problem) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in problem.headers}


@pytest.mark.parametrize(
    ("error", "status", "title"),
    [
        (MalformedRequest("c", "m"), 400, "Malformed request"),
        (Unauthenticated("c", "m"), 401, "Not authenticated"),
        (Forbidden("c", "m"), 403, "Not allowed"),
        (NotFound("c", "m"), 404, "Not found"),
        (Conflict("c", "m"), 409, "Conflict"),
        (TooLarge("c", "m"), 413, "Too large"),
        (UnsupportedMediaType("c", "m"), 415, "Unsupported media type"),
        (InvalidInput("m", code="c"), 422, "Invalid input"),
        (TooManyRequests("c", "m"), 429, "Too many requests"),
        (Unavailable("c", "m"), 503, "Unavailable"),
    ],
)
def test_every_class_of_error_has_its_status(error: CrossdockError, status: int, title: str) -> None:
    problem = problem_for(error)
    assert problem.status == status
    assert msgspec.json.decode(problem.body) == {
        "type": "urn:crossdock:problem:c",
        "title": title,
        "status": status,
        "code": "c",
        "detail": "m",
    }
    assert headers(problem)["content-type"] == "application/problem+json"
    assert headers(problem)["content-length"] == str(len(problem.body))


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ItemRejected("too big"), 422, "item_rejected"),
        (OutcomeUnknown(), 503, "outcome_unknown"),
        (MethodNotAllowed("GET"), 405, "method_not_allowed"),
    ],
)
def test_a_subclass_has_the_status_of_its_class(error: CrossdockError, status: int, code: str) -> None:
    problem = problem_for(error)
    assert (problem.status, msgspec.json.decode(problem.body)["code"]) == (status, code)


def test_wrong_fields_are_listed() -> None:
    error = InvalidInput("m", FieldProblem("readings[3].sensors.temp_c", "wrong_type", "d"))
    assert msgspec.json.decode(problem_for(error).body)["errors"] == [
        {"field": "readings[3].sensors.temp_c", "code": "wrong_type", "detail": "d"}
    ]


@pytest.mark.parametrize(
    ("error", "name", "value"),
    [
        (Unauthenticated("c", "m"), "www-authenticate", 'Bearer realm="crossdock"'),
        (MethodNotAllowed("GET, POST"), "allow", "GET, POST"),
        (TooManyRequests("c", "m"), "retry-after", "1"),
        (TooManyRequests("c", "m", retry_after_seconds=1.2), "retry-after", "2"),
        (Unavailable("c", "m", retry_after_seconds=0), "retry-after", "1"),
        (Conflict("c", "m", retry_after_seconds=30), "retry-after", "30"),
    ],
)
def test_a_client_is_told_what_to_do_next(error: CrossdockError, name: str, value: str) -> None:
    assert headers(problem_for(error))[name] == value


def test_an_unexpected_exception_tells_an_id_that_the_log_has_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    problem = problem_for(RuntimeError("password=hunter2"), random=lambda count: b"\x01" * count)
    document = msgspec.json.decode(problem.body)
    assert (problem.status, document["code"]) == (500, "internal_error")
    assert document["request_id"] == "req_" + "01" * 12
    assert b"hunter2" not in problem.body
    [record] = caplog.records
    assert document["request_id"] in record.getMessage()
    assert record.exc_info is not None


def test_a_domain_error_of_no_class_is_unexpected_too() -> None:
    problem = problem_for(CrossdockError("seal_broken", "internal matters"))
    assert (problem.status, b"internal matters" in problem.body) == (500, False)


def test_internal_detail_goes_to_the_log_only(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        problem = problem_for(Conflict("c", "m", internal="row 7 of table t"))
    assert b"row 7" not in problem.body
    assert "row 7 of table t" in caplog.text


@pytest.mark.parametrize(
    "exception",
    [
        ConnectionRefusedError(),
        FileNotFoundError("the socket"),
        TimeoutError(),
        asyncpg.ConnectionDoesNotExistError("gone"),
        asyncpg.CannotConnectNowError("starting up"),
        asyncpg.AdminShutdownError("stopping"),
        asyncpg.TooManyConnectionsError("full"),
        asyncpg.InterfaceError("connection is closed"),
    ],
)
def test_a_database_that_is_away_is_503(exception: Exception) -> None:
    problem = problem_for(exception)
    assert (problem.status, msgspec.json.decode(problem.body)["code"]) == (503, "database_unavailable")


@pytest.mark.parametrize(
    "exception",
    [asyncpg.exceptions._base.DataError("value out of int64 range"), asyncpg.UniqueViolationError("twice")],
)
def test_a_statement_of_ours_that_is_wrong_is_no_outage(exception: Exception) -> None:
    assert problem_for(exception).status == 500
