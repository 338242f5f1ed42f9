"""Every operator on every relation that a stored value can have to the one it is compared with."""

import pytest
from tests.contract.items.asking import condition_holds, put_all
from tests.contract.items.harness import Harness
from tests.contract.items.tables import fresh

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
)
from crossdock.engines.items.port import Item

STORED: Item = {
    "text": "m",
    "empty": "",
    "number": 10,
    "negative": -1.5,
    "large": 2**53 + 1,
    "high": "\uffff",
    "flag": True,
    "nothing": None,
    "list": [1],
    "map": {"a": 1},
}

LESS, EQUAL, GREATER = "less", "equal", "greater"
SAME, DIFFERENT = "same", "different"  # for kinds that have no order
INCOMPARABLE = "incomparable"  # missing, or of another type: no comparison holds, not even <>

Operand = str | int | float | bool | None

RELATIONS: list[tuple[str, Operand, str]] = [
    ("text", "m", EQUAL),
    ("text", "n", LESS),
    ("text", "mm", LESS),
    ("text", "l", GREATER),
    ("text", "M", GREATER),
    ("text", "", GREATER),
    ("empty", "", EQUAL),
    ("empty", "a", LESS),
    ("high", "\U0001f600", LESS),  # UTF-8 order; in UTF-16 it is the other way round
    ("number", 10, EQUAL),
    ("number", 10.0, EQUAL),
    ("number", 10.5, LESS),
    ("number", 9, GREATER),
    ("number", -11, GREATER),
    ("number", 100, LESS),
    ("negative", -1.5, EQUAL),
    ("negative", -1, LESS),
    ("negative", -2, GREATER),
    ("large", 2**53, GREATER),
    ("large", 2**53 + 1, EQUAL),
    ("large", 2**53 + 2, LESS),
    ("flag", True, SAME),
    ("flag", False, DIFFERENT),
    ("nothing", None, SAME),
    ("missing", "m", INCOMPARABLE),
    ("missing", 0, INCOMPARABLE),
    ("missing", None, INCOMPARABLE),
    ("missing", False, INCOMPARABLE),
    ("text", 10, INCOMPARABLE),
    ("text", None, INCOMPARABLE),
    ("text", True, INCOMPARABLE),
    ("empty", None, INCOMPARABLE),
    ("number", "10", INCOMPARABLE),
    ("number", True, INCOMPARABLE),
    ("number", None, INCOMPARABLE),
    ("flag", 1, INCOMPARABLE),
    ("flag", "true", INCOMPARABLE),
    ("nothing", "", INCOMPARABLE),
    ("nothing", 0, INCOMPARABLE),
    ("nothing", False, INCOMPARABLE),
    ("list", "m", INCOMPARABLE),
    ("list", 1, INCOMPARABLE),
    ("map", "m", INCOMPARABLE),
]

HOLDS_WHEN: dict[Operator, set[str]] = {
    "=": {EQUAL, SAME},
    "<>": {LESS, GREATER, DIFFERENT},
    "<": {LESS},
    "<=": {LESS, EQUAL},
    ">": {GREATER},
    ">=": {GREATER, EQUAL},
}


async def misjudged(
    harness: Harness, key: dict[str, str], expected: list[tuple[Condition, bool]]
) -> list[str]:
    return [
        f"{condition} should {'hold' if holds else 'not hold'}"
        for condition, holds in expected
        if await condition_holds(harness.items, harness.tables.plain, key, condition) is not holds
    ]


async def stored(harness: Harness) -> dict[str, str]:
    key = {"id": fresh()}
    await put_all(harness.items, harness.tables.plain, {**key, **STORED})
    return key


@pytest.mark.parametrize("operator", HOLDS_WHEN)
async def test_a_comparison_holds_only_for_its_relations(harness: Harness, operator: Operator) -> None:
    expected: list[tuple[Condition, bool]] = [
        (Compare(attribute, operator, operand), relation in HOLDS_WHEN[operator])
        for attribute, operand, relation in RELATIONS
    ]

    assert await misjudged(harness, await stored(harness), expected) == []


@pytest.mark.parametrize("operator", HOLDS_WHEN)
async def test_the_negation_of_a_comparison_holds_exactly_when_it_does_not(
    harness: Harness, operator: Operator
) -> None:
    expected: list[tuple[Condition, bool]] = [
        (Not(Compare(attribute, operator, operand)), relation not in HOLDS_WHEN[operator])
        for attribute, operand, relation in RELATIONS
    ]

    assert await misjudged(harness, await stored(harness), expected) == []


async def test_exists_and_absent_tell_whether_the_attribute_is_there_whatever_it_holds(
    harness: Harness,
) -> None:
    key = await stored(harness)
    expected: list[tuple[Condition, bool]] = [(ALWAYS, True), (Exists("id"), True), (Absent("id"), False)]
    for attribute in STORED:
        expected += [(Exists(attribute), True), (Absent(attribute), False)]
    expected += [(Exists("missing"), False), (Absent("missing"), True)]
    expected += [(Not(Exists("missing")), True), (Not(Absent("missing")), False), (Not(ALWAYS), False)]

    assert await misjudged(harness, key, expected) == []


async def test_a_condition_on_a_key_attribute_compares_it(harness: Harness) -> None:
    key = await stored(harness)

    assert await misjudged(harness, key, [(equals("id", key["id"]), True), (equals("id", "x"), False)]) == []


YES, NO = equals("text", "m"), equals("text", "x")

NESTED: list[tuple[Condition, bool]] = [
    (all_of(), True),
    (any_of(), False),
    (Not(all_of()), False),
    (Not(any_of()), True),
    (all_of(YES), True),
    (all_of(NO), False),
    (all_of(YES, YES, YES), True),
    (all_of(YES, YES, NO), False),
    (all_of(NO, YES), False),
    (all_of(YES, ALWAYS), True),
    (any_of(YES), True),
    (any_of(NO), False),
    (any_of(NO, NO, YES), True),
    (any_of(NO, NO), False),
    (any_of(NO, ALWAYS), True),
    (Not(Not(YES)), True),
    (Not(Not(NO)), False),
    (Not(all_of(YES, NO)), True),
    (Not(any_of(NO, NO)), True),
    # Where a missing pair of brackets would turn the answer round.
    (all_of(any_of(YES, NO), NO), False),
    (all_of(NO, any_of(NO, YES)), False),
    (any_of(YES, all_of(NO, NO)), True),
    (any_of(all_of(YES, NO), YES), True),
    (all_of(Not(NO), any_of(NO, Not(YES), all_of(YES, Not(NO)))), True),
    (Not(any_of(NO, Not(all_of(YES, any_of(NO, YES))))), True),
    (All((YES, AnyOf((All(()), NO)), Not(AnyOf(())))), True),
]


async def test_conditions_nest(harness: Harness) -> None:
    assert await misjudged(harness, await stored(harness), NESTED) == []


async def test_an_absent_item_has_no_attributes(harness: Harness) -> None:
    expected: list[tuple[Condition, bool]] = [
        (ALWAYS, True),
        (Exists("id"), False),
        (Absent("id"), True),
        (Not(Exists("id")), True),
        (all_of(), True),
        (any_of(), False),
        (any_of(Absent("id"), YES), True),
        (all_of(Absent("id"), YES), False),
        (equals("nothing", None), False),
    ]
    for operator in HOLDS_WHEN:
        for attribute, operand, _ in RELATIONS[:4] + RELATIONS[9:11] + RELATIONS[-1:]:
            comparison = Compare(attribute, operator, operand)
            expected += [(comparison, False), (Not(comparison), True)]

    assert await misjudged(harness, {"id": fresh()}, expected) == []


async def test_a_condition_may_look_at_a_wide_attribute(harness: Harness) -> None:
    table, key = harness.tables.sorted, {"pk": fresh(), "sk": "a"}
    await put_all(harness.items, table, {**key, "body": "stored"})

    assert await condition_holds(harness.items, table, key, Exists("body"))
    assert await condition_holds(harness.items, table, key, equals("body", "stored"))
    assert not await condition_holds(harness.items, table, key, Absent("body"))


async def test_many_alternatives_in_one_condition(harness: Harness) -> None:
    key = await stored(harness)
    alternatives = any_of(*(equals("number", n) for n in range(50, 90)))

    assert (
        await misjudged(
            harness, key, [(alternatives, False), (any_of(alternatives, equals("number", 10)), True)]
        )
        == []
    )
