"""What keeps DynamoDB from serving us, found without changing anything: for `crossdock doctor`."""

from __future__ import annotations

from collections.abc import Sequence

from crossdock.engines.items.dynamodb.client import DynamoClient
from crossdock.engines.items.dynamodb.errors import ServiceError, domain_error
from crossdock.engines.items.dynamodb.tables import check, differences_of, is_active
from crossdock.engines.items.port import Table
from crossdock.kit.errors import CrossdockError, Unavailable


async def problems_of(client: DynamoClient, tables: Sequence[Table], *, table_prefix: str = "") -> list[str]:
    """A sentence each: an endpoint that is away or unfit, tables that are missing or differ."""
    problems: list[str] = []
    try:
        await check(client)
        for table in tables:
            problems += await _problems_of_table(client, table, table_prefix + table.name)
    except CrossdockError as error:
        problems.append(_sentence(domain_error(error) if isinstance(error, ServiceError) else error))
    return problems


def _sentence(error: CrossdockError) -> str:
    if not isinstance(error, Unavailable):
        return error.message + (f" ({error.internal})" if error.internal else "")
    return (
        f"DynamoDB can't be used ({error.internal}). Check that CROSSDOCK_DYNAMODB_ENDPOINT and the AWS_ "
        "variables name it, and the credentials for it."
    )


async def _problems_of_table(client: DynamoClient, table: Table, name: str) -> list[str]:
    try:
        reply = await client.call("DescribeTable", {"TableName": name}, repeatable=True)
    except ServiceError as error:
        if error.service_code != "ResourceNotFoundException":
            raise
        return [f"Table {name} is missing: run crossdock migrate."]
    expiry = await client.call("DescribeTimeToLive", {"TableName": name}, repeatable=True)
    ttl = expiry.get("TimeToLiveDescription", {})
    ttl_is_on = ttl.get("TimeToLiveStatus") in ("ENABLED", "ENABLING")
    description = reply["Table"]
    problems = [
        f"Table {name}: {line}."
        for line in differences_of(table, description, ttl["AttributeName"] if ttl_is_on else None)
    ]
    present = {index["IndexName"] for index in description.get("GlobalSecondaryIndexes", ())}
    missing = [f"index {index.name}" for index in table.indexes if index.name not in present]
    missing += ["its TTL setting"] if table.ttl is not None and not ttl_is_on else []
    problems += [f"Table {name} lacks {each}: run crossdock migrate." for each in missing]
    if not is_active(description):
        problems.append(f"Table {name} is not active yet: wait, and look again.")
    return problems
