"""What DynamoDB's errors mean to us. Pure.

The question that matters is whether a write that failed may have happened all the same:

- a throttle, a conflict with a transaction or 503 says that it did not: the same request is sent again;
- any other 5xx, or a connection lost after the request was sent, says nothing: only a read, or a transaction
  with its token, is sent again, and a write is answered with `OutcomeUnknown`. AWS gives the same advice for
  single-item writes: a repeated put could undo what somebody wrote in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from crossdock.engines.items.port import ItemRejected
from crossdock.kit.errors import CrossdockError, Unavailable


class ServiceError(CrossdockError):
    """DynamoDB's own answer, for callers to whom some of them mean something."""

    def __init__(
        self, operation: str, status: int, service_code: str, detail: str, body: Mapping[str, Any]
    ) -> None:
        super().__init__(
            "items_engine_error",
            "The item store did not accept a request.",
            internal=f"{operation}: {service_code}: {detail}",
        )
        self.status = status
        self.service_code = service_code
        self.detail = detail
        self.body = body


class Verdict(Enum):
    ANSWER = "answer"
    """It was understood and decided; asking again changes nothing."""
    NOT_APPLIED = "not applied"
    """It did not happen, and may if it is sent again."""
    MAYBE_APPLIED = "maybe applied"
    CREDENTIALS_EXPIRED = "credentials expired"


_NOT_APPLIED = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "ThrottlingException",
        "Throttling",
        "RequestLimitExceeded",
        "TransactionConflictException",
        "ReplicatedWriteConflictException",
        "ServiceUnavailable",
        "ServiceUnavailableException",
    }
)
_EXPIRED = frozenset({"ExpiredTokenException", "ExpiredToken"})


def judge(status: int, service_code: str) -> Verdict:
    if service_code in _NOT_APPLIED or status == 503:
        return Verdict.NOT_APPLIED
    if service_code in _EXPIRED:
        return Verdict.CREDENTIALS_EXPIRED
    if service_code == "TransactionInProgressException" or status >= 500:
        return Verdict.MAYBE_APPLIED
    return Verdict.ANSWER


# Parts of the messages of a ValidationException that blame the item and not the request.
_ITEM_BLAMED = (
    "has exceeded the maximum allowed size",
    "incorrect data type",
    "38 digits",
    "cannot exceed 4mb",
    "number overflow",
    "number underflow",
    "magnitude larger than supported",
    "magnitude smaller than supported",
    "nesting levels",
    "type mismatch for",
    "aggregated size",
    "empty attribute name",
)

_OPERATOR_BLAMED = {
    "ResourceNotFoundException": "a table is missing (crossdock migrate creates it)",
    "UnrecognizedClientException": "the AWS credentials are not accepted",
    "InvalidSignatureException": "the AWS credentials are not accepted, or this machine's clock is wrong",
    "MissingAuthenticationTokenException": "there are no AWS credentials",
    "MissingAuthenticationToken": "there are no AWS credentials",
    "IncompleteSignatureException": "the AWS credentials are not accepted",
    "AccessDeniedException": "the AWS credentials lack a permission",
    "ExpiredTokenException": "the AWS session has ended",
    "ExpiredToken": "the AWS session has ended",
}


def domain_error(error: ServiceError) -> CrossdockError:
    """The error of the port that an answer stands for; itself where there is none."""
    if error.service_code in ("ValidationException", "ValidationError"):
        detail = error.detail.lower()
        if any(part in detail for part in _ITEM_BLAMED):
            return ItemRejected(f"The item can't be stored: {error.detail}")
    reason = _OPERATOR_BLAMED.get(error.service_code)
    return error if reason is None else unavailable(f"{reason}: {error.internal}")


def unavailable(internal: str, *, busy: bool = False) -> Unavailable:
    if busy:
        return Unavailable(
            "items_busy", "The item store is busy; try again.", internal=internal, retry_after_seconds=1
        )
    return Unavailable("items_unavailable", "The item store can't be reached; try again.", internal=internal)
