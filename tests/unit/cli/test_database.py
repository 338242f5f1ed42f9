from __future__ import annotations

import pytest

from crossdock.cli.database import connections_problem


@pytest.mark.parametrize(
    ("workers", "per_process", "max_connections"), [(1, 15, 100), (5, 15, 100), (1, 15, 40), (11, 7, 100)]
)
def test_processes_whose_pools_fit_may_start(workers: int, per_process: int, max_connections: int) -> None:
    assert connections_problem(workers, per_process, max_connections) is None


@pytest.mark.parametrize(
    ("workers", "per_process", "max_connections", "said"),
    [
        (6, 15, 100, "at most 5 lane processes"),
        (1, 15, 39, "not one lane process"),
        (1, 15, 12, "not one lane process"),
        (12, 7, 100, "at most 11 lane processes"),
    ],
)
def test_too_many_are_refused_with_how_many_would_fit(
    workers: int, per_process: int, max_connections: int, said: str
) -> None:
    problem = connections_problem(workers, per_process, max_connections)
    assert problem is not None
    assert said in problem


def test_ten_connections_stay_free() -> None:
    assert connections_problem(1, 45, 100) is None
    assert connections_problem(1, 45, 99) is not None
