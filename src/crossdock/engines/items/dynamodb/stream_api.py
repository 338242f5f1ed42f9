"""The four calls of DynamoDB Streams, with the answers that mean something as exceptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crossdock.engines.items.dynamodb.client import DynamoClient
from crossdock.engines.items.dynamodb.errors import ServiceError, domain_error
from crossdock.engines.items.dynamodb.shards import Shard


class IteratorExpired(Exception):
    """Iterators end after 15 minutes."""


class Trimmed(Exception):
    """The records after this place are gone."""


@dataclass(frozen=True, slots=True)
class Records:
    records: Sequence[Mapping[str, Any]]
    next_iterator: str | None
    """None: the shard was read to its end."""

    @property
    def last_sequence_number(self) -> str | None:
        return self.records[-1]["dynamodb"]["SequenceNumber"] if self.records else None


class StreamApi:
    def __init__(self, client: DynamoClient) -> None:
        self._client = client

    async def newest_stream(self, table_name: str) -> str:
        try:
            reply = await self._client.call("DescribeTable", {"TableName": table_name}, repeatable=True)
        except ServiceError as error:
            raise domain_error(error) from error
        stream: str = reply["Table"]["LatestStreamArn"]
        return stream

    async def shards(self, stream: str) -> list[Shard]:
        shards: list[Shard] = []
        request: dict[str, Any] = {"StreamArn": stream}
        while True:
            description = (await self._call("DescribeStream", request))["StreamDescription"]
            shards += map(Shard.from_description, description["Shards"])
            if "LastEvaluatedShardId" not in description:
                return shards
            request["ExclusiveStartShardId"] = description["LastEvaluatedShardId"]

    async def iterator(self, stream: str, shard_id: str, after: str | None) -> str:
        """From the oldest record, or after one. Raises Trimmed."""
        request = {"StreamArn": stream, "ShardId": shard_id, "ShardIteratorType": "TRIM_HORIZON"}
        if after is not None:
            request |= {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": after}
        iterator: str = (await self._call("GetShardIterator", request))["ShardIterator"]
        return iterator

    async def records(self, iterator: str) -> Records:
        """Raises IteratorExpired, Trimmed."""
        reply = await self._call("GetRecords", {"ShardIterator": iterator})
        return Records(reply["Records"], reply.get("NextShardIterator"))

    async def _call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return await self._client.call_streams(operation, request)
        except ServiceError as error:
            if error.service_code == "ExpiredIteratorException":
                raise IteratorExpired from error
            if error.service_code == "TrimmedDataAccessException":
                raise Trimmed from error
            raise domain_error(error) from error
