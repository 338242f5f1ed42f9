"""What a lost or unreachable PostgreSQL looks like through the driver, and what callers are told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg

from crossdock.engines.sql.target import CONNECTION_ERRORS
from crossdock.kit.errors import Unavailable


def database_unavailable(error: BaseException) -> Unavailable:
    return Unavailable(
        "database_unavailable", "The database can't be reached.", internal=repr(error), retry_after_seconds=1
    )


@contextmanager
def reaching_database() -> Iterator[None]:
    """A lost connection inside is `Unavailable`. For reads, and for writes that may be repeated."""
    try:
        yield
    except asyncpg.DataError:
        raise  # an InterfaceError by descent, but it is our value that is wrong
    except CONNECTION_ERRORS as error:
        raise database_unavailable(error) from error
