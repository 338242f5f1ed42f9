"""The Items port on Amazon DynamoDB and DynamoDB Local."""

from crossdock.engines.items.dynamodb.client import DynamoClient, Target
from crossdock.engines.items.dynamodb.inspection import problems_of
from crossdock.engines.items.dynamodb.items import DynamoItems
from crossdock.engines.items.dynamodb.positions import POSITIONS
from crossdock.engines.items.dynamodb.tables import TablesDiffer, check, create_tables
from crossdock.engines.items.dynamodb.tally_records import TALLIES

__all__ = [
    "POSITIONS",
    "TALLIES",
    "DynamoClient",
    "DynamoItems",
    "TablesDiffer",
    "Target",
    "check",
    "create_tables",
    "problems_of",
]
