from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from tests.unit.hooks.providers.senders import ITEM, SENDERS, adyen_body, arrival

from crossdock.hooks.rules.providers.dedup import Dedup, parse_dedup
from crossdock.hooks.rules.providers.recipes import PROVIDERS
from crossdock.kit.errors import InvalidInput


def body(document: object) -> bytes:
    return json.dumps(document).encode()


DIGEST = hashlib.sha256(b"{}").hexdigest()

# provider, headers, body, id
IDS: list[tuple[str, dict[str, str], bytes, str | None]] = [
    ("stripe", {}, body({"id": "evt_1", "object": "event"}), "evt_1"),
    ("stripe", {}, body({"object": "event"}), None),
    ("github", {"X-GitHub-Delivery": "72d3162e-cc78-11e3"}, b"{}", "72d3162e-cc78-11e3"),
    ("github", {}, b"{}", None),
    ("shopify", {"X-Shopify-Webhook-Id": "b54557e4"}, b"{}", "b54557e4"),
    ("standard-webhooks", {"webhook-id": "msg_1", "webhook-signature": "v1,x"}, b"{}", "msg_1"),
    ("standard-webhooks", {"svix-id": "msg_1", "svix-signature": "v1,x"}, b"{}", "msg_1"),
    ("standard-webhooks", {"webhook-id": "msg_1"}, b"{}", None),
    ("slack", {}, body({"event_id": "Ev0PV52K21"}), "Ev0PV52K21"),
    ("slack", {}, b"payload=%7B%7D", None),
    ("twilio", {"I-Twilio-Idempotency-Token": "ca0b4cc4"}, b"a=b", "ca0b4cc4"),
    ("square", {}, body({"event_id": "6a8f5f28"}), "6a8f5f28"),
    ("paddle", {}, body({"event_id": "evt_1", "notification_id": "ntf_1"}), "evt_1"),
    ("paddle", {}, body({"notification_id": "ntf_1"}), "ntf_1"),
    ("hubspot", {}, body([{"eventId": 1}]), None),
    ("zoom", {}, body({"event": "meeting.started", "event_ts": 1}), None),
    ("discord", {}, body({"id": "786008729715212338", "type": 2}), "786008729715212338"),
    ("gitlab", {"Idempotency-Key": "f5e5f430", "X-Gitlab-Event-UUID": "13792a34"}, b"{}", "f5e5f430"),
    ("gitlab", {"X-Gitlab-Event-UUID": "13792a34"}, b"{}", f"13792a34:{DIGEST}"),
    ("gitlab", {}, b"{}", None),
    ("sendgrid", {}, body([{"sg_event_id": "ZHJvcC0x"}]), "ZHJvcC0x"),
    ("sendgrid", {}, body([{"sg_event_id": "1"}, {"sg_event_id": "2"}]), None),
    ("sendgrid", {}, body({"sg_event_id": "1"}), None),
    ("sendgrid", {}, b"no json", None),
    ("line", {}, body({"events": {"webhookEventId": "1"}}), None),
    ("linear", {"Linear-Delivery": "234d1a4e"}, b"{}", "234d1a4e"),
    ("adyen", {}, adyen_body(ITEM), "7914073381342284:AUTHORISATION:true"),
    ("adyen", {}, adyen_body(ITEM | {"success": True}), "7914073381342284:AUTHORISATION:true"),
    ("adyen", {}, adyen_body(ITEM, ITEM), None),
    ("adyen", {}, adyen_body(ITEM | {"pspReference": None}), None),
    ("adyen", {}, b"{}", None),
    ("line", {}, body({"events": [{"webhookEventId": "01FZ74A0TDDPYRVKNK"}]}), "01FZ74A0TDDPYRVKNK"),
    ("line", {}, body({"events": [{"webhookEventId": "1"}, {"webhookEventId": "2"}]}), None),
    ("line", {}, body({"events": []}), None),
    ("line", {}, body({"events": ["x"]}), None),
    ("razorpay", {"x-razorpay-event-id": "ev_1"}, b"{}", "ev_1"),
    ("woocommerce", {"X-WC-Webhook-Delivery-ID": "5e3f"}, b"{}", f"5e3f:{DIGEST}"),
    ("woocommerce", {}, b"{}", None),
    ("basic-auth", {"X-Request-Id": "1"}, body({"id": "1"}), None),
    ("api-key", {"X-Request-Id": "1"}, body({"id": "1"}), None),
    ("custom", {"X-Id": "7"}, body({"id": "1"}), "7"),
    ("custom", {}, body({"id": "1"}), None),
]  # fmt: skip


@pytest.mark.parametrize(("provider", "headers", "content", "expected"), IDS)
def test_the_providers_own_id_is_found(
    provider: str, headers: dict[str, str], content: bytes, expected: str | None
) -> None:
    recipe = SENDERS[provider].recipe
    for dedup in (None, Dedup(), Dedup(window_seconds=60)):
        assert recipe.delivery_id(arrival(content, headers), dedup) == expected
    assert recipe.delivery_id(arrival(content, headers), Dedup(enabled=False)) is None


def test_every_provider_has_a_case() -> None:
    assert {provider for provider, *_ in IDS} == {*PROVIDERS}


@pytest.mark.parametrize("name", ["gitlab", "woocommerce"])
def test_a_header_that_deliveries_share_tells_those_with_other_bodies_apart(name: str) -> None:
    headers = {"X-WC-Webhook-Delivery-ID": "5e3f", "X-Gitlab-Event-UUID": "5e3f"}
    recipe = SENDERS[name].recipe
    first, second = (recipe.delivery_id(arrival(content, headers)) for content in (b"1", b"2"))
    assert first != second
    assert first == recipe.delivery_id(arrival(b"1", headers))


DOCUMENT = {"id": 1, "data": {"id": "d-1", "0": "zero"}, "list": [{"id": "l-0"}, {"id": "l-1"}], "": "x"}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("id", "1"),
        ("data.id", "d-1"),
        ("data.0", "zero"),
        ("list.1.id", "l-1"),
        ("list.2.id", None),
        ("list.-1.id", None),
        ("list.01.id", "l-1"),
        ("list.²", None),
        ("list.99999999999", None),
        ("list.id", None),
        ("list", None),
        ("data", None),
        ("id.x", None),
        ("id.0", None),
        ("data.id.0", None),
        ("missing.id", None),
    ],
)
def test_a_configured_path_is_followed(path: str, expected: str | None) -> None:
    recipe, sent = SENDERS["github"].recipe, arrival(body(DOCUMENT), {"X-GitHub-Delivery": "d"})
    assert recipe.delivery_id(sent, Dedup(path=path)) == expected
    assert recipe.delivery_id(arrival(b"no json", {"X-GitHub-Delivery": "d"}), Dedup(path=path)) is None


def test_a_configured_header_is_read_in_any_case() -> None:
    recipe = SENDERS["stripe"].recipe
    sent = arrival(body({"id": "evt_1"}), {"x-ID": "7"})
    assert recipe.delivery_id(sent, Dedup(header="X-Id")) == "7"
    assert recipe.delivery_id(sent, Dedup(header="X-Other")) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("x" * 512, "x" * 512),
        ("x" * 513, None),
        ("", None),
        (0, "0"),
        (-7, "-7"),
        (10**511, "1" + "0" * 511),
        (10**512, None),
        (-(10**511), None),
        (10**4000, None),
        (1.5, None),
        (True, None),
        (None, None),
        ([], None),
        ({}, None),
    ],
)
def test_an_id_is_text_or_a_whole_number_of_at_most_512_characters(
    value: object, expected: str | None
) -> None:
    assert SENDERS["stripe"].recipe.delivery_id(arrival(body({"id": value}))) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (None, None),
        ({}, Dedup()),
        ({"header": "X-Id"}, Dedup(header="X-Id")),
        ({"path": "data.id"}, Dedup(path="data.id")),
        ({"path": "a b.ü.0"}, Dedup(path="a b.ü.0")),
        ({"enabled": False}, Dedup(enabled=False)),
        ({"enabled": False, "path": "id"}, Dedup(enabled=False, path="id")),
        ({"window_seconds": 60}, Dedup(window_seconds=60)),
        ({"window_seconds": 604_800, "header": "X-Id"}, Dedup(window_seconds=604_800, header="X-Id")),
    ],
)
def test_settings_are_read(raw: object, expected: Dedup | None) -> None:
    assert parse_dedup(raw) == expected


def test_the_window_is_a_day_unless_said_otherwise() -> None:
    assert Dedup().window_seconds == 86_400


@pytest.mark.parametrize(
    ("raw", "field", "code"),
    [
        ("id", "dedup", "wrong_type"),
        (False, "dedup", "wrong_type"),
        ({"key": "id"}, "dedup.key", "unknown_field"),
        ({"header": "X-Id", "path": "id"}, "dedup", "not_together"),
        ({"header": "X Id"}, "dedup.header", "wrong_format"),
        ({"header": ""}, "dedup.header", "wrong_format"),
        ({"path": ""}, "dedup.path", "wrong_format"),
        ({"path": "."}, "dedup.path", "wrong_format"),
        ({"path": "a..b"}, "dedup.path", "wrong_format"),
        ({"path": "a."}, "dedup.path", "wrong_format"),
        ({"path": "a\n"}, "dedup.path", "wrong_format"),
        ({"path": ".".join("a" * 17)}, "dedup.path", "wrong_format"),
        ({"path": "a" * 129}, "dedup.path", "wrong_format"),
        ({"path": ["id"]}, "dedup.path", "wrong_type"),
        ({"enabled": "no"}, "dedup.enabled", "wrong_type"),
        ({"window_seconds": 59}, "dedup.window_seconds", "out_of_range"),
        ({"window_seconds": 604_801}, "dedup.window_seconds", "out_of_range"),
        ({"window_seconds": 3600.5}, "dedup.window_seconds", "wrong_type"),
    ],
)
def test_a_wrong_setting_is_named(raw: Any, field: str, code: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_dedup(raw)
    assert [(problem.field, problem.code) for problem in caught.value.fields] == [(field, code)]
