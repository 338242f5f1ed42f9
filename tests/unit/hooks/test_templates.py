from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.hooks.rules.templates import TemplateProblem, parse_template
from crossdock.hooks.rules.transform_work import OUTPUT_BYTES_MAX, WORK_MAX, StepFailed, Work

ORDER = {
    "id": 7,
    "customer": {"name": 'Zoë "the fox" 🦊', "tags": ["a", "b"]},
    "price": 9.5,
    "whole": 2.0,
    "paid": True,
    "note": None,
    "empty": "",
    "dot.ted": "yes",
    "pipe|d": "yes",
    "items": [{"id": "x"}],
}


def rendered(template: str, document: Any = ORDER) -> str:
    return parse_template(template).render(document, Work()).decode()


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("", ""),
        ("plain", "plain"),
        ("Order {{ id }}", "Order 7"),
        ("{{id}}{{ id }}{{  id  }}", "777"),
        ("{{\nid\n}}", "7"),
        ("{{ price }} {{ whole }}", "9.5 2.0"),
        ("{{ paid }}", "true"),
        ("{{ customer.name }}", 'Zoë "the fox" 🦊'),
        ("{{ customer.tags }}", '["a","b"]'),
        ("{{ customer.tags.1 }}", "b"),
        ("{{ items.0.id }}", "x"),
        ("{{ items.0 }}", '{"id":"x"}'),
        ("{{ dot\\.ted }}", "yes"),
        ("[{{ note }}]", "[]"),
        ("[{{ empty }}]", "[]"),
        ("[{{ gone }}]", "[]"),
        ("[{{ gone.further }}]", "[]"),
        ("[{{ id.further }}]", "[]"),
        ("{{ customer.name | json }}", json.dumps('Zoë "the fox" 🦊', ensure_ascii=False)),
        ("{{ id|json }}", "7"),
        ("{{ customer.tags | json }}", '["a","b"]'),
        ("{{ note | json }}", "null"),
        ("{{ gone | json }}", "null"),
        ("{{ pipe|d | json }}", '"yes"'),
        ("{{ gone | json | json }}", "null"),
        ('{"a":{"b":{{ id | json }}}}', '{"a":{"b":7}}'),
        ("} }} {", "} }} {"),
        ("{ id }", "{ id }"),
        ("Zoë {{ id }} 🦊", "Zoë 7 🦊"),
    ],
)
def test_placeholders_become_values(template: str, text: str) -> None:
    assert rendered(template) == text


@pytest.mark.parametrize(
    ("template", "detail"),
    [
        ("{{", "At character 1: a {{ has no }}."),
        ("Hello {{ name }", "At character 7: a {{ has no }}."),
        ("{{ a }} {{ b", "At character 9: a {{ has no }}."),
        ("{{}}", "At character 1: A path is names"),
        ("{{ }}", "At character 1: A path is names"),
        ("ab {{ a..b }}", "At character 4: A path is names"),
        ("{{ | json }}", "At character 1: A path is names"),
        ("{{ a | upper }}", "At character 1: after the | may come json only."),
        ("{{ a | }}", "At character 1: after the | may come json only."),
        ("{{{ a }}}", "At character 1: a placeholder is {{ a.path }}"),
        ("{{ {{ a }} }}", "At character 1: a placeholder is {{ a.path }}"),
        ("{{ " + "a." * 40 + "a }}", "At character 1: A path has at most 32 parts."),
    ],
)
def test_a_wrong_placeholder_is_refused_at_its_character(template: str, detail: str) -> None:
    with pytest.raises(TemplateProblem) as problem:
        parse_template(template)
    assert str(problem.value).startswith(detail)


def test_a_template_without_placeholders_needs_no_document() -> None:
    assert not parse_template("plain }}").needs_document
    assert parse_template("{{ a }}").needs_document


def doubled(times: int) -> Any:
    value: Any = "x"
    for _ in range(times):
        value = [value, value]
    return value


@pytest.mark.parametrize(
    ("template", "document"),
    [
        ("{{ a }}" * 3, {"a": "x" * 250_000}),
        ("{{ a }}" * 8_000, {"a": "x" * 250_000}),
        ("{{ a | json }}" * 4_000, {"a": ["x" * 1_000] * 200}),
        ("{{ a }}", {"a": doubled(60)}),
        ("{{ a | json }}", {"a": "\x00" * 100_000}),
        ("{{ a }}", {"a": doubled(1_000)}),
    ],
)
def test_a_text_that_would_be_huge_is_given_up_soon(template: str, document: Any) -> None:
    begin = time.process_time()
    with pytest.raises(StepFailed, match=r"512 KB|nested|steps"):
        rendered(template, document)
    assert time.process_time() - begin < 1.0


@pytest.mark.parametrize("template", ["{{ a }}", "{{ a | json }}"])
def test_a_text_that_is_made_is_paid_for(template: str) -> None:
    work = Work()
    parse_template(template).render({"a": "x" * 16_000}, work)
    assert WORK_MAX - work.left >= 1_000


def test_the_largest_text_is_written() -> None:
    half = "x" * (OUTPUT_BYTES_MAX // 2)
    assert len(rendered("{{ a }}{{ a }}", {"a": half})) == OUTPUT_BYTES_MAX
    with pytest.raises(StepFailed, match="512 KB"):
        rendered("{{ a }}{{ a }}.", {"a": half})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(json_values, json_values)
def test_a_template_of_json_stays_json_whatever_the_values_are(first: Any, second: Any) -> None:
    document = {"first": first, "second": second}
    text = rendered('{"a": {{ first | json }}, "b": [{{ second | json }}, {{ gone | json }}]}', document)
    assert json.loads(text) == {"a": first, "b": [second, None]}


@given(st.text())
def test_any_text_is_a_template_or_refused_as_one(text: str) -> None:
    try:
        template = parse_template(text)
    except TemplateProblem:
        assert "{{" in text
        return
    assert template.needs_document or template.render(None, Work()).decode() == text
