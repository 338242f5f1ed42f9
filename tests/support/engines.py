"""An engine that this machine lacks: its tests are skipped, unless the run says that none may be.

`CROSSDOCK_TEST_ENGINES=required` turns every such skip into a failure; `.ci/run` sets it.
"""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

REQUIRED_VARIABLE = "CROSSDOCK_TEST_ENGINES"


def engines_are_required() -> bool:
    return os.environ.get(REQUIRED_VARIABLE) == "required"


def missing_engine(engine: str, mend: str) -> NoReturn:
    """Call it from the fixture that would start the engine. `mend` says how to get it."""
    message = f"{engine} is missing: {mend}"
    if engines_are_required():
        pytest.fail(message, pytrace=False)
    pytest.skip(message)
