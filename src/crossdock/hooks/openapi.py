"""What the ingest lane adds to the OpenAPI document."""

from __future__ import annotations

from typing import Any

_ACCEPTED: dict[str, Any] = {
    "description": "Kept, durably; or the answer that the source's owner has set, or a challenge's.",
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "properties": {"event_id": {"type": "string"}},
                "required": ["event_id"],
            }
        }
    },
}

INGEST_PATHS: dict[str, Any] = {
    "/in/{source_id}": {
        "post": {
            "tags": ["hooks"],
            "operationId": "Ingest",
            "summary": "Receive a webhook",
            "description": (
                "By any method, and at any path below. The body is at most 256 KB; headers, path and query "
                "at most 32 KB. A repeated delivery gets the first one's event id; it is not delivered again."
            ),
            "security": [],
            "parameters": [
                {"name": "source_id", "in": "path", "required": True, "schema": {"type": "string"}}
            ],
            "requestBody": {"content": {"*/*": {"schema": {}}}},
            "responses": {"200": _ACCEPTED},
        }
    }
}
