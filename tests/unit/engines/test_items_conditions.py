from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.engines.items.conditions import (
    ALWAYS,
    Absent,
    All,
    AnyOf,
    Compare,
    Condition,
    Exists,
    Not,
    Operator,
    all_of,
    any_of,
    equals,
    holds,
)

Scalar = str | int | float | bool | None

OPERATORS: tuple[Operator, ...] = get_args(Operator)

LESS: set[Operator] = {"<", "<=", "<>"}
EQUAL: set[Operator] = {"=", "<=", ">="}
GREATER: set[Operator] = {">", ">=", "<>"}
SAME: set[Operator] = {"="}  # of kinds that have no order
DIFFERENT: set[Operator] = {"<>"}
INCOMPARABLE: set[Operator] = set()

# What is stored, what it is compared with, and the operators that hold.
COMPARISONS: list[tuple[object, Scalar, set[Operator]]] = [
    ("a", "b", LESS),
    ("a", "a", EQUAL),
    ("b", "a", GREATER),
    ("", "a", LESS),
    ("", "", EQUAL),
    ("a", "aa", LESS),
    ("Z", "a", LESS),
    ("10", "9", LESS),
    ("z", "\u00e9", LESS),
    ("\u00e9", "e\u0301", GREATER),  # equal to the eye, other code points
    ("\uffff", "\U00010000", LESS),  # by UTF-8; UTF-16 has it the other way round
    ("\ue000", "\U0001f600", LESS),
    (1, 2, LESS),
    (1, 1, EQUAL),
    (2, 1, GREATER),
    (-2, -1, LESS),
    (0, -0.0, EQUAL),
    (1, 1.0, EQUAL),
    (1.5, 1, GREATER),
    (0.1, 0.2, LESS),
    (9, 10, LESS),
    (2**53 + 1, 2**53, GREATER),
    (2**53 + 1, float(2**53), GREATER),  # a float would say equal
    (10**37 + 1, 10**37, GREATER),
    (1e-130, 0, GREATER),
    (True, True, SAME),
    (False, False, SAME),
    (True, False, DIFFERENT),
    (False, True, DIFFERENT),
    (None, None, SAME),
    # Of another type: nothing holds.
    (True, 1, INCOMPARABLE),
    (1, True, INCOMPARABLE),
    (False, 0, INCOMPARABLE),
    (0, False, INCOMPARABLE),
    (1, "1", INCOMPARABLE),
    ("1", 1, INCOMPARABLE),
    (1.0, "1.0", INCOMPARABLE),
    ("true", True, INCOMPARABLE),
    (True, "true", INCOMPARABLE),
    (None, "", INCOMPARABLE),
    ("", None, INCOMPARABLE),
    (None, 0, INCOMPARABLE),
    (0, None, INCOMPARABLE),
    (None, False, INCOMPARABLE),
    (False, None, INCOMPARABLE),
    ([], "", INCOMPARABLE),
    (["a"], "a", INCOMPARABLE),
    ([1], 1, INCOMPARABLE),
    ({}, "", INCOMPARABLE),
    ({"a": 1}, "a", INCOMPARABLE),
    ({}, None, INCOMPARABLE),
]


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize(("stored", "value", "holding"), COMPARISONS)
def test_a_comparison_holds_for_its_operators_and_no_other(
    stored: object, value: Scalar, holding: set[Operator], operator: Operator
) -> None:
    comparison = Compare("x", operator, value)
    assert holds(comparison, {"x": stored}) is (operator in holding)
    assert holds(Not(comparison), {"x": stored}) is (operator not in holding)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("value", ["", "a", 0, 1.5, True, False, None])
@pytest.mark.parametrize("item", [None, {}, {"other": "a"}])
def test_no_comparison_holds_for_a_missing_attribute(
    operator: Operator, value: Scalar, item: dict[str, object] | None
) -> None:
    assert holds(Compare("x", operator, value), item) is False
    assert holds(Not(Compare("x", operator, value)), item) is True


TRUE: Condition = ALWAYS
FALSE: Condition = Not(ALWAYS)


@pytest.mark.parametrize(
    ("condition", "item", "expected"),
    [
        (ALWAYS, None, True),
        (ALWAYS, {}, True),
        (Exists("x"), None, False),
        (Exists("x"), {}, False),
        (Exists("x"), {"x": None}, True),
        (Exists("x"), {"x": ""}, True),
        (Exists("x"), {"x": False}, True),
        (Absent("x"), None, True),
        (Absent("x"), {}, True),
        (Absent("x"), {"x": None}, False),
        (Absent("x"), {"y": 1}, True),
        (All(()), None, True),
        (AnyOf(()), None, False),
        (all_of(TRUE, TRUE), {}, True),
        (all_of(TRUE, FALSE), {}, False),
        (any_of(FALSE, TRUE), {}, True),
        (any_of(FALSE, FALSE), {}, False),
        (all_of(Exists("a"), equals("b", 2)), {"a": 1, "b": 2}, True),
        (all_of(Exists("a"), equals("b", 2)), {"b": 2}, False),
        (any_of(Absent("a"), Compare("a", "<", 5)), {}, True),
        (any_of(Absent("a"), Compare("a", "<", 5)), {"a": 4}, True),
        (any_of(Absent("a"), Compare("a", "<", 5)), {"a": 5}, False),
        (Not(Not(Exists("a"))), {"a": 1}, True),
        (Not(any_of(Exists("a"), Exists("b"))), {"c": 1}, True),
        (Not(all_of(Exists("a"), Exists("b"))), {"a": 1}, True),
        (all_of(any_of(FALSE, all_of(TRUE, Not(FALSE))), TRUE), None, True),
    ],
)
def test_a_condition_holds_as_its_parts_say(
    condition: Condition, item: dict[str, object] | None, expected: bool
) -> None:
    assert holds(condition, item) is expected


def test_equals_is_the_comparison_it_says() -> None:
    assert equals("x", 1) == Compare("x", "=", 1)


# --- laws ------------------------------------------------------------------------------------------

NUMBERS = st.integers(-(10**38), 10**38) | st.floats(-1e120, 1e120)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
ITEMS = st.none() | st.dictionaries(st.sampled_from("abc"), SCALARS | st.lists(SCALARS, max_size=2))
CONDITIONS = st.recursive(
    st.one_of(
        st.just(ALWAYS),
        st.builds(Exists, st.sampled_from("abc")),
        st.builds(Absent, st.sampled_from("abc")),
        st.builds(Compare, st.sampled_from("abc"), st.sampled_from(OPERATORS), SCALARS),
    ),
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(lambda parts: All(tuple(parts)), st.lists(inner, max_size=3)),
        st.builds(lambda parts: AnyOf(tuple(parts)), st.lists(inner, max_size=3)),
    ),
    max_leaves=8,
)


@given(CONDITIONS, CONDITIONS, ITEMS)
def test_conditions_follow_the_laws_of_logic(
    one: Condition, other: Condition, item: dict[str, object] | None
) -> None:
    assert holds(Not(one), item) is not holds(one, item)
    assert holds(Not(all_of(one, other)), item) is holds(any_of(Not(one), Not(other)), item)
    assert holds(Not(any_of(one, other)), item) is holds(all_of(Not(one), Not(other)), item)


@given(CONDITIONS, ITEMS)
def test_an_absent_item_is_one_without_attributes(
    condition: Condition, item: dict[str, object] | None
) -> None:
    assert holds(condition, None) is holds(condition, {})


@pytest.mark.parametrize("values", [NUMBERS, TEXTS])
@given(data=st.data())
def test_of_two_numbers_or_two_texts_exactly_one_is_true_less_equal_or_greater(
    values: st.SearchStrategy[Scalar], data: st.DataObject
) -> None:
    stored, value = data.draw(values), data.draw(values)
    held = {operator for operator in OPERATORS if holds(Compare("x", operator, value), {"x": stored})}
    assert held in (LESS, EQUAL, GREATER)
