"""What the readings lane adds to the OpenAPI document; its types are those it decodes and encodes."""

from __future__ import annotations

from typing import Any

import msgspec

from crossdock.devices.model import Verdict
from crossdock.devices.rules.requests import SentReadings


def readings_schemas() -> dict[str, Any]:
    _, schemas = msgspec.json.schema_components(
        [SentReadings, Verdict], ref_template="#/components/schemas/{name}"
    )
    return schemas


def _json(name: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}


READINGS_PATHS: dict[str, Any] = {
    "/v1/devices/readings": {
        "post": {
            "tags": ["devices"],
            "operationId": "PostReadings",
            "summary": "Send readings",
            "description": (
                "Up to 100 readings, exactly once: readings that share a `batch_id` are stored together, and "
                "a batch that is sent again is told to be a duplicate. A bad reading is rejected alone."
            ),
            "requestBody": {"required": True, "content": _json("SentReadings")},
            "responses": {
                "200": {
                    "description": "What became of every batch, after it was made durable.",
                    "content": _json("Verdict"),
                }
            },
        }
    }
}
