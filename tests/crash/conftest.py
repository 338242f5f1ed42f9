"""A real server over each backend, and a way to look into its store beside it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.crash.stores import DynamoStore, PostgresStore, Store
from tests.support.seeds import SEED_VARIABLE, seed_of_run

Say = Callable[[str], None]

POSTGRES, DYNAMODB = "postgres", "dynamodb"
ON_BOTH = [POSTGRES, pytest.param(DYNAMODB, marks=pytest.mark.dynamodb)]


@pytest.fixture(params=ON_BOTH)
def store(request: pytest.FixtureRequest) -> Store:
    if request.param == DYNAMODB:
        return DynamoStore(request.getfixturevalue("dynamodb_endpoint"))
    return PostgresStore()


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest) -> Say:
    """Shown even when the test passes: a run without kills would pass as well."""

    def show(text: str) -> None:
        with capsys.disabled():
            print(f"\n  {request.node.name}: {text}")

    return show


@pytest.fixture
def seed(say: Say) -> int:
    drawn = seed_of_run()
    say(f"{SEED_VARIABLE}={drawn}")
    return drawn
