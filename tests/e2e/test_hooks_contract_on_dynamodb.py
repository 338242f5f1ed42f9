"""The contract of the hooks tables, looked at from outside: what a server leaves in DynamoDB, to the type."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from tests.support.server import Server
from tests.support.waiting import wait_until

pytestmark = pytest.mark.dynamodb

SECRET = "It's a Secret to Everybody"
BODY = b'{"action":"opened"}'
RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
MAIN, EVENTS = "ferryhook-main", "ferryhook-events"
DAY_SECONDS = 86_400


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def receiver_url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook"
    server.shutdown()
    server.server_close()


@dataclass(frozen=True)
class Made:
    user: Mapping[str, Any]
    key: Mapping[str, Any]
    source: Mapping[str, Any]
    connection: Mapping[str, Any]
    event_id: str
    sent_at: float


@pytest.fixture(scope="module")
def made(dynamodb_server: Server, receiver_url: str) -> Made:
    operator = dynamodb_server.client()
    user = operator.post(
        "/v1/hooks/users", {"email": "Ann@Example.com", "name": "Ann", "password": "correct horse"}
    )
    user_id = user["user_id"]
    key = operator.post("/v1/hooks/keys", {"user_id": user_id, "name": "Production", "permissions": "admin"})
    wanted = {"user_id": user_id, "name": "GitHub", "provider": "github", "signing_secret": SECRET}
    source = operator.post("/v1/hooks/sources", wanted)
    connection = operator.post(
        f"/v1/hooks/sources/{source['source_id']}/connections",
        {
            "name": "mine",
            "destination_url": receiver_url,
            "filters": [{"on": "body", "match": {"action": "opened"}}],
            "transform": [{"set": {"seen": True}}],
            "retry_config": {"schedule_seconds": [0, 5]},
        },
    )
    signature = hmac.new(SECRET.encode(), BODY, "sha256").hexdigest()
    request = urllib.request.Request(
        source["ingest_url"].replace("http://127.0.0.1:0", dynamodb_server.url),
        BODY,
        {
            "X-Hub-Signature-256": f"sha256={signature}",
            "X-GitHub-Delivery": "1",
            "Content-Type": "application/json",
        },
    )
    sent_at = time.time()
    with urllib.request.urlopen(request) as answer:
        event_id = json.load(answer)["event_id"]
    wait_until(lambda: operator.get(f"/v1/hooks/events/{event_id}")["status"] == "delivered")
    return Made(user, key, source, connection, event_id, sent_at)


def query(dynamodb: Any, table: str, partition: str, prefix: str) -> list[dict[str, dict[str, Any]]]:
    values = {":p": {"S": partition}, ":s": {"S": prefix}}
    found: list[dict[str, dict[str, Any]]] = dynamodb.query(
        TableName=table,
        KeyConditionExpression="PK = :p AND begins_with(SK, :s)",
        ExpressionAttributeValues=values,
        ConsistentRead=True,
    )["Items"]
    return found


def types(item: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    return {name: kind for name, value in item.items() for kind in value}


def texts(item: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {name: next(iter(value.values())) for name, value in item.items()}


# --- tables ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", [MAIN, EVENTS])
def test_the_tables_have_the_contracts_keys_and_billing(dynamodb: Any, made: Made, table: str) -> None:
    described = dynamodb.describe_table(TableName=table)["Table"]
    assert described["KeySchema"] == [
        {"AttributeName": "PK", "KeyType": "HASH"},
        {"AttributeName": "SK", "KeyType": "RANGE"},
    ]
    assert described["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert {each["AttributeType"] for each in described["AttributeDefinitions"]} == {"S"}


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (MAIN, {"GSI1": "ALL", "GSI2": "ALL", "GSI3": "ALL"}),
        # Keys only: a body is never copied into an index.
        (EVENTS, {"GSI1": "KEYS_ONLY", "GSI2": "KEYS_ONLY"}),
    ],
)
def test_the_tables_have_the_contracts_indexes(
    dynamodb: Any, made: Made, table: str, expected: dict[str, str]
) -> None:
    indexes = dynamodb.describe_table(TableName=table)["Table"]["GlobalSecondaryIndexes"]
    assert {each["IndexName"]: each["Projection"]["ProjectionType"] for each in indexes} == expected
    for index in indexes:
        name = index["IndexName"]
        assert [each["AttributeName"] for each in index["KeySchema"]] == [f"{name}PK", f"{name}SK"]


def test_events_expire_by_their_attribute(dynamodb: Any, made: Made) -> None:
    described = dynamodb.describe_time_to_live(TableName=EVENTS)["TimeToLiveDescription"]
    assert (described["TimeToLiveStatus"], described["AttributeName"]) == ("ENABLED", "expiresAt")


# --- records ---------------------------------------------------------------------------------------


def test_a_user_is_as_the_contract_says(dynamodb: Any, made: Made) -> None:
    user_id = made.user["user_id"]
    [item] = query(dynamodb, MAIN, f"USER#{user_id}", "PROFILE")
    stored = texts(item)
    assert re.fullmatch(r"usr_[A-Za-z0-9_-]{16}", user_id)
    assert stored["GSI1PK"] == "EMAIL#ann@example.com"
    assert stored["GSI1SK"] == "USER"
    assert stored["passwordHash"].startswith("$2b$")
    assert stored["plan"] == "free"
    assert RFC3339.fullmatch(stored["createdAt"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", stored["usagePeriodStart"])
    contract = {
        "userId": "S", "email": "S", "name": "S", "passwordHash": "S", "plan": "S", "usageThisMonth": "N",
        "usagePeriodStart": "S", "createdAt": "S", "updatedAt": "S",
    }  # fmt: skip
    assert contract.items() <= types(item).items()
    [guard] = query(dynamodb, MAIN, "EMAIL#ann@example.com", "UNIQUE")
    assert texts(guard)["userId"] == user_id


def test_an_api_key_is_found_by_its_hash(dynamodb: Any, made: Made) -> None:
    raw = made.key["api_key"]
    digest = hashlib.sha256(raw.encode()).hexdigest()
    [item] = query(dynamodb, MAIN, f"USER#{made.user['user_id']}", "KEY#")
    stored = texts(item)
    assert (stored["GSI2PK"], stored["GSI2SK"]) == (f"KEYHASH#{digest}", "KEY")
    assert (stored["keyHash"], stored["keyPrefix"]) == (digest, raw[:8])
    assert stored["permissions"] == "admin"
    assert raw not in json.dumps(item)


def test_a_source_is_as_the_contract_says_and_counts(dynamodb: Any, made: Made) -> None:
    source_id = made.source["source_id"]

    def stored() -> dict[str, Any]:
        [item] = query(dynamodb, MAIN, f"USER#{made.user['user_id']}", "SRC#")
        return texts(item)

    wait_until(lambda: stored()["eventCount"] == "1")
    item = stored()
    assert (item["GSI3PK"], item["GSI3SK"]) == (f"SRCID#{source_id}", "SOURCE")
    assert (item["provider"], item["status"], item["signingAlgorithm"]) == ("github", "active", "hmac-sha256")
    assert item["signingSecret"].startswith("v1."), "sealed at rest"
    assert RFC3339.fullmatch(item["lastEventAt"])


def test_a_connection_is_as_the_contract_says_and_counts(dynamodb: Any, made: Made) -> None:
    source_id, connection_id = made.source["source_id"], made.connection["connection_id"]

    def stored() -> dict[str, Any]:
        [item] = query(dynamodb, MAIN, f"SRC#{source_id}", "CONN#")
        return texts(item)

    wait_until(lambda: stored()["deliveryCount"] == "1")
    item = stored()
    assert item["SK"] == f"CONN#{connection_id}"
    assert json.loads(item["filters"]) == [{"on": "body", "match": {"action": "opened"}}]
    assert json.loads(item["transform"]) == [{"set": {"seen": True}}]
    assert json.loads(item["retryConfig"]) == {"schedule_seconds": [0, 5]}
    assert (item["status"], item["failureCount"]) == ("active", "0")
    assert made.connection["signing_secret"] not in json.dumps(item)


def test_an_event_its_attempt_and_its_delivery_are_as_the_contract_says(dynamodb: Any, made: Made) -> None:
    source_id, event_id = made.source["source_id"], made.event_id
    [item] = query(dynamodb, EVENTS, f"SRC#{source_id}", "EVT#")
    event = texts(item)
    received_at = int(event["receivedAt"])
    assert event["SK"] == f"EVT#{received_at:013d}#{event_id}"
    assert (event["GSI1PK"], event["GSI1SK"]) == (f"EVTID#{event_id}", "EVENT")
    assert "GSI2PK" not in event, "it is not due any more"
    assert abs(received_at / 1000 - made.sent_at) < 60
    assert int(event["expiresAt"]) == received_at // 1000 + DAY_SECONDS
    assert (event["status"], event["body"], event["method"]) == ("delivered", BODY.decode(), "POST")
    contract = {
        "eventId": "S", "sourceId": "S", "userId": "S", "status": "S", "headers": "S", "body": "S",
        "sourceIp": "S", "contentType": "S", "method": "S", "receivedAt": "N", "processedAt": "N",
        "deliveredAt": "N",
        "expiresAt": "N",
    }  # fmt: skip
    assert contract.items() <= types(item).items()
    assert ["X-GitHub-Delivery".lower(), "1"] in [[k.lower(), v] for k, v in json.loads(event["headers"])]

    connection_id = made.connection["connection_id"]
    [attempt_item] = query(dynamodb, EVENTS, f"EVT#{event_id}", "ATT#")
    attempt = texts(attempt_item)
    assert attempt["SK"] == f"ATT#01#{connection_id}"
    assert (attempt["attemptNumber"], attempt["statusCode"], attempt["responseBody"]) == ("1", "200", "ok")
    expected = {
        "eventId": "S", "connectionId": "S", "attemptNumber": "N", "destinationUrl": "S", "statusCode": "N",
        "responseBody": "S", "latencyMs": "N", "attemptedAt": "N",
    }  # fmt: skip
    assert expected.items() <= types(attempt_item).items()
    assert attempt["expiresAt"] == event["expiresAt"]

    [delivery] = query(dynamodb, EVENTS, f"EVT#{event_id}", "DLV#")
    assert texts(delivery)["SK"] == f"DLV#{connection_id}"
    assert (texts(delivery)["state"], texts(delivery)["expiresAt"]) == ("delivered", event["expiresAt"])
