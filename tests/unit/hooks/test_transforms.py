from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.hooks.rules.transforms import Message, Transform, TransformFailed, parse_transform
from crossdock.kit.errors import CrossdockError, InvalidInput

ORDER: dict[str, Any] = {
    "id": 7,
    "customer": {"name": "Zoë", "mail": "z@example.org"},
    "items": [{"sku": "a", "n": 1}, {"sku": "b", "n": 2}],
    "note": None,
    "a.b": "dotted",
    "flag": False,
}
HEADERS = (("Content-Type", "application/json; charset=utf-8"), ("X-A", "1"), ("x-b", "2"), ("X-a", "3"))


def message(body: Any = ORDER, headers: Sequence[tuple[str, str]] = HEADERS) -> Message:
    return Message(body if isinstance(body, bytes) else json.dumps(body).encode(), tuple(headers))


def transformed(steps: list[Any], body: Any = ORDER) -> Any:
    return json.loads(parse_transform(steps).apply(message(body)).body)


def failure(steps: list[Any], body: Any = ORDER) -> str:
    transform = parse_transform(steps)
    with pytest.raises(TransformFailed) as failed:
        transform.apply(message(body))
    assert failed.value.code == "transform_failed"
    assert isinstance(failed.value, CrossdockError)
    return failed.value.message


def problems(raw: Any, field: str = "transform") -> list[tuple[str, str]]:
    with pytest.raises(InvalidInput) as refusal:
        parse_transform(raw, field)
    assert refusal.value.code == "invalid_input"
    assert all(each.detail for each in refusal.value.fields)
    return [(each.field, each.code) for each in refusal.value.fields]


# --- the body ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "body", "expected"),
    [
        ({"set": {"a": 1}}, {}, {"a": 1}),
        ({"set": {"a": 1, "b": [2]}}, {"a": 0, "c": 3}, {"a": 1, "c": 3, "b": [2]}),
        ({"set": {"a.b.c": None}}, {}, {"a": {"b": {"c": None}}}),
        ({"set": {"a.b": 1}}, {"a": {"c": 2}}, {"a": {"c": 2, "b": 1}}),
        ({"set": {"a.b": 1}}, {"a": None}, {"a": {"b": 1}}),
        ({"set": {"a\\.b": 1}}, {"a": 0}, {"a": 0, "a.b": 1}),
        ({"set": {"a.0": 1}}, {}, {"a": {"0": 1}}),
        ({"set": {"a.0": 1}}, {"a": ["x", "y"]}, {"a": [1, "y"]}),
        ({"set": {"a.2": 1}}, {"a": ["x", "y"]}, {"a": ["x", "y", 1]}),
        ({"set": {"a.0.b": 1}}, {"a": [{"c": 2}]}, {"a": [{"c": 2, "b": 1}]}),
        ({"set": {"a.0.b": 1}}, {"a": []}, {"a": [{"b": 1}]}),
        ({"set": {"0.a": 1}}, [{}], [{"a": 1}]),
        ({"set": {"a": 1}}, None, {"a": 1}),
        ({"set": {"Zoë": "🦊"}}, {}, {"Zoë": "🦊"}),
        ({"copy": {"from": "a", "to": "b"}}, {"a": {"x": 1}}, {"a": {"x": 1}, "b": {"x": 1}}),
        ({"copy": {"from": "a", "to": "a.a"}}, {"a": {"x": 1}}, {"a": {"x": 1, "a": {"x": 1}}}),
        ({"copy": {"from": "a.0", "to": "first"}}, {"a": [5]}, {"a": [5], "first": 5}),
        ({"copy": {"from": "a", "to": "b"}}, {"a": None}, {"a": None, "b": None}),
        ({"copy": {"from": "x", "to": "b", "if_present": True}}, {"a": 1}, {"a": 1}),
        ({"copy": {"from": "a", "to": "b", "if_present": True}}, {"a": 1}, {"a": 1, "b": 1}),
        ({"move": {"from": "a", "to": "b.c"}}, {"a": 1, "b": {}}, {"b": {"c": 1}}),
        ({"move": {"from": "a.b", "to": "a"}}, {"a": {"b": 1, "c": 2}}, {"a": 1}),
        ({"move": {"from": "a", "to": "a.b"}}, {"a": 1}, {"a": {"b": 1}}),
        ({"move": {"from": "a", "to": "a"}}, {"a": 1}, {"a": 1}),
        ({"move": {"from": "a.0", "to": "a.1"}}, {"a": [1, 2, 3]}, {"a": [2, 1]}),
        ({"move": {"from": "x", "to": "b", "if_present": True}}, {"a": 1}, {"a": 1}),
        ({"rename": {"from": "a", "to": "b"}}, {"a": 1, "c": 2}, {"b": 1, "c": 2}),
        ({"rename": {"from": "x.y.a", "to": "b"}}, {"x": {"y": {"a": 1}}}, {"x": {"y": {"b": 1}}}),
        ({"rename": {"from": "l.0.a", "to": "b"}}, {"l": [{"a": 1}]}, {"l": [{"b": 1}]}),
        ({"rename": {"from": "a", "to": "b"}}, {"a": 1, "b": 2}, {"b": 1}),
        ({"rename": {"from": "a", "to": "a"}}, {"a": 1}, {"a": 1}),
        ({"rename": {"from": "a", "to": "b\\.c"}}, {"a": 1}, {"b.c": 1}),
        ({"rename": {"from": "x", "to": "b", "if_present": True}}, {"a": 1}, {"a": 1}),
        ({"remove": ["a"]}, {"a": 1, "b": 2}, {"b": 2}),
        ({"remove": ["a.b", "a.c", "x", "a.b.c"]}, {"a": {"b": 1, "c": 2, "d": 3}}, {"a": {"d": 3}}),
        ({"remove": ["a.0", "a.0"]}, {"a": [1, 2, 3]}, {"a": [3]}),
        ({"remove": ["a.9", "a.b", "a.-1"]}, {"a": [1]}, {"a": [1]}),
        ({"remove": ["0"]}, [1, 2], [2]),
        ({"remove": ["a"]}, "text", "text"),
        ({"pick": ["a"]}, {"a": {"b": 1}, "c": 2}, {"a": {"b": 1}}),
        ({"pick": ["b.c", "a"]}, {"a": 1, "b": {"c": 2, "d": 3}, "e": 4}, {"a": 1, "b": {"c": 2}}),
        ({"pick": ["x", "a.x", "b.c.d"]}, {"a": {}, "b": {"c": 1}}, {}),
        ({"pick": ["a", "a.b"]}, {"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 2}}),
        ({"pick": ["a.b", "a"]}, {"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 2}}),
        (
            {"pick": ["l.2.a", "l.0"]},
            {"l": [{"a": 1}, {"a": 2}, {"a": 3, "b": 4}]},
            {"l": [{"a": 1}, {"a": 3}]},
        ),
        ({"pick": ["l.9", "l.a"]}, {"l": [1]}, {}),
        ({"pick": ["0.a"]}, [{"a": 1, "b": 2}, 3], [{"a": 1}]),
        ({"pick": ["a"]}, [1], []),
        ({"pick": ["n"]}, {"n": None, "m": 1}, {"n": None}),
        ({"jmespath": "items[*].sku"}, ORDER, ["a", "b"]),
        ({"jmespath": "{id: id, who: customer.name}"}, ORDER, {"id": 7, "who": "Zoë"}),
        ({"jmespath": "gone"}, ORDER, None),
        (
            {"template": '{"n": {{ id }}, "c": {{ customer | json }}}'},
            ORDER,
            {"n": 7, "c": ORDER["customer"]},
        ),
    ],
)
def test_a_step_changes_the_body(step: Any, body: Any, expected: Any) -> None:
    assert transformed([step], body) == expected


def test_a_renamed_field_keeps_its_place_and_a_picked_one_that_of_the_document() -> None:
    body = {"a": 1, "b": 2, "c": 3}
    assert list(transformed([{"rename": {"from": "b", "to": "z"}}], body)) == ["a", "z", "c"]
    assert list(transformed([{"pick": ["c", "a"]}], body)) == ["a", "c"]


def test_steps_are_applied_in_their_order() -> None:
    steps = [
        {"set": {"kind": "order"}},
        {"move": {"from": "customer.name", "to": "who"}},
        {"remove": ["customer", "a\\.b"]},
        {"jmespath": "{kind: kind, who: who, skus: items[].sku}"},
        {"rename": {"from": "who", "to": "buyer"}},
        {"copy": {"from": "skus.0", "to": "first"}},
    ]
    assert transformed(steps) == {"kind": "order", "buyer": "Zoë", "skus": ["a", "b"], "first": "a"}


def test_json_that_a_template_wrote_is_read_by_the_steps_after_it() -> None:
    steps = [{"template": '{"n": {{ id }}}'}, {"set": {"m": 1}}]
    result = parse_transform(steps).apply(message())
    assert result.body == b'{"n":7,"m":1}'
    assert dict(result.headers)["Content-Type"] == "application/json"


def test_a_value_that_stands_at_two_places_changes_at_one_only() -> None:
    steps = [
        {"copy": {"from": "customer", "to": "other"}},
        {"set": {"other.name": "Ann"}},
        {"remove": ["other.mail"]},
    ]
    result = transformed(steps)
    assert result["customer"] == ORDER["customer"]
    assert result["other"] == {"name": "Ann"}


def test_a_transform_does_the_same_each_time() -> None:
    transform = parse_transform(
        [
            {"set": {"v": {"list": []}}},
            {"set": {"v.list.0": 1}},
            {"jmespath": "{v: v, l: `[1]`}"},
            {"set": {"l.1": 2}},
        ]
    )
    results = [transform.apply(message()).body for _ in range(3)]
    assert results == [b'{"v":{"list":[1]},"l":[1,2]}'] * 3


# --- headers, and bytes ------------------------------------------------------------------------------


def headers_after(steps: list[Any]) -> list[tuple[str, str]]:
    return list(parse_transform(steps).apply(message()).headers)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([], HEADERS),
        ([{"set_headers": {"x-A": "v"}}], [HEADERS[0], HEADERS[2], ("x-A", "v")]),
        ([{"set_headers": {"X-C": ""}}], [*HEADERS, ("X-C", "")]),
        ([{"remove_headers": ["X-a", "x-gone"]}], [HEADERS[0], HEADERS[2]]),
        ([{"set_headers": {"X-C": "1"}}, {"remove_headers": ["x-c"]}], HEADERS),
        ([{"remove_headers": ["content-type"]}], HEADERS[1:]),
        ([{"set": {"a": 1}}], [*HEADERS[1:], ("Content-Type", "application/json")]),
        ([{"jmespath": "id"}], [*HEADERS[1:], ("Content-Type", "application/json")]),
        ([{"template": "x"}], [*HEADERS[1:], ("Content-Type", "text/plain; charset=utf-8")]),
        ([{"template": "x", "content_type": "text/csv"}], [*HEADERS[1:], ("Content-Type", "text/csv")]),
        ([{"remove": ["gone"]}], HEADERS),
        (
            [{"set_headers": {"content-type": "application/x+json"}}, {"set": {"a": 1}}],
            [*HEADERS[1:], ("content-type", "application/x+json")],
        ),
        (
            [{"set": {"a": 1}}, {"set_headers": {"content-type": "application/x+json"}}],
            [*HEADERS[1:], ("content-type", "application/x+json")],
        ),
        ([{"remove_headers": ["Content-Type"]}, {"set": {"a": 1}}], HEADERS[1:]),
    ],
)
def test_headers_are_set_and_removed_whatever_their_case(
    steps: list[Any], expected: Sequence[tuple[str, str]]
) -> None:
    assert headers_after(steps) == list(expected)


BYTES = [
    b"",
    b"\xff\x00 no text",
    b"a=1&b=2",
    b'{"a": 1.10,\n "a": 1e2}',
    b'{"n": 12345678901234567890.123456789}',
    b"[" * 100_000,
    b"x" * 300_000,
]


@pytest.mark.parametrize("body", BYTES)
def test_steps_of_headers_alone_leave_the_body_byte_for_byte(body: bytes) -> None:
    steps = [{"set_headers": {"X-C": "1", "Content-Type": "text/x"}}, {"remove_headers": ["X-A"]}]
    result = parse_transform(steps).apply(message(body))
    assert result == Message(body, (("x-b", "2"), ("X-C", "1"), ("Content-Type", "text/x")))


@pytest.mark.parametrize(
    "step",
    [
        {"remove": ["gone", "a.gone", "l.7"]},
        {"copy": {"from": "gone", "to": "b", "if_present": True}},
        {"move": {"from": "gone", "to": "b", "if_present": True}},
        {"rename": {"from": "gone", "to": "b", "if_present": True}},
        {"jmespath": "@"},
    ],
)
def test_a_body_in_which_nothing_was_changed_is_passed_on_byte_for_byte(step: Any) -> None:
    body = b'{"a" : 1.10, "l": [ 1 ] }'
    assert parse_transform([step]).apply(message(body)) == Message(body, HEADERS)


@pytest.mark.parametrize("body", [b"\xef\xbb\xbf{}", b" {} ", b'{"a": 0}'])
def test_a_changed_body_is_written_anew(body: bytes) -> None:
    assert parse_transform([{"set": {"a": 1}}]).apply(message(body)).body == b'{"a":1}'


def test_a_template_without_placeholders_takes_any_body() -> None:
    assert parse_transform([{"template": "ping"}]).apply(message(b"\xff")).body == b"ping"


# --- what fails --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "body", "expected"),
    [
        ([{"set": {"a": 1}}], b"", "step 1 (set): The body is not JSON."),
        ([{"set_headers": {"A": "1"}}, {"remove": ["a"]}], b"<a/>", "step 2 (remove): The body is not JSON."),
        ([{"jmespath": "@"}], b"\xff", "step 1 (jmespath): The body is not JSON."),
        ([{"template": "{{ a }}"}], b"a=1", "step 1 (template): The body is not JSON."),
        ([{"pick": ["a"]}], b"[" * 100_000, "step 1 (pick): The body is not JSON."),
        ([{"template": "Hi {{ id }}"}, {"set": {"a": 1}}], ORDER, "step 2 (set): The body is not JSON."),
        ([{"set": {"id.x": 1}}], ORDER, "step 1 (set): id is a number, so there can be no id.x."),
        ([{"set": {"customer.name.x.y": 1}}], ORDER, "step 1 (set): customer.name is text, so"),
        ([{"set": {"flag.x": 1}}], ORDER, "step 1 (set): flag is a boolean, so there can be no flag.x."),
        (
            [{"set": {"items.x": 1}}],
            ORDER,
            "step 1 (set): items is an array of 2, so there can be no items.x.",
        ),
        (
            [{"set": {"items.3.n": 1}}],
            ORDER,
            "step 1 (set): items is an array of 2, so there can be no items.3.",
        ),
        ([{"set": {"a": 1}}], "text", "step 1 (set): the body is text, so there can be no a."),
        ([{"set": {"a": 1}}], [], "step 1 (set): the body is an array of 0, so there can be no a."),
        (
            [{"copy": {"from": "gone", "to": "b"}}],
            ORDER,
            "step 1 (copy): There is no gone. If it may be missing",
        ),
        ([{"copy": {"from": "id.x", "to": "b"}}], ORDER, "step 1 (copy): There is no id.x."),
        ([{"copy": {"from": "id", "to": "flag.x"}}], ORDER, "step 1 (copy): flag is a boolean"),
        ([{"move": {"from": "items.9", "to": "b"}}], ORDER, "step 1 (move): There is no items.9."),
        (
            [{"move": {"from": "gone", "to": "b", "if_present": False}}],
            ORDER,
            "step 1 (move): There is no gone.",
        ),
        ([{"rename": {"from": "customer.x", "to": "b"}}], ORDER, "step 1 (rename): There is no customer.x."),
        ([{"rename": {"from": "items.0", "to": "b"}}], ORDER, "step 1 (rename): items.0 is in an array"),
        ([{"pick": ["a"]}], 5, "step 1 (pick): The body is a number, with nothing in it to pick."),
        (
            [{"jmespath": "abs(customer.name)"}],
            ORDER,
            "step 1 (jmespath): abs() takes a number as argument 1",
        ),
        (
            [{"remove": ["a"]}],
            b'"' + b"x" * 262_143 + b'"',
            "step 1 (remove): The body has more than 256 KB.",
        ),
        ([{"jmespath": "[@, @, @]"}], "x" * 200_000, "step 1 (jmespath): The result has more than 512 KB."),
        (
            [{"jmespath": "[@, @, @]"}, {"set_headers": {"A": "1"}}],
            "x" * 200_000,
            "step 1 (jmespath): The result has more than 512 KB.",
        ),
        (
            [{"set": {"a": 1}}],
            b'{"b":' * 300 + b"1" + b"}" * 300,
            "step 1 (set): The result is nested more than 256",
        ),
        (
            [{"jmespath": "[@, @, @]"}],
            "\x00" * 40_000,
            "step 1 (jmespath): The result has more than 512 KB.",
        ),
        (
            [{"jmespath": "[sum([@, @])]"}],
            b"9" * 4_300,
            "step 1 (jmespath): The result has a number with thousands",
        ),
    ],
)
def test_a_step_that_can_not_be_done_fails_and_says_why(steps: list[Any], body: Any, expected: str) -> None:
    assert failure(steps, body).startswith(expected)


# --- what is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (None, [("transform", "wrong_type")]),
        ({"set": {"a": 1}}, [("transform", "wrong_type")]),
        ([{"remove": ["a"]}] * 51, [("transform", "too_many")]),
        ([{"remove": ["a"] * 2_000}], [("transform", "too_many")]),
        ([{"template": "x" * 66_000}], [("transform", "too_large")]),
        ([{"template": "\ud800"}], [("transform", "wrong_type")]),
        (["set"], [("transform[0]", "wrong_type")]),
        ([{}], [("transform[0]", "required")]),
        ([{"drop": ["a"]}], [("transform[0].drop", "unknown_field"), ("transform[0]", "required")]),
        ([{"set": {"a": 1}, "remove": ["b"]}], [("transform[0]", "too_many")]),
        ([{"set": {"a": 1}, "content_type": "text/x"}], [("transform[0].content_type", "unknown_field")]),
        (
            [{"content_type": "text/x"}],
            [("transform[0].content_type", "unknown_field"), ("transform[0]", "required")],
        ),
        ([{"set": ["a"]}], [("transform[0].set", "wrong_type")]),
        ([{"set": {}}], [("transform[0].set", "wrong_type")]),
        ([{"set": {"": 1}}], [("transform[0].set.", "wrong_format")]),
        ([{"set": {"a..b": 1}}], [("transform[0].set.a..b", "wrong_format")]),
        ([{"remove": ["x"]}, {"set": {"a.": 1}}], [("transform[1].set.a.", "wrong_format")]),
        ([{"copy": "a"}], [("transform[0].copy", "wrong_type")]),
        ([{"copy": {"from": "a"}}], [("transform[0].copy.to", "required")]),
        ([{"move": {"to": "a"}}], [("transform[0].move.from", "required")]),
        (
            [{"move": {"from": None, "to": 5}}],
            [("transform[0].move.from", "wrong_type"), ("transform[0].move.to", "wrong_type")],
        ),
        (
            [{"copy": {"from": "a", "to": "b", "optional": True}}],
            [("transform[0].copy.optional", "unknown_field")],
        ),
        (
            [{"copy": {"from": "a", "to": "b", "if_present": 1}}],
            [("transform[0].copy.if_present", "wrong_type")],
        ),
        ([{"rename": {"from": "a", "to": "b.c"}}], [("transform[0].rename.to", "wrong_format")]),
        (
            [{"rename": {"from": "a.", "to": ""}}],
            [("transform[0].rename.from", "wrong_format"), ("transform[0].rename.to", "wrong_format")],
        ),
        ([{"remove": "a"}], [("transform[0].remove", "wrong_type")]),
        ([{"remove": []}], [("transform[0].remove", "wrong_type")]),
        (
            [{"remove": ["a", 5, ""]}],
            [("transform[0].remove[1]", "wrong_type"), ("transform[0].remove[2]", "wrong_format")],
        ),
        ([{"pick": {"a": 1}}], [("transform[0].pick", "wrong_type")]),
        ([{"pick": [".a"]}], [("transform[0].pick[0]", "wrong_format")]),
        ([{"jmespath": 5}], [("transform[0].jmespath", "wrong_type")]),
        ([{"jmespath": "items[?"}], [("transform[0].jmespath", "wrong_format")]),
        ([{"jmespath": "upper(a)"}], [("transform[0].jmespath", "wrong_format")]),
        ([{"template": ["x"]}], [("transform[0].template", "wrong_type")]),
        ([{"template": "{{ a"}], [("transform[0].template", "wrong_format")]),
        ([{"template": "x", "content_type": "text"}], [("transform[0].content_type", "wrong_format")]),
        (
            [{"template": "x", "content_type": "text/x\r\nA: b"}],
            [("transform[0].content_type", "wrong_format")],
        ),
        ([{"template": "x", "content_type": None}], [("transform[0].content_type", "wrong_format")]),
        ([{"set_headers": ["X-A"]}], [("transform[0].set_headers", "wrong_type")]),
        ([{"set_headers": {"X A": "1"}}], [("transform[0].set_headers.X A", "wrong_format")]),
        ([{"set_headers": {"": "1"}}], [("transform[0].set_headers.", "wrong_format")]),
        ([{"set_headers": {"X-A": 5}}], [("transform[0].set_headers.X-A", "wrong_type")]),
        ([{"set_headers": {"X-A": "a\r\nb"}}], [("transform[0].set_headers.X-A", "wrong_format")]),
        ([{"set_headers": {"X-A": "Zoë"}}], [("transform[0].set_headers.X-A", "wrong_format")]),
        ([{"set_headers": {"X-A": "x" * 4_097}}], [("transform[0].set_headers.X-A", "wrong_format")]),
        ([{"remove_headers": "X-A"}], [("transform[0].remove_headers", "wrong_type")]),
        (
            [{"remove_headers": [None, "X:"]}],
            [
                ("transform[0].remove_headers[0]", "wrong_format"),
                ("transform[0].remove_headers[1]", "wrong_format"),
            ],
        ),
    ],
)
def test_what_is_wrong_in_a_transform_is_said_at_its_place(raw: Any, expected: list[tuple[str, str]]) -> None:
    found = problems(raw)
    assert found == expected
    assert [field for field, _ in problems(raw, "sample.transform")] == [
        field.replace("transform", "sample.transform", 1) for field, _ in found
    ]


@pytest.mark.parametrize(
    "name",
    [
        *("Connection", "keep-alive", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "Proxy-Authorization"),
        *(
            "proxy-authenticate",
            "Proxy-Connection",
            "Host",
            "Content-Length",
            "webhook-id",
            "Webhook-Signature",
        ),
    ],
)
def test_a_header_that_the_delivery_itself_sets_is_refused(name: str) -> None:
    assert problems([{"set_headers": {name: "x"}}]) == [
        (f"transform[0].set_headers.{name}", "reserved_header")
    ]
    assert problems([{"remove_headers": [name]}]) == [("transform[0].remove_headers[0]", "reserved_header")]


def test_a_syntax_error_says_at_which_character() -> None:
    with pytest.raises(InvalidInput) as refusal:
        parse_transform([{"jmespath": "items[?n > ]"}, {"template": "abc {{ a | upper }}"}])
    assert [each.detail.split(":")[0].split(",")[0] for each in refusal.value.fields] == [
        "At character 12",
        "At character 5",
    ]


def test_everything_wrong_is_said_at_once_but_no_more_than_a_person_mends() -> None:
    assert len(problems([{"remove": [""] * 5}, {"set": {"a.": 1}}])) == 6
    assert len(problems([{"remove": [""] * 50}])) == 20


def test_the_largest_transform_is_taken() -> None:
    steps = [{"set": {f"k{n}.{m}": n for m in range(20)}} for n in range(50)]
    assert len(transformed(steps, {})) == 50


# --- bounds ------------------------------------------------------------------------------------------

WIDE = {f"key{number}": number for number in range(12_000)}
DOUBLING = [{"set": {"a": ["x"]}}, *({"jmespath": "{a: [a, a]}"} for _ in range(45))]
COPYING = [{"copy": {"from": "a", "to": f"a.c{number}"}} for number in range(48)]

HOSTILE: list[tuple[list[Any], Any]] = [
    (DOUBLING, {}),
    ([*DOUBLING, {"template": "{{ a }}"}], {}),
    ([*DOUBLING, {"jmespath": "to_string(a)"}], {}),
    (COPYING, {"a": {}}),
    ([*COPYING, {"template": "{{ a | json }}"}], {"a": {}}),
    ([{"set": {f"x{n}": n for n in range(1_900)}}], WIDE),
    ([{"remove": [f"key{n}" for n in range(1_900)]}], WIDE),
    ([{"copy": {"from": "big", "to": f"big.c{n}"}} for n in range(50)], {"big": WIDE}),
    ([{"template": "{{ a }}" * 9_000}], {"a": "x" * 250_000}),
    ([{"template": '["{{ 0 }}{{ 0 }}"]'}] * 50, ["x"]),
    ([{"jmespath": "[*].{a: @, b: @}"}] * 50, [1] * 4_000),
]


@pytest.mark.parametrize(("steps", "body"), HOSTILE)
def test_a_hostile_transform_fails_soon_with_little_memory(steps: list[Any], body: Any) -> None:
    transform, sent = parse_transform(steps), message(body)
    begin = time.process_time()
    with pytest.raises(TransformFailed, match=r"200,000 steps|512 KB|nested more than"):
        transform.apply(sent)
    assert time.process_time() - begin < 1.0
    tracemalloc.start()
    try:
        with pytest.raises(TransformFailed):
            transform.apply(sent)
        assert tracemalloc.get_traced_memory()[1] < 64 * 1024 * 1024
    finally:
        tracemalloc.stop()


def test_the_largest_body_is_read_and_written() -> None:
    text = "x" * (256 * 1024 - len('{"a":""}'))
    assert transformed([{"copy": {"from": "a", "to": "b"}}], {"a": text[1:]})["b"] == text[1:]
    assert transformed([{"set": {"b": 1}}], b'{"a":"%s"}' % text.encode())["b"] == 1


# --- whatever comes in -------------------------------------------------------------------------------

paths = st.sampled_from(["a", "b", "a.b", "a.0", "0", "b.1.a", "a..", "\\.", "c.c.c"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | paths,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
from_and_to = st.fixed_dictionaries({"from": paths, "to": paths}, optional={"if_present": st.booleans()})
steps = st.one_of(
    st.fixed_dictionaries({"set": st.dictionaries(paths, values, max_size=2)}),
    st.fixed_dictionaries({"copy": from_and_to}),
    st.fixed_dictionaries({"move": from_and_to}),
    st.fixed_dictionaries({"rename": from_and_to}),
    st.fixed_dictionaries({"remove": st.lists(paths, max_size=3)}),
    st.fixed_dictionaries({"pick": st.lists(paths, max_size=3)}),
    st.fixed_dictionaries(
        {"jmespath": st.sampled_from(["@", "a", "[a, b]", "*.a", "sum(@)", "sort(a)", "a[?b]", "]"])}
    ),
    st.fixed_dictionaries({"template": st.sampled_from(["{{ a }}", '{"a": {{ b | json }}}', "[1]", "{{"])}),
    st.fixed_dictionaries(
        {"set_headers": st.dictionaries(st.sampled_from(["X", "Host", "é"]), st.text(max_size=2))}
    ),
    st.dictionaries(
        st.sampled_from(["set", "copy", "pick", "template", "jmespath", "x"]), values, max_size=2
    ),
)
bodies = values.map(msgspec.json.encode) | st.binary(max_size=8)


def parsed(raw: Any) -> Transform | None:
    try:
        return parse_transform(raw)
    except InvalidInput as refusal:
        assert refusal.fields
        assert all(each.field.startswith("transform") for each in refusal.fields)
        return None


@given(values | st.lists(steps, max_size=4))
def test_parsing_refuses_whatever_is_wrong_with_invalid_input_alone(raw: Any) -> None:
    parsed(raw)


@given(st.lists(steps, max_size=4), bodies)
def test_applying_gives_a_message_or_says_that_it_failed(raw: list[Any], body: bytes) -> None:
    transform = parsed(raw)
    if transform is None:
        return
    try:
        result = transform.apply(Message(body, HEADERS))
    except TransformFailed as failed:
        assert failed.message.startswith("step ")
        return
    if result.body != body and not any("template" in step for step in raw):
        msgspec.json.decode(result.body)


header_steps = st.one_of(
    st.fixed_dictionaries(
        {
            "set_headers": st.dictionaries(
                st.sampled_from(["X-A", "x-b", "Content-Type"]), st.just("v"), min_size=1
            )
        }
    ),
    st.fixed_dictionaries({"remove_headers": st.lists(st.sampled_from(["X-A", "x-c"]), min_size=1)}),
)


@given(st.lists(header_steps, max_size=4), st.binary())
def test_a_transform_of_headers_alone_never_touches_the_body(raw: list[Any], body: bytes) -> None:
    assert parse_transform(raw).apply(Message(body, HEADERS)).body == body


@given(values, paths.filter(lambda path: ".." not in path))
def test_what_was_set_is_there_and_what_was_removed_is_not(value: Any, path: str) -> None:
    body = {"a": {"b": 1}, "b": [{}, {"a": 1}]}
    try:
        kept = transformed([{"set": {path: value}}, {"copy": {"from": path, "to": "found"}}], body)["found"]
    except TransformFailed:
        return
    assert msgspec.json.encode(kept) == msgspec.json.encode(value)
    rest = [
        {"set": {path: value}},
        {"remove": [path]},
        {"copy": {"from": path, "to": "found", "if_present": True}},
    ]
    assert "found" not in transformed(rest, body)
