"""Where a server under test keeps its items, and a look into it that doesn't go through the product."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol
from uuid import uuid4

import asyncpg
import boto3
from boto3.dynamodb.types import TypeDeserializer
from tests.crash.batches import Row
from tests.support.server import Server

from crossdock.engines.sql.postmaster import read_pid_file
from crossdock.engines.sql.server_files import DATABASE, PORT, ROLE

TABLES = READINGS, MARKERS = "device_readings", "processed_batches"


class Store(Protocol):
    environ: Mapping[str, str]
    """What the server needs to use it."""

    async def rows(self, server: Server, table: str) -> list[Row]:
        """Everything in a table."""


class PostgresStore:
    """The server's own, embedded one."""

    environ: Mapping[str, str] = {}

    async def rows(self, server: Server, table: str) -> list[Row]:
        running = read_pid_file(server.data_dir / "postgres")
        assert running is not None, "no PostgreSQL runs"
        connection = await asyncpg.connect(
            host=str(running.socket_dir), port=PORT, user=ROLE, database=DATABASE
        )
        try:
            found = await connection.fetch(f'SELECT item::text, expires_at FROM items."{table}"')
        finally:
            await connection.close()
        rows: list[Row] = [json.loads(record["item"]) for record in found]
        assert [row["expiration_time"] for row in rows] == [record["expires_at"] for record in found]
        return rows


class DynamoStore:
    """An account of its own, whose tables nobody else sees."""

    def __init__(self, endpoint: str) -> None:
        self._account = {
            "AWS_REGION": "eu-central-1",
            "AWS_ACCESS_KEY_ID": uuid4().hex,
            "AWS_SECRET_ACCESS_KEY": "secret",
        }
        self._endpoint = endpoint
        self.environ: Mapping[str, str] = {
            **self._account,
            "CROSSDOCK_ITEMS": "dynamodb",
            "CROSSDOCK_DYNAMODB_ENDPOINT": endpoint,
        }

    async def rows(self, server: Server, table: str) -> list[Row]:
        client: Any = boto3.client(
            "dynamodb",
            endpoint_url=self._endpoint,
            region_name=self._account["AWS_REGION"],
            aws_access_key_id=self._account["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=self._account["AWS_SECRET_ACCESS_KEY"],
        )
        pages = client.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
        read = TypeDeserializer().deserialize
        rows = [
            {name: read(value) for name, value in item.items()} for page in pages for item in page["Items"]
        ]
        client.close()
        return [_with_plain_numbers(row) for row in rows]


def _with_plain_numbers(row: Row) -> Row:
    """DynamoDB's numbers are decimals; ours have few digits, so that a float says the same."""
    sensors = {name: float(value) for name, value in row["sensors"].items()} if "sensors" in row else {}
    return {**row, "sensors": sensors} if sensors else row
