from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.hooks.providers.senders import ITEM, SENDERS, adyen_body, arrival, b64, mac

from crossdock.hooks.rules.providers.model import RefusalReason
from crossdock.hooks.rules.providers.recipes import recipe_of

RECIPE = recipe_of("adyen", None)
SECRET, OTHER, _ = SENDERS["adyen"].secrets


def signed(item: dict[str, Any], text: str, key: bytes = SECRET.signing) -> dict[str, Any]:
    return item | {"additionalData": {"hmacSignature": b64(mac(key, text.encode()))}}


def reason(*items: dict[str, Any]) -> RefusalReason | None:
    refusal = RECIPE.verify(arrival(adyen_body(*items)), [SECRET.configured])
    return None if refusal is None else refusal.reason


TEXT = "7914073381342284::TestMerchant:TestPayment-1407325143704:1130:EUR:AUTHORISATION:true"
GOOD = signed(ITEM, TEXT)


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (ITEM, TEXT),
        (ITEM | {"success": True}, TEXT),
        (ITEM | {"success": False}, TEXT.replace("true", "false")),
        (ITEM | {"originalReference": "99"}, TEXT.replace("::", ":99:")),
        (ITEM | {"originalReference": None}, TEXT),
        (ITEM | {"merchantReference": "a:b\\c"}, TEXT.replace("TestPayment-1407325143704", "a:b\\c")),
        (ITEM | {"merchantReference": "ü"}, TEXT.replace("TestPayment-1407325143704", "ü")),
        (ITEM | {"amount": {"value": "1130", "currency": "EUR"}}, TEXT),
        (ITEM | {"amount": None}, TEXT.replace("1130:EUR", ":")),
        (ITEM | {"reason": "not signed"}, TEXT),
    ],
)
def test_eight_fields_are_signed_as_they_are(item: dict[str, Any], text: str) -> None:
    assert reason(signed(item, text)) is None
    assert reason(signed(item, text + "x")) is RefusalReason.SIGNATURE_MISMATCH


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (ITEM, "signature_missing"),
        (ITEM | {"additionalData": None}, "signature_missing"),
        (ITEM | {"additionalData": {"hmacSignature": ""}}, "signature_missing"),
        (ITEM | {"additionalData": {"hmacSignature": 7}}, "signature_missing"),
        (ITEM | {"additionalData": {"hmacSignature": "!"}}, "signature_malformed"),
        (signed(ITEM, TEXT, OTHER.signing), "signature_mismatch"),
        (GOOD | {"eventCode": "REFUND"}, "signature_mismatch"),
        (GOOD | {"pspReference": 1.5}, "body_malformed"),
        (GOOD | {"pspReference": ["7914073381342284"]}, "body_malformed"),
    ],
)
def test_every_item_must_be_adyens(bad: dict[str, Any], expected: str) -> None:
    for items in ([bad], [GOOD, bad], [bad, GOOD], [GOOD, bad, GOOD]):
        assert reason(*items) == expected


@pytest.mark.parametrize(
    "document",
    [
        {},
        [],
        None,
        {"notificationItems": []},
        {"notificationItems": {}},
        {"notificationItems": [7]},
        {"notificationItems": [{}]},
        {"notificationItems": [{"NotificationRequestItem": GOOD}, {}]},
        {"notificationItems": [{"NotificationRequestItem": GOOD}, {"NotificationRequestItem": None}]},
    ],
)
def test_a_body_of_another_form_is_no_notification(document: object) -> None:
    refusal = RECIPE.verify(arrival(json.dumps(document).encode()), [SECRET.configured])
    assert refusal is not None
    assert refusal.reason is RefusalReason.BODY_MALFORMED


def test_items_signed_by_the_old_and_the_new_key_may_come_together() -> None:
    sent = arrival(adyen_body(GOOD, signed(ITEM, TEXT, OTHER.signing)))
    assert RECIPE.verify(sent, [SECRET.configured, OTHER.configured]) is None
    assert RECIPE.verify(sent, [SECRET.configured]) is not None
