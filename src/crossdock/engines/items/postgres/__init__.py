"""The Items port on PostgreSQL: group commit, exact conditions, an expiry sweeper."""

from crossdock.engines.items.postgres.backend import (
    PostgresItems,
    create_tables,
    missing_tables,
    prepare_connection,
)
from crossdock.engines.items.postgres.reads import SESSION

__all__ = ["SESSION", "PostgresItems", "create_tables", "missing_tables", "prepare_connection"]
