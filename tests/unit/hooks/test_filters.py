from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.hooks.rules.filters import Filters, LazyBody, RuleVerdict, Subject, parse_filters
from crossdock.kit.errors import InvalidInput


def subject(
    body: Any = b"",
    headers: Sequence[tuple[str, str]] = (),
    query: str = "",
    path: str = "/in/src_1",
    method: str = "POST",
) -> Subject:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Subject.of(raw, headers, query, path, method)


def rule(on: str, match: Any) -> dict[str, Any]:
    return {"on": on, "match": match}


def problems(raw: Any, field: str = "filters") -> list[tuple[str, str]]:
    with pytest.raises(InvalidInput) as refusal:
        parse_filters(raw, field)
    assert refusal.value.code == "invalid_input"
    assert all(each.detail.endswith((".", "…}].")) for each in refusal.value.fields), refusal.value.fields
    return [(each.field, each.code) for each in refusal.value.fields]


# --- the parts of a request --------------------------------------------------------------------------

PUSH = subject(
    {"ref": "refs/heads/main", "commits": [{"id": "a1", "added": ["x.py"]}], "count": 3},
    [("X-GitHub-Event", "push"), ("Content-Length", "120"), ("Accept", "a"), ("accept", "b")],
    "env=prod&tag=a&tag=b&empty=&n=5",
    "/in/src_1/deploy",
)


@pytest.mark.parametrize(
    ("on", "match", "expected"),
    [
        ("body", {"ref": "refs/heads/main"}, True),
        ("body", {"commits": {"added": "x.py"}}, True),
        ("body", {"commits": {"added": "y.py"}}, False),
        ("headers", {"x-github-event": "push"}, True),
        ("headers", {"X-GITHUB-EVENT": "push"}, True),
        ("headers", {"X-GitHub-Event": "Push"}, False),
        ("headers", {"X-GitHub-Event": "push", "x-github-event": "issues"}, False),
        ("headers", {"Content-Length": {"$gt": 100}}, True),
        ("headers", {"Content-Length": {"$gt": 1000}}, False),
        ("headers", {"Accept": "a, b"}, True),
        ("headers", {"X-Missing": {"$exist": False}}, True),
        ("headers", {"$or": [{"X-A": "1"}, {"X-GitHub-Event": {"$in": ["push", "ping"]}}]}, True),
        ("headers", {"$not": {"X-GitHub-Event": "push"}}, False),
        ("headers", {"$and": [{"$not": {"X-GitHub-Event": "ping"}}, {"ACCEPT": {"$in": "b"}}]}, True),
        ("headers", {"Accept": {"$neq": {"$ref": "X-GitHub-Event"}}}, True),
        ("headers", {"$ref": "X-GitHub-Event"}, False),
        ("query", {"env": "prod"}, True),
        ("query", {"Env": "prod"}, False),
        ("query", {"tag": "b"}, True),
        ("query", {"tag": ["a", "b"]}, True),
        ("query", {"tag": ["a", "c"]}, False),
        ("query", {"empty": ""}, True),
        ("query", {"n": 5}, True),
        ("query", {"gone": {"$exist": False}}, True),
        ("path", "/in/src_1/deploy", True),
        ("path", {"$endsWith": "/deploy"}, True),
        ("path", {"$startsWith": "/out"}, False),
        ("path", {"$or": ["/a", {"$in": "src_1"}]}, True),
        ("path", {"a": 1}, False),
        ("method", "POST", True),
        ("method", {"$in": ["PUT", "PATCH"]}, False),
    ],
)
def test_a_rule_looks_at_one_part_of_the_request(on: str, match: Any, expected: bool) -> None:
    filters = parse_filters([rule(on, match)])
    assert filters.matches(PUSH) is expected
    assert [verdict.matches for verdict in filters.explain(PUSH)] == [expected]


def test_a_method_is_known_in_capitals() -> None:
    assert parse_filters([rule("method", "PATCH")]).matches(subject(method="patch"))


def test_all_rules_must_match() -> None:
    good, bad = rule("method", "POST"), rule("body", {"ref": "other"})
    assert parse_filters([]).matches(PUSH)
    assert parse_filters([good, good]).matches(PUSH)
    assert not parse_filters([good, bad]).matches(PUSH)
    assert not parse_filters([bad, good]).matches(PUSH)


def test_a_reference_leads_into_the_part_that_its_own_rule_looks_at() -> None:
    asked = subject({"env": "test"}, query="env=prod&wanted=prod")
    assert parse_filters([rule("query", {"env": {"$ref": "wanted"}})]).matches(asked)
    assert not parse_filters([rule("body", {"env": {"$ref": "wanted"}})]).matches(asked)


@pytest.mark.parametrize(
    ("body", "decoded"),
    [
        (b'{"a": 1}', {"a": 1}),
        (b"[1, 2]", [1, 2]),
        (b"null", None),
        (b'"text"', "text"),
        (b"\xef\xbb\xbf[1]", [1]),
        (b"", ""),
        (b"a=1&b=2", "a=1&b=2"),
        (b"<order/>", "<order/>"),
        (b"{'a': 1}", "{'a': 1}"),
        (b"[NaN]", "[NaN]"),
        (b"[1e999]", "[1e999]"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        ("Zoë".encode(), "Zoë"),
    ],
)
def test_a_body_that_is_no_json_is_matched_as_text(body: bytes, decoded: Any) -> None:
    assert LazyBody(body).decoded == decoded
    assert parse_filters([rule("body", {"$eq": decoded})]).matches(subject(body))


@pytest.mark.parametrize("depth", [900, 5_000, 100_000])
@pytest.mark.parametrize("brackets", [(b"[", b"]"), (b'{"a":', b"}")])
def test_a_body_nested_beyond_sense_is_matched_all_the_same(
    depth: int, brackets: tuple[bytes, bytes]
) -> None:
    hostile = subject(brackets[0] * depth + b"1" + brackets[1] * depth)
    assert parse_filters([rule("body", {"$not": {"b": 1}})]).matches(hostile)
    assert not parse_filters([rule("body", {"a": {"b": 1}})]).matches(hostile)


def test_a_body_is_decoded_once_for_all_that_ask() -> None:
    body = LazyBody(b'{"a": 1}')
    assert body.decoded is body.decoded


# --- explaining --------------------------------------------------------------------------------------


def test_each_rule_has_its_verdict_and_the_place_where_it_first_failed() -> None:
    filters = parse_filters(
        [
            rule("method", "POST"),
            rule("body", {"ref": {"$startsWith": "refs/"}, "count": {"$gt": 5}}),
            rule("headers", {"X-GitHub-Event": "ping"}),
            rule("path", "/"),
        ]
    )
    assert filters.explain(PUSH) == [
        RuleVerdict(True),
        RuleVerdict(False, "body.count.$gt"),
        RuleVerdict(False, "headers.X-GitHub-Event"),
        RuleVerdict(False, "path"),
    ]


def test_a_verdict_as_json_leaves_out_what_it_does_not_say() -> None:
    assert msgspec.json.encode(RuleVerdict(True)) == b'{"matches":true}'
    assert msgspec.json.encode(RuleVerdict(False, "body.a")) == b'{"matches":false,"path":"body.a"}'


COSTLY = rule("body", [*range(1, 500)])
COSTLY_BODY = [0] * 1_000 + [*range(1, 500)]


def test_a_match_over_its_budget_fails_soon_and_says_so() -> None:
    begin = time.process_time()
    filters = parse_filters([COSTLY])
    assert not filters.matches(subject(COSTLY_BODY))
    [verdict] = filters.explain(subject(COSTLY_BODY))
    assert (verdict.matches, verdict.path) == (False, "body")
    assert verdict.detail is not None
    assert "100,000 steps" in verdict.detail
    assert time.process_time() - begin < 1.0


def test_the_budget_is_for_all_rules_together() -> None:
    half = rule("body", [*range(1, 60)])
    body = subject([0] * 1_000 + [*range(1, 60)])
    assert parse_filters([half]).matches(body)
    assert not parse_filters([half, half]).matches(body)
    assert [each.matches for each in parse_filters([half, half]).explain(body)] == [True, False]


# --- what is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (None, [("filters", "wrong_type")]),
        ({}, [("filters", "wrong_type")]),
        ("body", [("filters", "wrong_type")]),
        ([5], [("filters[0]", "wrong_type")]),
        ([[]], [("filters[0]", "wrong_type")]),
        ([{}], [("filters[0].on", "required"), ("filters[0].match", "required")]),
        ([{"on": "body"}], [("filters[0].match", "required")]),
        ([{"match": 1}], [("filters[0].on", "required")]),
        ([{"on": "cookie", "match": 1}], [("filters[0].on", "not_a_choice")]),
        ([{"on": "BODY", "match": 1}], [("filters[0].on", "not_a_choice")]),
        ([{"on": None, "match": 1}], [("filters[0].on", "not_a_choice")]),
        ([{"on": ["body"], "match": 1}], [("filters[0].on", "not_a_choice")]),
        ([{"on": "body", "match": 1, "not": 2}], [("filters[0].not", "unknown_field")]),
        (
            [rule("path", "/"), {"on": "body"}, {"on": "x", "match": {}}],
            [("filters[1].match", "required"), ("filters[2].on", "not_a_choice")],
        ),
        ([rule("path", "/")] * 51, [("filters", "too_many")]),
    ],
)
def test_a_rule_of_a_wrong_form_is_refused_at_its_place(raw: Any, expected: list[tuple[str, str]]) -> None:
    assert problems(raw) == expected


@pytest.mark.parametrize(
    ("match", "place", "code"),
    [
        ({"a": {"$like": 1}}, ".a.$like", "unknown_operator"),
        ({"$": 1}, ".$", "unknown_operator"),
        ({"$GT": 1}, ".$GT", "unknown_operator"),
        ({"$or": [{"a": {"$exists": True}}]}, ".$or[0].a.$exists", "unknown_operator"),
        ([{"$like": 1}], "[0].$like", "unknown_operator"),
        ({"a": {"$gt": 1, "b": 2}}, ".a", "mixed_keys"),
        ({"type": "x", "$or": [1]}, "", "mixed_keys"),
        ({"a": {"$gt": True}}, ".a.$gt", "wrong_type"),
        ({"a": {"$gt": None}}, ".a.$gt", "wrong_type"),
        ({"a": {"$gte": [1]}}, ".a.$gte", "wrong_type"),
        ({"a": {"$lt": {"b": 1}}}, ".a.$lt", "wrong_type"),
        ({"a": {"$lte": {}}}, ".a.$lte", "wrong_type"),
        ({"a": {"$in": {"b": 1}}}, ".a.$in", "wrong_type"),
        ({"a": {"$in": [["b"]]}}, ".a.$in", "wrong_type"),
        ({"a": {"$nin": [{}]}}, ".a.$nin", "wrong_type"),
        ({"a": {"$startsWith": 5}}, ".a.$startsWith", "wrong_type"),
        ({"a": {"$startsWith": []}}, ".a.$startsWith", "wrong_type"),
        ({"a": {"$endsWith": ["b", 5]}}, ".a.$endsWith", "wrong_type"),
        ({"a": {"$exist": 1}}, ".a.$exist", "wrong_type"),
        ({"a": {"$exist": "true"}}, ".a.$exist", "wrong_type"),
        ({"$or": {}}, ".$or", "wrong_type"),
        ({"$or": []}, ".$or", "wrong_type"),
        ({"$and": "a"}, ".$and", "wrong_type"),
        ({"$not": {"$gt": True}}, ".$not.$gt", "wrong_type"),
        ({"$eq": {"a": [{"$gt": 5}]}}, ".$eq", "wrong_type"),
        ({"$neq": [{"$ref": "a"}]}, ".$neq", "wrong_type"),
        ({"a": {"$ref": 5}}, ".a.$ref", "wrong_type"),
        ({"a": {"$ref": ""}}, ".a.$ref", "wrong_format"),
        ({"a": {"$ref": "a..b"}}, ".a.$ref", "wrong_format"),
        ({"a": {"$ref": ".a"}}, ".a.$ref", "wrong_format"),
        ({"a": {"$ref": "a" + ".a" * 40}}, ".a.$ref", "wrong_format"),
        ({"a": {"$ref": "items[0].id"}}, ".a.$ref", "wrong_format"),
        ({"a": {"$ref": "items[$index].id"}}, ".a.$ref", "wrong_format"),
        ({"a": {"$gt": {"$ref": None}}}, ".a.$gt.$ref", "wrong_type"),
        ({"a": {"$gt": {"$ref": "a."}}}, ".a.$gt.$ref", "wrong_format"),
        ({"a": {"$gt": {"$ref": "a", "$eq": 1}}}, ".a.$gt", "mixed_keys"),
        ({"a": {"$gt": {"$ref": "a", "b": 1}}}, ".a.$gt", "mixed_keys"),
    ],
)
def test_what_is_wrong_in_a_match_is_said_at_its_place(match: Any, place: str, code: str) -> None:
    raw = [rule("path", "/"), rule("body", match)]
    assert problems(raw) == [(f"filters[1].match{place}", code)]
    assert problems(raw, "sample.filters") == [(f"sample.filters[1].match{place}", code)]


def test_everything_wrong_is_said_at_once_but_no_more_than_a_person_mends() -> None:
    wrong = [rule("body", {"a": {"$gt": None}, "b": {"$like": 1}}), rule("path", {"$exist": 0})]
    assert [code for _, code in problems(wrong)] == ["wrong_type", "unknown_operator", "wrong_type"]
    assert len(problems([rule("body", {str(n): {"$x": 1} for n in range(50)})])) == 20


def nested(depth: int, *, as_object: bool) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value} if as_object else [value]
    return value


@pytest.mark.parametrize("as_object", [True, False])
@pytest.mark.parametrize(
    ("depth", "code"), [(30, None), (31, "too_deep"), (5_000, "too_deep"), (100_000, "too_deep")]
)
def test_a_match_is_nested_so_deep_and_no_deeper(depth: int, as_object: bool, code: str | None) -> None:
    raw = [rule("body", nested(depth, as_object=as_object))]
    if code is None:
        assert parse_filters(raw).matches(subject(nested(depth, as_object=as_object)))
    else:
        assert problems(raw) == [("filters", code)]


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ([rule("body", [0] * 2_000)], "too_many"),
        ([rule("body", {"$in": [0] * 2_000})], "too_many"),
        ([rule("body", {str(n): n for n in range(2_000)})], "too_many"),
        ([rule("body", "x" * 66_000)], "too_large"),
        ([rule("body", {"x" * 66_000: 1})], "too_large"),
        ([rule("body", ["é" * 400] * 100)], "too_large"),
        ([rule("body", 10**5_000)], "wrong_type"),
        ([rule("body", "\ud800")], "wrong_type"),
        ([rule("body", {"\ud800": 1})], "wrong_type"),
        ([rule("body", {1: 2})], "wrong_type"),
        ([rule("body", b"bytes")], "wrong_type"),
        ([rule("body", {1, 2})], "wrong_type"),
        ([rule("body", {"a": object()})], "wrong_type"),
    ],
)
def test_a_filter_too_large_or_beyond_json_is_refused_whole(raw: Any, code: str) -> None:
    assert problems(raw) == [("filters", code)]


def test_the_largest_filters_are_taken() -> None:
    assert parse_filters([rule("path", "/in/src_1/deploy")] * 50).matches(PUSH)
    assert parse_filters([rule("body", {"$in": [0] * 1_990})]).matches(subject(0))
    assert parse_filters([rule("body", "x" * 65_000)]).matches(subject("x" * 65_000))


# --- whatever comes in -------------------------------------------------------------------------------

names = st.sampled_from(
    ["a", "b", "X-A", "$or", "$and", "$not", "$ref", "$eq", "$gt", "$in", "$exist", "$startsWith"]
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from(["a", "a.b"])
)
any_json = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=10,
)
parts = st.sampled_from(["body", "headers", "query", "path", "method"])
requests = st.builds(
    Subject.of,
    st.binary(max_size=12) | any_json.map(msgspec.json.encode),
    st.lists(st.tuples(st.sampled_from(["a", "X-a", "B"]), st.text(max_size=4)), max_size=3),
    st.text(max_size=8) | st.sampled_from(["a=1&a=b", "a.b=1;b", "%ff=%00&=&&"]),
    st.text(max_size=4),
    st.text(max_size=4),
)


@given(any_json)
def test_parsing_refuses_whatever_is_wrong_with_invalid_input_alone(raw: Any) -> None:
    try:
        assert isinstance(parse_filters(raw), Filters)
    except InvalidInput as refusal:
        assert refusal.fields
        assert all(each.field.startswith("filters") for each in refusal.fields)


@given(st.lists(st.tuples(parts, any_json), max_size=3), requests)
def test_matching_never_raises_and_agrees_with_its_explanation(
    rules: list[tuple[str, Any]], request_: Subject
) -> None:
    try:
        filters = parse_filters([rule(on, match) for on, match in rules])
    except InvalidInput:
        return
    verdicts = filters.explain(request_)
    assert filters.matches(request_) is all(each.matches for each in verdicts)
    assert all((each.path is None) is each.matches for each in verdicts)
