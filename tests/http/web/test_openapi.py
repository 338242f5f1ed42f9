from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from tests.support.asgi_client import AsgiClient

from crossdock.web.lanes import Lane
from crossdock.web.openapi import document

Node = dict[str, Any]


async def described(client: AsgiClient) -> Node:
    answer = await client.get("/openapi.json")
    assert answer.header("content-type") == "application/json"
    found: Node = answer.json()
    return found


def operations(found: Node) -> Iterator[tuple[str, Node]]:
    for path, item in found["paths"].items():
        for method, operation in item.items():
            yield f"{method} {path}", operation


def references(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for each in node.values():
            yield from references(each)
    elif isinstance(node, list):
        for each in node:
            yield from references(each)


async def test_the_document_has_the_framework_s_operations_and_those_of_the_lanes(client: AsgiClient) -> None:
    found = await described(client)
    assert found["openapi"].startswith("3.1")
    assert found["info"]["version"] == "1.2.3"
    assert {name for name, _ in operations(found)} == {
        "post /v1/toys/things",
        "get /v1/toys/things",
        "get /v1/toys/things/{thing_id}",
        "get /v1/toys/things/named/{name}",
        "post /v1/toys/echo",
    }


async def test_every_reference_leads_somewhere(client: AsgiClient) -> None:
    found = await described(client)
    for reference in set(references(found)):
        node: Any = found
        for step in reference.removeprefix("#/").split("/"):
            node = node[step]
        assert node


async def test_every_operation_may_answer_a_problem_and_none_as_litestar_would(client: AsgiClient) -> None:
    for name, operation in operations(await described(client)):
        assert operation["responses"]["default"] == {"$ref": "#/components/responses/Problem"}, name
        assert "400" not in operation["responses"], name


async def test_every_way_to_authenticate_is_described(client: AsgiClient) -> None:
    found = await described(client)
    assert found["security"] == [{"bearer": []}, {"api_key": []}, {"session": []}]
    assert found["components"]["securitySchemes"].keys() == {"bearer", "api_key", "session"}


async def test_parameters_bodies_and_pages_are_described(client: AsgiClient) -> None:
    found = await described(client)
    make, index = found["paths"]["/v1/toys/things"]["post"], found["paths"]["/v1/toys/things"]["get"]
    body = make["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"$ref": "#/components/schemas/NewThing"}
    assert found["components"]["schemas"]["NewThing"]["required"] == ["name"]
    assert {parameter["name"] for parameter in index["parameters"]} == {"limit", "cursor", "size", "wide"}
    page = found["components"]["schemas"]["ThingPage"]
    assert page["properties"].keys() == {"data", "next_cursor"}


def test_two_descriptions_of_one_thing_are_a_mistake() -> None:
    async def nothing(*_: object) -> None:
        return None

    lanes = [
        Lane("/a", nothing, "x", {}, {"Same": {"type": "object"}}),
        Lane("/b", nothing, "x", {}, {"Same": {"type": "string"}}),
    ]
    with pytest.raises(ValueError, match="Same"):
        document([], lanes, "0")


# --- the page ----------------------------------------------------------------------------------------


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


async def test_the_page_loads_nothing_and_runs_nothing(client: AsgiClient) -> None:
    page = await client.get("/docs")
    tags = Tags()
    tags.feed(page.body.decode())
    assert not {tag for tag, _ in tags.found} & {"script", "link", "img", "iframe", "object", "embed"}
    assert not [name for _, attributes in tags.found for name in attributes if name.startswith("on")]
    targets = [attributes["href"] or "" for tag, attributes in tags.found if tag == "a"]
    assert all(target.startswith("#") or target == "/openapi.json" for target in targets)
    assert page.header("content-security-policy") == "default-src 'none'; style-src 'unsafe-inline'"
    assert b"url(" not in page.body
    assert b"@import" not in page.body


async def test_the_page_tells_of_every_operation_and_links_lead_to_what_is_there(client: AsgiClient) -> None:
    text = (await client.get("/docs")).body.decode()
    for name, _ in operations(await described(client)):
        method, path = name.split(" ")
        assert f'<span class="method">{method}</span><span class="path">{path}</span>' in text
    anchors = set(re.findall(r'id="([^"]+)"', text))
    assert set(re.findall(r'href="#([^"]+)"', text)) <= anchors
    assert {"schema-Thing", "schema-NewThing", "schema-Problem", "schema-Echo"} <= anchors


async def test_text_of_the_document_is_escaped(client: AsgiClient) -> None:
    text = (await client.get("/docs")).body.decode()
    assert "Show &lt;b&gt;one&lt;/b&gt; &amp; &quot;only&quot; one" in text
