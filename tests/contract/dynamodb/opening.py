"""Clients and tables of a test's own on the session's DynamoDB Local."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import boto3

from crossdock.engines.items.dynamodb import DynamoClient, DynamoItems
from crossdock.engines.items.port import Table
from crossdock.kit.clock import Clock, SystemClock


@dataclass(frozen=True, slots=True)
class Account:
    """DynamoDB Local keeps a database for each access key, so that an account's tables are its own."""

    endpoint: str
    access_key: str

    @property
    def environ(self) -> dict[str, str]:
        return {
            "AWS_REGION": "eu-central-1",
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": "secret",
        }

    def client(self, *, endpoint: str | None = None, clock: Clock | None = None) -> DynamoClient:
        """Retries at once: the jitter is drawn as 0."""
        return DynamoClient.from_environment(
            self.environ, endpoint or self.endpoint, clock or SystemClock(), lambda: 0.0
        )

    def items(self, *tables: Table, endpoint: str | None = None, table_prefix: str = "") -> DynamoItems:
        return DynamoItems(
            self.client(endpoint=endpoint), tables, SystemClock(), os.urandom, table_prefix=table_prefix
        )

    def boto3(self, service: str = "dynamodb") -> Any:
        return boto3.client(
            service,
            endpoint_url=self.endpoint,
            region_name="eu-central-1",
            aws_access_key_id=self.access_key,
            aws_secret_access_key="secret",
        )


def new_account(endpoint: str) -> Account:
    return Account(endpoint, uuid4().hex)
