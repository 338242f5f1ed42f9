from __future__ import annotations

import json

import pytest
from tests.unit.hooks.providers.senders import NOW_MS, SENDERS, arrival

from crossdock.hooks.rules.providers.model import RefusalReason

SENDER = SENDERS["linear"]
SECRET = SENDER.secrets[0]


def reason(body: bytes) -> RefusalReason | None:
    sent = arrival(body, SENDER.sign(SECRET.signing, body, NOW_MS))
    refusal = SENDER.recipe.verify(sent, [SECRET.configured])
    return None if refusal is None else refusal.reason


@pytest.mark.parametrize(
    "document", [{"webhookTimestamp": NOW_MS}, {"a": [1], "webhookTimestamp": NOW_MS + 1}]
)
def test_the_time_is_read_from_the_body(document: object) -> None:
    assert reason(json.dumps(document).encode()) is None


@pytest.mark.parametrize(
    "document",
    [
        {},
        [],
        None,
        7,
        [{"webhookTimestamp": NOW_MS}],
        {"webhookTimestamp": str(NOW_MS)},
        {"webhookTimestamp": float(NOW_MS)},
        {"webhookTimestamp": True},
        {"webhookTimestamp": None},
    ],
)
def test_a_signed_body_without_its_time_is_refused(document: object) -> None:
    assert reason(json.dumps(document).encode()) is RefusalReason.TIMESTAMP_MISSING


@pytest.mark.parametrize("moment", [0, -NOW_MS, NOW_MS // 1000, 10**400])
def test_any_other_time_is_out_of_tolerance(moment: int) -> None:
    body = json.dumps({"webhookTimestamp": moment}).encode()
    assert reason(body) is RefusalReason.TIMESTAMP_OUT_OF_TOLERANCE


def test_the_time_of_a_body_that_is_not_signed_is_not_looked_at() -> None:
    sent = arrival(b"{}", {"Linear-Signature": "00" * 32})
    refusal = SENDER.recipe.verify(sent, [SECRET.configured])
    assert refusal is not None
    assert refusal.reason is RefusalReason.SIGNATURE_MISMATCH
