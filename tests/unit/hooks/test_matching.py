from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.hooks.rules.match_parsing import MatchParser, Place
from crossdock.hooks.rules.match_values import deeply_equal, equal_to, loosely_equal, number_of, order
from crossdock.hooks.rules.matching import STEPS_MAX, OverBudget, Pattern, Run


def compiled(match: Any) -> Pattern:
    parser = MatchParser()
    pattern = parser.parse(match, Place("match", "body"))
    assert parser.problems == []
    return pattern


def matches(match: Any, value: Any) -> bool:
    return compiled(match).matches(value, Run(value))


def no_limit(steps: int) -> None:
    pass


# --- primitives --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("match", "value", "expected"),
    [
        ("paid", "paid", True),
        ("paid", "Paid", False),
        ("paid", "paid ", False),
        ("", "", True),
        ("", None, False),
        ("Zoë 🦊", "Zoë 🦊", True),
        ("é", "e\u0301", False),
        (5, 5, True),
        (5, 5.0, True),
        (5, "5", True),
        ("5", 5, True),
        (5, "5.0", True),
        (5, "05", True),
        ("5", "5.0", False),
        (5, " 5", False),
        (5, "5 ", False),
        (5, "five", False),
        (5, "٥", False),
        (0, "", False),
        (0, None, False),
        (0, False, False),
        (-1.5, "-1.5", True),
        (1000, "1e3", True),
        (0.1, "0.1", True),
        (10**25, str(10**25), True),
        (10**25, str(10**25 + 1), False),
        (1, "1" + "0" * 100, False),
        (10**100, "1" + "0" * 100, False),
        ("1e999", 5, False),
        (1, True, False),
        (True, True, True),
        (True, False, False),
        (True, 1, False),
        (True, "true", False),
        (False, None, False),
        (None, None, True),
        (None, False, False),
        (None, 0, False),
        (None, "", False),
        ("paid", {"paid": True}, False),
        (None, {}, False),
    ],
)
def test_a_primitive_equals_and_numbers_and_their_texts_are_the_same(
    match: Any, value: Any, expected: bool
) -> None:
    assert matches(match, value) is expected


# --- objects and arrays ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("match", "value", "expected"),
    [
        ({}, {}, True),
        ({}, {"a": 1}, True),
        ({}, [{}], True),
        ({}, [], False),
        ({}, "text", False),
        ({}, None, False),
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1, "b": 2}, {"a": 1}, False),
        ({"a": 1, "b": 2}, {"b": "2", "a": "1"}, True),
        ({"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 1, "d": 2}, "e": 3}}, True),
        ({"a": {"b": {"c": 1}}}, {"a": {"b": 1}}, False),
        ({"a": {"b": 1}}, {"a": "b"}, False),
        ({"a.b": 1}, {"a.b": 1}, True),
        ({"a.b": 1}, {"a": {"b": 1}}, False),
        ({"a": None}, {"a": None}, True),
        ({"a": None}, {}, False),
        ({"a": 1}, [{"a": 2}, {"a": 1}], True),
        ({"a": 1, "b": 1}, [{"a": 1}, {"b": 1}], False),
        ({"items": {"sku": "x"}}, {"items": [{"sku": "y"}, {"sku": "x", "n": 1}]}, True),
        ({"items": {"sku": "x"}}, {"items": []}, False),
        ({"items": {"sku": "x"}}, {"items": ["x"]}, False),
        ({"items": {"sku": "x"}}, {"items": [[{"sku": "x"}]]}, True),
        ({"items": {"n": {"$lte": 10}}}, {"items": [{"n": 12}, {"n": 9}]}, True),
        ({"items": {"n": {"$lte": 10}}}, {"items": [{"n": 12}, {"n": 11}]}, False),
        ({"items": {"tags": "new"}}, {"items": [{"tags": ["old"]}, {"tags": ["new"]}]}, True),
        ({"0": "a"}, ["a"], False),
        ("a", ["a", "b"], True),
        ("c", ["a", "b"], False),
        (5, ["4", "5"], True),
        (True, [1, "true"], False),
        (None, [1, None], True),
        (None, [], False),
        ("a", [["b", ["a"]]], True),
        (["a", "b"], ["b", "c", "a"], True),
        (["a", "z"], ["b", "c", "a"], False),
        (["a", "a"], ["a"], True),
        ([], ["a"], True),
        ([], [], True),
        ([], {}, False),
        ([], "", False),
        (["a"], "a", False),
        (["a"], {"a": 1}, False),
        ([{"id": 1}, {"id": 2}], [{"id": 2}, {"id": 1}], True),
        ([{"id": 1}, {"id": 3}], [{"id": 2}, {"id": 1}], False),
        ([[1, 2]], [[2, 1], [3]], True),
        ([[1, 2]], [[1], [2]], False),
        ([1], [[1]], True),
        ([{"$gt": 2}], [1, 2, 3], True),
        ([{"$gt": 3}], [1, 2, 3], False),
        ([{"$gt": 2}, {"$lt": 2}], [1, 3], True),
    ],
)
def test_objects_match_partially_and_arrays_contain(match: Any, value: Any, expected: bool) -> None:
    assert matches(match, value) is expected


# --- operators ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("match", "value", "expected"),
    [
        ({"$eq": 5}, "5", True),
        ({"$eq": None}, None, True),
        ({"$eq": {"a": [1, {"b": None}]}}, {"a": ["1", {"b": None}]}, True),
        ({"$eq": {"a": 1}}, {"a": 1, "b": 2}, False),
        ({"$eq": {"a": 1}}, {"b": 1}, False),
        ({"$eq": [1, 2]}, [1, 2], True),
        ({"$eq": [1, 2]}, [2, 1], False),
        ({"$eq": [1, 2]}, [1, 2, 3], False),
        ({"$eq": 1}, [1], False),
        ({"$eq": [1]}, 1, False),
        ({"$eq": {}}, [], False),
        ({"$eq": []}, {}, False),
        ({"$eq": {"$oid": "6"}}, {"$oid": "6"}, True),
        ({"$neq": 5}, 6, True),
        ({"$neq": 5}, "5", False),
        ({"$neq": 1}, [1], True),
        ({"$neq": None}, None, False),
        ({"$neq": None}, 0, True),
        ({"$gt": 5}, 6, True),
        ({"$gt": 5}, 5, False),
        ({"$gt": 5}, "5.5", True),
        ({"$gt": "5"}, 6, True),
        ({"$gt": "9"}, "10", True),
        ({"$gt": "b"}, "c", True),
        ({"$gt": "b"}, "B", False),
        ({"$gt": "2024-01-01"}, "2024-02-01T10:00:00Z", True),
        ({"$gt": "2024-03-01"}, "2024-02-01T10:00:00Z", False),
        ({"$gt": 5}, "abc", False),
        ({"$lt": 5}, "abc", False),
        ({"$gt": "abc"}, 5, False),
        ({"$gt": 0}, True, False),
        ({"$gte": 0}, None, False),
        ({"$gte": 0}, [1], False),
        ({"$gte": 0}, {"a": 1}, False),
        ({"$gte": 5}, 5, True),
        ({"$gte": 5}, 4.999, False),
        ({"$lt": 5}, -1e300, True),
        ({"$lt": 5}, 5, False),
        ({"$lte": 5}, 5, True),
        ({"$lte": 5}, 5.001, False),
        ({"$lte": 2**53}, 2**53 + 1, False),
        ({"$gt": 1, "$lt": 3}, 2, True),
        ({"$gt": 1, "$lt": 3}, 3, False),
        ({"$in": ["a", "b"]}, "b", True),
        ({"$in": ["a", "b"]}, "c", False),
        ({"$in": [1, "2"]}, "1", True),
        ({"$in": [1, "2"]}, 2, True),
        ({"$in": [True]}, 1, False),
        ({"$in": [None]}, None, True),
        ({"$in": []}, "a", False),
        ({"$in": ["some"]}, "some-text", False),
        ({"$in": ["a"]}, ["a"], False),
        ({"$in": "b"}, "abc", True),
        ({"$in": ""}, "abc", True),
        ({"$in": "x"}, "abc", False),
        ({"$in": "a"}, ["a", "b"], True),
        ({"$in": 1}, ["1"], True),
        ({"$in": "a"}, ["abc"], False),
        ({"$in": 5}, "456", False),
        ({"$in": "5"}, 456, False),
        ({"$in": "a"}, {"a": 1}, False),
        ({"$nin": ["a", "b"]}, "c", True),
        ({"$nin": ["a", "b"]}, "a", False),
        ({"$nin": "some"}, "other", True),
        ({"$nin": "some"}, "some-text", False),
        ({"$nin": "test"}, ["test", "x"], False),
        ({"$nin": "test"}, ["x"], True),
        ({"$nin": ["a"]}, ["b"], False),
        ({"$nin": "a"}, {"b": 1}, False),
        ({"$startsWith": "some"}, "some-text", True),
        ({"$startsWith": "text"}, "some-text", False),
        ({"$startsWith": ["x", "some"]}, "some-text", True),
        ({"$startsWith": ["x", "y"]}, "some-text", False),
        ({"$startsWith": "1"}, 12, False),
        ({"$startsWith": "a"}, ["a"], False),
        ({"$endsWith": "text"}, "some-text", True),
        ({"$endsWith": "some"}, "some-text", False),
        ({"$endsWith": ["x", "text"]}, "some-text", True),
        ({"$endsWith": "ë"}, "Zoë", True),
        ({"$exist": True}, None, True),
        ({"$exist": True}, [], True),
        ({"$exist": False}, None, False),
        ({"a": {"$exist": True}}, {"a": {}}, True),
        ({"a": {"$exist": True}}, {"b": 1}, False),
        ({"a": {"$exist": False}}, {"b": 1}, True),
        ({"a": {"$exist": False}}, {"a": None}, False),
        ({"a": {"b": {"$exist": False}}}, {"a": {}}, True),
        ({"a": {"b": {"$exist": False}}}, {}, False),
        ({"$or": [1, 2]}, 2, True),
        ({"$or": [1, 2]}, 3, False),
        ({"$or": [{"a": 1}, {"b": 1}]}, {"b": 1}, True),
        ({"a": {"$or": [{"$lt": 1}, {"$gt": 5}]}}, {"a": 9}, True),
        ({"$and": [{"a": 1}, {"b": 1}]}, {"a": 1, "b": 1}, True),
        ({"$and": [{"a": 1}, {"b": 1}]}, {"a": 1}, False),
        ({"$or": [{"$and": [1, 2]}, {"$not": 5}]}, 4, True),
        ({"$exist": True, "$or": ["a", "b"]}, "b", True),
        ({"$not": "a"}, "b", True),
        ({"$not": "a"}, "a", False),
        ({"$not": {"$not": "a"}}, "a", True),
        ({"$not": {"$gt": 5}}, "no number", True),
        ({"a": {"$not": 1}}, {}, True),
        ({"a": {"$not": {"$exist": True}}}, {}, True),
        ({"tags": {"$not": "x"}}, {"tags": ["y", "x"]}, False),
        ({"$not": {"a": 1}, "$or": [{"b": 1}, {"c": 1}]}, {"c": 1}, True),
    ],
)
def test_an_operator_holds_or_does_not(match: Any, value: Any, expected: bool) -> None:
    assert matches(match, value) is expected


OPERATORS = ["$eq", "$neq", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$startsWith", "$endsWith"]


@pytest.mark.parametrize("operator", OPERATORS)
def test_what_is_missing_matches_no_comparison(operator: str) -> None:
    assert not matches({"a": {operator: "x"}}, {"b": "y"})
    assert not matches({"a": {operator: {"$ref": "gone"}}}, {"a": "x"})
    assert not matches({"a": {operator: {"$ref": "gone"}}}, {})


@pytest.mark.parametrize("operator", [each for each in OPERATORS if each not in ("$eq", "$neq")])
@pytest.mark.parametrize("value", [None, True, {"a": 1}])
def test_an_operator_on_a_type_that_it_is_not_for_does_not_match(operator: str, value: Any) -> None:
    assert not matches({operator: "x"}, value)


# --- references --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("match", "value", "expected"),
    [
        ({"a": {"$ref": "b"}}, {"a": 1, "b": 1}, True),
        ({"a": {"$ref": "b"}}, {"a": 1, "b": "1"}, True),
        ({"a": {"$ref": "b"}}, {"a": True, "b": False}, False),
        ({"a": {"$ref": "b"}}, {"a": 1}, False),
        ({"a": {"$ref": "b"}}, {"a": None}, False),
        ({"a": {"$ref": "b"}}, {"b": 1}, False),
        ({"a": {"$ref": "b"}}, {"a": None, "b": None}, True),
        ({"types": {"$ref": "type"}}, {"types": ["x", "y"], "type": "y"}, True),
        ({"type": {"$ref": "types.1"}}, {"types": ["x", "y"], "type": "y"}, True),
        ({"type": {"$ref": "types.2"}}, {"types": ["x", "y"], "type": "y"}, False),
        ({"a": {"$ref": "b"}}, {"a": {"x": [1]}, "b": {"x": ["1"]}}, True),
        ({"a": {"$ref": "b"}}, {"a": {"x": 1, "y": 2}, "b": {"x": 1}}, False),
        ({"a": {"$ref": "b"}}, {"a": [1, 2], "b": [1]}, False),
        ({"a": {"$ref": "b"}}, {"a": 3, "b": {"$or": [3]}}, False),
        ({"a": {"$ref": "b.c\\.d"}}, {"a": 1, "b": {"c.d": 1}}, True),
        ({"a": {"$gte": {"$ref": "limits.min"}}}, {"a": 5, "limits": {"min": 5}}, True),
        ({"a": {"$gte": {"$ref": "limits.min"}}}, {"a": 4, "limits": {"min": 5}}, False),
        ({"a": {"$gte": {"$ref": "limits"}}}, {"a": 4, "limits": {"min": 5}}, False),
        ({"a": {"$neq": {"$ref": "b"}}}, {"a": 1, "b": 2}, True),
        ({"a": {"$neq": {"$ref": "b"}}}, {"a": {"x": 1}, "b": {"x": 1}}, False),
        ({"a": {"$in": {"$ref": "b"}}}, {"a": 1, "b": [2, 1]}, True),
        ({"a": {"$in": {"$ref": "b"}}}, {"a": "abc", "b": "b"}, True),
        ({"a": {"$in": {"$ref": "b"}}}, {"a": "abc", "b": {"abc": 1}}, False),
        ({"a": {"$nin": {"$ref": "b"}}}, {"a": 3, "b": [2, 1]}, True),
        ({"a": {"$startsWith": {"$ref": "b"}}}, {"a": "abc", "b": ["x", 5, "ab"]}, True),
        ({"a": {"$startsWith": {"$ref": "b"}}}, {"a": "abc", "b": 5}, False),
        ({"$or": [{"a": {"$ref": "b"}}, {"a": {"$ref": "c"}}]}, {"a": 1, "b": 2, "c": 1}, True),
        ({"items": {"n": {"$gt": {"$ref": "min"}}}}, {"min": 3, "items": [{"n": 1}, {"n": 4}]}, True),
        ({"$not": {"a": {"$ref": "gone"}}}, {"a": 1}, True),
    ],
)
def test_a_reference_stands_for_the_value_at_its_path(match: Any, value: Any, expected: bool) -> None:
    assert matches(match, value) is expected


# --- where it failed ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("match", "value", "place"),
    [
        ("a", "b", "body"),
        ({"a": 1}, "text", "body"),
        ({"a": 1, "b": 2}, {"a": 1}, "body.b"),
        ({"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 2}}}, "body.a.b.c"),
        ({"a": {"b": {"c": 1}}}, {"a": {"b": 5}}, "body.a.b"),
        ({"a": {"$gt": 1, "$lt": 3}}, {"a": 3}, "body.a.$lt"),
        ({"a": {"$gt": 1}}, {}, "body.a.$gt"),
        ({"$and": [{"a": 1}, {"b": 2}]}, {"a": 1, "b": 3}, "body.$and[1].b"),
        ({"$or": [{"a": 1}, {"b": 2}]}, {"a": 2}, "body.$or"),
        ({"$not": {"a": 1}}, {"a": 1}, "body.$not"),
        ({"tags": ["x", "y"]}, {"tags": ["x"]}, "body.tags[1]"),
        ({"tags": ["x", "y"]}, {"tags": "x"}, "body.tags"),
        ({"items": {"id": 1}}, {"items": [{"id": 2}]}, "body.items"),
        ({"a": {"$ref": "b"}}, {"a": 1}, "body.a.$ref"),
    ],
)
def test_the_place_of_the_first_failure_is_known(match: Any, value: Any, place: str) -> None:
    pattern = compiled(match)
    assert not pattern.matches(value, Run(value))
    assert pattern.failure(value, Run(value)) == place


# --- bounds ------------------------------------------------------------------------------------------


def nested(value: Any, depth: int, *, as_object: bool = False) -> Any:
    for _ in range(depth):
        value = {"a": value} if as_object else [value]
    return value


@pytest.mark.parametrize(
    ("match", "value", "expected"),
    [
        (1, nested(1, 50_000), True),
        ({"a": 1}, nested({"a": 1}, 50_000), True),
        ([[1]], nested(1, 50_000), True),
        ({"$eq": 1}, nested(1, 50_000), False),
        ({"a": {"$ref": "b"}}, {"a": nested(1, 10_000), "b": nested(1, 10_000)}, True),
        ({"a": {"$ref": "b"}}, {"a": nested(1, 10_000), "b": nested(2, 10_000)}, False),
        (
            {"a": {"$eq": {"$ref": "b"}}},
            {"a": nested(1, 9_000, as_object=True), "b": nested(1, 9_000, as_object=True)},
            True,
        ),
    ],
)
def test_a_value_may_be_nested_deeper_than_any_stack(match: Any, value: Any, expected: bool) -> None:
    assert matches(match, value) is expected


HOSTILE = [
    (list(range(1, 1_000)), [0] * 1_000 + list(range(1, 1_000))),
    ([{"a": each} for each in range(400)], [{"a": -1}] * 400 + [{"a": each} for each in range(400)]),
    ({"$or": [{"$eq": "x"}] * 1_000}, ["x"] * 100_000),
    ("x", [["y"] * 60_000, ["y"] * 60_000]),
    ({"a": {"$in": {"$ref": "b"}}}, {"a": 1, "b": [0] * 120_000}),
    ({"$or": [{"a": {"$in": "y"}}] * 1_500}, {"a": "x" * 250_000}),
    ({"$or": [{"a": {"$ref": "b"}}] * 10}, {"a": [[[1] * 100] * 100] * 20, "b": [[[1] * 100] * 100] * 20}),
    ({"$not": {"$not": list(range(1, 1_000))}}, [0] * 1_000 + list(range(1, 1_000))),
]


@pytest.mark.parametrize(("match", "value"), HOSTILE)
def test_a_match_that_takes_too_many_steps_is_given_up_soon(match: Any, value: Any) -> None:
    pattern = compiled(match)
    begin = time.process_time()
    with pytest.raises(OverBudget):
        pattern.matches(value, Run(value))
    assert time.process_time() - begin < 1.0


@pytest.mark.parametrize(
    ("match", "value", "steps_min"),
    [
        (1, [0] * 1_000, 1_000),
        ({"a": 1}, [[{}] * 1_000], 1_000),
        ([{"$gt": 1}], [0] * 1_000, 1_000),
        ({"$eq": [0] * 1_000}, [0] * 1_000, 1_000),
        ({"$eq": {str(n): n for n in range(1_000)}}, {str(n): n for n in range(1_000)}, 1_000),
        ({"$eq": ["x" * 60_000]}, ["x" * 60_000], 50),
        ({"$in": [0] * 1_000}, 1, 1_000),
        ({"$in": 1}, [0] * 1_000, 1_000),
        ({"$in": "y"}, "x" * 100_000, 90),
        ({"$startsWith": ["y"] * 1_000}, "x", 1_000),
        ({"$endsWith": ["y"] * 1_000}, "x", 1_000),
    ],
)
def test_what_is_looked_at_is_paid_for(match: Any, value: Any, steps_min: int) -> None:
    run = Run(value)
    compiled(match).matches(value, run)
    assert STEPS_MAX - run.left >= steps_min


@pytest.mark.parametrize("count", [1, 99_000])
def test_a_large_array_is_within_the_budget(count: int) -> None:
    assert matches("last", ["x"] * count + ["last"])


def test_a_step_over_the_budget_raises_and_the_last_one_of_it_does_not() -> None:
    run = Run(steps_max=2)
    run.spend(2)
    with pytest.raises(OverBudget):
        run.spend(1)
    assert Run().left == STEPS_MAX


# --- values ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (5, 5),
        (5.5, 5.5),
        ("5", 5),
        ("-0.5e-3", -0.0005),
        ("1E+2", 100.0),
        ("", None),
        ("+5", None),
        ("5.", None),
        (".5", None),
        ("1_000", None),
        ("0x10", None),
        ("NaN", None),
        ("Infinity", None),
        ("1e999", None),
        ("5\n", None),
        ("9" * 64, int("9" * 64)),
        ("9" * 65, None),
        (True, None),
        (None, None),
        ([5], None),
    ],
)
def test_a_number_is_read_from_text_that_is_one(value: Any, number: float | None) -> None:
    assert number_of(value) == number


numbers: st.SearchStrategy[int | float] = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
primitives: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | numbers | numbers.map(str) | st.text(max_size=5) | st.just("inf")
)


@given(primitives, primitives)
def test_equality_has_no_direction_and_is_the_same_prepared_or_not(left: Any, right: Any) -> None:
    assert loosely_equal(left, right) is loosely_equal(right, left) is equal_to(left)(right)
    assert loosely_equal(left, left)


@given(primitives, primitives)
def test_the_order_of_two_values_turns_with_them(left: Any, right: Any) -> None:
    there, back = order(left, right), order(right, left)
    assert there == (None if back is None else -back)


json_values = st.recursive(
    primitives,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)


@given(json_values)
def test_a_value_equals_itself_and_matches_itself(value: Any) -> None:
    assert deeply_equal(value, value, loosely_equal, no_limit)
    assert matches({"$eq": value}, value)
    assert matches(value, value)


@given(json_values, json_values)
def test_not_is_the_opposite(match: Any, value: Any) -> None:
    assert matches({"$not": match}, value) is not matches(match, value)
    assert matches({"$neq": match}, value) is not matches({"$eq": match}, value)


@given(json_values, json_values)
def test_what_equals_also_matches(match: Any, value: Any) -> None:
    if matches({"$eq": match}, value):
        assert matches(match, value)


@given(json_values, json_values, json_values)
def test_or_and_and_are_what_logic_says(left: Any, right: Any, value: Any) -> None:
    each = [matches(left, value), matches(right, value)]
    assert matches({"$or": [left, right]}, value) is any(each)
    assert matches({"$and": [left, right]}, value) is all(each)
