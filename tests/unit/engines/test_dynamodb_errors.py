"""Whether a failed request may have happened all the same, and what an error means to a caller."""

import pytest

from crossdock.engines.items.dynamodb.errors import ServiceError, Verdict, domain_error, judge
from crossdock.engines.items.port import ItemRejected
from crossdock.kit.errors import Unavailable


@pytest.mark.parametrize(
    ("status", "code", "verdict"),
    [
        (400, "ConditionalCheckFailedException", Verdict.ANSWER),
        (400, "TransactionCanceledException", Verdict.ANSWER),
        (400, "ValidationException", Verdict.ANSWER),
        (400, "ResourceNotFoundException", Verdict.ANSWER),
        (400, "ProvisionedThroughputExceededException", Verdict.NOT_APPLIED),
        (400, "ThrottlingException", Verdict.NOT_APPLIED),
        (400, "RequestLimitExceeded", Verdict.NOT_APPLIED),
        (400, "TransactionConflictException", Verdict.NOT_APPLIED),
        (503, "ServiceUnavailable", Verdict.NOT_APPLIED),
        (503, "HTTP 503", Verdict.NOT_APPLIED),
        (400, "TransactionInProgressException", Verdict.MAYBE_APPLIED),
        (500, "InternalServerError", Verdict.MAYBE_APPLIED),
        (500, "InternalFailure", Verdict.MAYBE_APPLIED),
        (502, "HTTP 502", Verdict.MAYBE_APPLIED),
        (504, "HTTP 504", Verdict.MAYBE_APPLIED),
        (400, "ExpiredTokenException", Verdict.CREDENTIALS_EXPIRED),
        (404, "HTTP 404", Verdict.ANSWER),
    ],
)
def test_only_what_surely_did_not_happen_is_called_so(status: int, code: str, verdict: Verdict) -> None:
    assert judge(status, code) is verdict


def error(code: str, detail: str = "") -> ServiceError:
    return ServiceError("PutItem", 400, code, detail, {})


@pytest.mark.parametrize(
    "detail",
    [
        "Item size has exceeded the maximum allowed size",
        "Item size to update has exceeded the maximum allowed size",
        "An operand in the update expression has an incorrect data type",
        "DynamoDB only supports precision up to 38 digits",
        "Transaction payload size cannot exceed 4MB. Payload Size: 4499045",
        "Number overflow. Attempting to store a number with magnitude larger than supported range",
        "Nesting Levels have exceeded supported limits",
    ],
)
def test_a_validation_error_that_blames_the_item_rejects_it(detail: str) -> None:
    assert isinstance(domain_error(error("ValidationException", detail)), ItemRejected)


def test_a_validation_error_that_blames_the_request_is_our_defect_and_no_rejection() -> None:
    ours = error("ValidationException", "Invalid ConditionExpression: Syntax error")
    assert domain_error(ours) is ours


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("ResourceNotFoundException", "crossdock migrate"),
        ("UnrecognizedClientException", "credentials"),
        ("AccessDeniedException", "permission"),
        ("InvalidSignatureException", "clock"),
    ],
)
def test_what_the_operator_can_mend_is_unavailable_and_says_what_in_the_log(code: str, reason: str) -> None:
    found = domain_error(error(code, "the engine's words"))
    assert isinstance(found, Unavailable)
    assert reason in found.internal
    assert "the engine's words" in found.internal
    assert reason not in found.message


def test_an_engines_words_are_internal() -> None:
    assert "secret table" not in error("InternalError", "secret table").message
