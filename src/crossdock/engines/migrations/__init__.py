"""The tables that the engines keep for themselves, in schema `platform`."""

from crossdock.engines.sql.migrations import Migrations

PLATFORM = Migrations(schema="platform", package="crossdock.engines.migrations")
