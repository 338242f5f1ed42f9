"""Tables as the slices declare them: created where missing, compared where they exist.

What is merely not there yet on an existing table is added: an index, a TTL, a stream, point-in-time recovery.
What is there and differs is never changed: `create_tables` refuses, and names every difference.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from crossdock.engines.items.dynamodb.client import DynamoClient
from crossdock.engines.items.dynamodb.errors import ServiceError, domain_error, unavailable
from crossdock.engines.items.dynamodb.positions import POSITIONS
from crossdock.engines.items.port import Index, Table
from crossdock.kit.errors import CrossdockError

STREAM = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
POLL_SECONDS = 0.5
# AWS builds an index over stored items, which may take its time.
ACTIVE_WITHIN_SECONDS = 1800


class TablesDiffer(CrossdockError):
    """Existing tables are not what the slices declare. `differences` has a line for each."""

    def __init__(self, differences: Sequence[str]) -> None:
        super().__init__(
            "tables_differ",
            "DynamoDB has tables that differ from what Crossdock needs; it changes none of that. "
            "Rename or mend them, or set another CROSSDOCK_TABLE_PREFIX:\n" + "\n".join(differences),
        )
        self.differences = tuple(differences)


async def create_tables(client: DynamoClient, tables: Sequence[Table], *, table_prefix: str = "") -> None:
    """Every difference of any table is found before anything is created or changed. Raises TablesDiffer.

    Where a table has a stream, the table of the positions in it is made too.
    """
    if any(table.stream for table in tables):
        tables = (*tables, POSITIONS)
    setup = _Setup(client, table_prefix)
    try:
        existing = {table.name: await setup.describe(table) for table in tables}
        differences = [
            f"{table_prefix}{table.name}: {line}"
            for table in tables
            if (description := existing[table.name]) is not None
            for line in differences_of(table, description, await setup.ttl_attribute(table))
        ]
        if differences:
            raise TablesDiffer(differences)
        for table in tables:
            if existing[table.name] is None:
                await setup.create(table)
        for table in tables:
            await setup.complete(table)
    except ServiceError as error:
        raise domain_error(error) from error


async def check(client: DynamoClient) -> None:
    """Raises unless the endpoint answers and knows transactions.

    A transaction without writes is refused by every endpoint that knows them, and unknown to the others.
    """
    try:
        await client.call("TransactWriteItems", {"TransactItems": []}, repeatable=True)
    except ServiceError as error:
        if error.service_code == "UnknownOperationException":
            raise CrossdockError(
                "items_engine_unfit",
                "The DynamoDB endpoint has no transactions, which Crossdock needs.",
                internal=error.internal,
            ) from error
        if error.service_code != "ValidationException":
            raise domain_error(error) from error


class _Setup:
    def __init__(self, client: DynamoClient, table_prefix: str) -> None:
        self._client = client
        self._table_prefix = table_prefix

    async def describe(self, table: Table) -> Mapping[str, Any] | None:
        try:
            reply = await self._call("DescribeTable", table)
        except ServiceError as error:
            if error.service_code == "ResourceNotFoundException":
                return None
            raise
        description: Mapping[str, Any] = reply["Table"]
        return description

    async def create(self, table: Table) -> None:
        try:
            await self._client.call(
                "CreateTable", creation_request(table, self._table_prefix), repeatable=False
            )
        except ServiceError as error:
            # Another node is at the same work.
            if error.service_code != "ResourceInUseException":
                raise

    async def ttl_attribute(self, table: Table) -> str | None:
        reply = await self._call("DescribeTimeToLive", table)
        description = reply.get("TimeToLiveDescription", {})
        if description.get("TimeToLiveStatus") not in ("ENABLED", "ENABLING"):
            return None
        name: str = description["AttributeName"]
        return name

    async def complete(self, table: Table) -> None:
        """Adds what an active table lacks, one thing at a time: DynamoDB takes one change of a table."""
        description = await self._until_active(table)
        present = {index["IndexName"] for index in description.get("GlobalSecondaryIndexes", ())}
        for index in table.indexes:
            if index.name not in present:
                await self._call("UpdateTable", table, index_addition(table, index), repeatable=False)
                description = await self._until_active(table)
        if table.stream and not _has_stream(description):
            await self._call("UpdateTable", table, {"StreamSpecification": STREAM}, repeatable=False)
            await self._until_active(table)
        if table.ttl is not None and await self.ttl_attribute(table) is None:
            ttl = {"TimeToLiveSpecification": {"Enabled": True, "AttributeName": table.ttl}}
            await self._call("UpdateTimeToLive", table, ttl, repeatable=False)
        if table.point_in_time_recovery:
            await self._recoverable(table)

    async def _recoverable(self, table: Table) -> None:
        try:
            reply = await self._call("DescribeContinuousBackups", table)
            recovery = reply["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
            if recovery.get("PointInTimeRecoveryStatus") != "ENABLED":
                wanted = {"PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}}
                await self._call("UpdateContinuousBackups", table, wanted, repeatable=False)
        except ServiceError as error:
            # DynamoDB Local has no backups.
            if error.service_code != "UnknownOperationException":
                raise

    async def _until_active(self, table: Table) -> Mapping[str, Any]:
        for _ in range(int(ACTIVE_WITHIN_SECONDS / POLL_SECONDS)):
            description = await self.describe(table)
            if description is not None and is_active(description):
                return description
            await asyncio.sleep(POLL_SECONDS)
        raise unavailable(f"table {table.name} did not become active in {ACTIVE_WITHIN_SECONDS} s")

    async def _call(
        self, operation: str, table: Table, more: Mapping[str, Any] | None = None, *, repeatable: bool = True
    ) -> dict[str, Any]:
        request = {"TableName": self._table_prefix + table.name, **(more or {})}
        return await self._client.call(operation, request, repeatable=repeatable)


# --- requests --------------------------------------------------------------------------------------


def creation_request(table: Table, table_prefix: str) -> dict[str, Any]:
    request: dict[str, Any] = {
        "TableName": table_prefix + table.name,
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": key_schema(table.partition, table.sort),
        "AttributeDefinitions": definitions(table.key_attributes, *map(_index_keys, table.indexes)),
    }
    if table.indexes:
        request["GlobalSecondaryIndexes"] = [index_definition(index) for index in table.indexes]
    if table.stream:
        request["StreamSpecification"] = STREAM
    return request


def index_addition(table: Table, index: Index) -> dict[str, Any]:
    return {
        "AttributeDefinitions": definitions(table.key_attributes, _index_keys(index)),
        "GlobalSecondaryIndexUpdates": [{"Create": index_definition(index)}],
    }


def index_definition(index: Index) -> dict[str, Any]:
    return {
        "IndexName": index.name,
        "KeySchema": key_schema(index.partition, index.sort),
        "Projection": {"ProjectionType": projection_type(index)},
    }


def projection_type(index: Index) -> str:
    return "ALL" if index.projection == "all" else "KEYS_ONLY"


def key_schema(partition: str, sort: str | None) -> list[dict[str, str]]:
    schema = [{"AttributeName": partition, "KeyType": "HASH"}]
    if sort is not None:
        schema.append({"AttributeName": sort, "KeyType": "RANGE"})
    return schema


def definitions(*attributes: Iterable[str]) -> list[dict[str, str]]:
    names = dict.fromkeys(name for each in attributes for name in each)
    return [{"AttributeName": name, "AttributeType": "S"} for name in names]


def _index_keys(index: Index) -> tuple[str, ...]:
    return (index.partition,) if index.sort is None else (index.partition, index.sort)


# --- comparison ------------------------------------------------------------------------------------


def is_active(description: Mapping[str, Any]) -> bool:
    indexes = description.get("GlobalSecondaryIndexes", ())
    # DynamoDB Local names no status for some indexes.
    return description["TableStatus"] == "ACTIVE" and all(
        index.get("IndexStatus", "ACTIVE") == "ACTIVE" for index in indexes
    )


def differences_of(table: Table, description: Mapping[str, Any], ttl_attribute: str | None) -> list[str]:
    """What can't be mended by adding to the table, a line each."""
    types = {each["AttributeName"]: each["AttributeType"] for each in description["AttributeDefinitions"]}
    found = _key_differences("the key", key_schema(table.partition, table.sort), description, types)
    indexes = {index["IndexName"]: index for index in description.get("GlobalSecondaryIndexes", ())}
    for index in table.indexes:
        if index.name in indexes:
            found += _index_differences(index, indexes[index.name], types)
    if ttl_attribute is not None and ttl_attribute != table.ttl:
        wanted = "there should be none" if table.ttl is None else f"should be {table.ttl}"
        found.append(f"the TTL attribute is {ttl_attribute}, {wanted}")
    stream = description.get("StreamSpecification", {})
    if table.stream and stream.get("StreamEnabled") and stream != STREAM:
        found.append(f"the stream holds {stream.get('StreamViewType')}, should be NEW_AND_OLD_IMAGES")
    return found


def _index_differences(index: Index, description: Mapping[str, Any], types: Mapping[str, str]) -> list[str]:
    what = f"index {index.name}"
    found = _key_differences(f"{what}: the key", key_schema(index.partition, index.sort), description, types)
    projection = description["Projection"]["ProjectionType"]
    if projection != projection_type(index):
        found.append(f"{what}: the projection is {projection}, should be {projection_type(index)}")
    return found


def _key_differences(
    what: str, wanted: list[dict[str, str]], description: Mapping[str, Any], types: Mapping[str, str]
) -> list[str]:
    found = _key_text(description["KeySchema"], types)
    expected = _key_text(wanted, {each["AttributeName"]: "S" for each in wanted})
    return [] if found == expected else [f"{what} is {found}, should be {expected}"]


def _key_text(schema: Sequence[Mapping[str, str]], types: Mapping[str, str]) -> str:
    ordered = sorted(schema, key=lambda each: each["KeyType"])
    return " + ".join(f"{each['AttributeName']} ({types[each['AttributeName']]})" for each in ordered)


def _has_stream(description: Mapping[str, Any]) -> bool:
    return bool(description.get("StreamSpecification", {}).get("StreamEnabled"))
