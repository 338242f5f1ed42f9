"""One OpenAPI 3.1 document for everything served: the management API as Litestar describes it, and the lanes.

Every operation may answer with a problem, so that is said once, as its `default` response.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from litestar import Litestar
from litestar.openapi import OpenAPIConfig
from litestar.types import ControllerRouterHandler

from crossdock.http.guards import SESSION_COOKIE
from crossdock.http.management import StrictBody
from crossdock.http.problems import MEDIA_TYPE
from crossdock.web.lanes import Lane

_PROBLEM_SCHEMA = {
    "type": "object",
    "required": ["type", "title", "status", "code", "detail"],
    "properties": {
        "type": {"type": "string", "description": "`urn:crossdock:problem:` and the code."},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string", "description": "Stable; decide by this."},
        "detail": {"type": "string", "description": "For people; may change."},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["field", "code", "detail"],
                "properties": {name: {"type": "string"} for name in ("field", "code", "detail")},
            },
        },
        "request_id": {"type": "string", "description": "With status 500: the log has it too."},
    },
}
_SECURITY_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A key: operator, workspace or a slice's."},
    "api_key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    "session": {"type": "apiKey", "in": "cookie", "name": SESSION_COOKIE},
}
_METHODS = frozenset({"get", "put", "post", "delete", "options", "head", "patch", "trace"})
# Litestar names a page of keys `Page_crossdock.access.model.ApiKey_`.
_GENERIC = re.compile(r"\bPage_(?:\w+\.)*(\w+?)_(?=\"|$)")


def document(handlers: Sequence[ControllerRouterHandler], lanes: Sequence[Lane], version: str) -> bytes:
    """The document as JSON. It takes a moment: make it once."""
    described = _described(handlers, version)
    described["info"] = {"title": "Crossdock", "version": version}
    described["servers"] = [{"url": "/"}]
    described["security"] = [{name: []} for name in _SECURITY_SCHEMES]
    paths = described.setdefault("paths", {})
    components = described.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for lane in lanes:
        _merge(paths, lane.openapi, lane.path)
        _merge(schemas, lane.schemas, lane.path)
    schemas["Problem"] = _PROBLEM_SCHEMA
    components["securitySchemes"] = _SECURITY_SCHEMES
    components["responses"] = {
        "Problem": {
            "description": "What went wrong (RFC 9457).",
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
    }
    for path in paths.values():
        for method, operation in path.items():
            if method in _METHODS:
                _tell_of_problems(operation)
    described["paths"] = dict(sorted(paths.items()))
    return _GENERIC.sub(r"\1Page", msgspec.json.encode(described).decode()).encode()


def _described(handlers: Sequence[ControllerRouterHandler], version: str) -> dict[str, Any]:
    """By an application of its own, which serves nothing: Litestar's page loads scripts from elsewhere."""
    config = OpenAPIConfig(title="Crossdock", version=version, use_handler_docstrings=True)
    app = Litestar(handlers, dto=StrictBody, return_dto=None, openapi_config=config, logging_config=None)
    schema: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(app.openapi_schema.to_schema()))
    return schema


def _merge(into: dict[str, Any], added: Mapping[str, Any], origin: str) -> None:
    for name, value in added.items():
        if name in into and into[name] != value:
            raise ValueError(f"{origin} describes {name}, which is described otherwise already")
        into[name] = value


def _tell_of_problems(operation: dict[str, Any]) -> None:
    responses: dict[str, Any] = operation.setdefault("responses", {})
    # Litestar's guess at its own validation errors, which never leave here in that form.
    responses.pop("400", None)
    responses["default"] = {"$ref": "#/components/responses/Problem"}
