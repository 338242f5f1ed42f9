"""`/docs`: the OpenAPI document as a page of HTML, without scripts and with nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

_METHODS = ("get", "post", "put", "patch", "delete", "head", "options")
_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code, .path { font-family: ui-monospace, monospace; font-size: .92em; }
details { border: 1px solid #8885; border-radius: 6px; margin: .5rem 0; padding: .4rem .8rem; }
summary { cursor: pointer; }
.method { display: inline-block; min-width: 4.5rem; font-weight: 700; text-transform: uppercase; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0; }
td { border-bottom: 1px solid #8883; }
"""


def render(document: Mapping[str, Any]) -> str:
    """Pure. Everything from the document is escaped."""
    title = f"{document['info']['title']} {document['info']['version']}"
    parts = [
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>',
        f"<style>{_STYLE}</style><h1>{escape(title)}</h1>",
        '<p>The same for machines: <a href="/openapi.json">/openapi.json</a>. Authenticate with ',
        "<code>Authorization: Bearer &lt;key&gt;</code>. ",
        'Every error is <code>application/problem+json</code>: <a href="#schema-Problem">Problem</a>.</p>',
    ]
    for tag, operations in _by_tag(document).items():
        parts.append(f"<h2>{escape(tag)}</h2>")
        parts += [_operation(*operation) for operation in operations]
    parts.append("<h2>Schemas</h2>")
    schemas = document.get("components", {}).get("schemas", {})
    parts += [_schema(name, schema) for name, schema in sorted(schemas.items())]
    return "".join([*parts, "</html>"])


def _by_tag(document: Mapping[str, Any]) -> dict[str, list[tuple[str, str, Mapping[str, Any]]]]:
    tags: dict[str, list[tuple[str, str, Mapping[str, Any]]]] = {}
    for path, item in document.get("paths", {}).items():
        for method in _METHODS:
            if method in item:
                tag = (item[method].get("tags") or ["other"])[0]
                tags.setdefault(tag, []).append((method, path, item[method]))
    return dict(sorted(tags.items()))


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> str:
    parts = [
        f'<details><summary><span class="method">{method}</span>',
        f'<span class="path">{escape(path)}</span> {escape(operation.get("summary") or "")}</summary>',
        f"<p>{escape(operation.get('description') or '')}</p>",
    ]
    if operation.get("parameters"):
        rows = ((p["name"], p["in"], p.get("description") or "") for p in operation["parameters"])
        parts.append(_table(("Parameter", "In", ""), rows))
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        parts.append(f"<p>Body: <code>{escape(media_type)}</code> {_type(content.get('schema', {}))}</p>")
    parts.append("<p>Answers:</p><ul>")
    for status, response in operation.get("responses", {}).items():
        contents = response.get("content", {}).values()
        kinds = ", ".join(_type(content.get("schema", {})) for content in contents)
        parts.append(f"<li>{escape(status)} {_link(response) if '$ref' in response else kinds}</li>")
    return "".join([*parts, "</ul></details>"])


def _schema(name: str, schema: Mapping[str, Any]) -> str:
    required = schema.get("required", ())
    rows = (
        (field, "required" if field in required else "", _Markup(_type(kind) + _about(kind)))
        for field, kind in schema.get("properties", {}).items()
    )
    about = escape(schema.get("description") or "")
    return f'<h3 id="schema-{escape(name)}">{escape(name)}</h3><p>{about}</p>' + _table(
        ("Field", "", ""), rows
    )


class _Markup(str):
    """HTML already."""


def _table(heads: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    head = "".join(f"<th>{escape(each)}</th>" for each in heads)
    body = "".join(f"<tr>{''.join(_cell(each) for each in row)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _cell(text: str) -> str:
    return f"<td>{text if isinstance(text, _Markup) else escape(text)}</td>"


def _about(schema: Mapping[str, Any]) -> str:
    return f" {escape(schema['description'])}" if schema.get("description") else ""


def _type(schema: Mapping[str, Any]) -> str:
    """A schema in a few words of HTML, with links to those that have a name."""
    if "$ref" in schema:
        return _link(schema)
    for union in ("oneOf", "anyOf", "allOf"):
        if union in schema:
            return " or ".join(_type(each) for each in schema[union])
    if "items" in schema:
        return f"list of {_type(schema['items'])}"
    if "enum" in schema:
        return " or ".join(f"<code>{escape(str(each))}</code>" for each in schema["enum"])
    kind = schema.get("type", "anything")
    name = " or ".join(kind) if isinstance(kind, list) else str(kind)
    return escape(f"{name} ({schema['format']})" if schema.get("format") else name)


def _link(reference: Mapping[str, Any]) -> str:
    name = escape(str(reference["$ref"]).rsplit("/", 1)[1])
    return f'<a href="#schema-{name}">{name}</a>'
