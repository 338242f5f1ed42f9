"""What conditions, updates and queries look like in DynamoDB's language.

That the texts mean what they should is asked of a real DynamoDB by the suites in tests/contract.
"""

from dataclasses import replace

import pytest

from crossdock.engines.items.conditions import (
    ALWAYS,
    Absent,
    Compare,
    Condition,
    Exists,
    Not,
    all_of,
    any_of,
    equals,
)
from crossdock.engines.items.dynamodb.expressions import (
    Placeholders,
    guarded,
    reduced,
    render_key_condition,
    render_update,
)
from crossdock.engines.items.port import (
    Add,
    Change,
    Index,
    ItemRejected,
    Query,
    Remove,
    Set,
    SetIfAbsent,
    SortBetween,
    SortCondition,
    SortEquals,
    SortPrefix,
    Table,
)

PLAIN = Table("plain", partition="pk", sort="sk", indexes=(Index("by_owner", "owner"),))
EXPIRING = replace(PLAIN, ttl="ends")

NEVER = Compare("a", "<", None)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (ALWAYS, True),
        (NEVER, False),
        (Compare("a", ">=", True), False),
        (Not(ALWAYS), False),
        (Not(NEVER), True),
        (all_of(), True),
        (any_of(), False),
        (all_of(ALWAYS, ALWAYS), True),
        (all_of(Exists("a"), NEVER), False),
        (any_of(Exists("a"), ALWAYS), True),
        (all_of(Exists("a"), ALWAYS), Exists("a")),
        (any_of(NEVER, Exists("a")), Exists("a")),
        (Not(all_of(Exists("a"), ALWAYS)), Not(Exists("a"))),
        (all_of(Exists("a"), Absent("b")), all_of(Exists("a"), Absent("b"))),
        (equals("a", None), equals("a", None)),
    ],
    ids=repr,
)
def test_what_comes_to_the_same_for_every_item_is_left_out(
    condition: Condition, expected: Condition | bool
) -> None:
    assert reduced(condition) == expected


def text(condition: Condition, table: Table = PLAIN, *, live_only: bool = False) -> str | None:
    """The expression with its placeholders filled in."""
    placeholders = Placeholders()
    rendered = guarded(condition, table, 99, placeholders, live_only=live_only)
    return rendered and filled_in(rendered, placeholders)


def filled_in(text: str, placeholders: Placeholders) -> str:
    for placeholder, name in placeholders.names.items():
        text = text.replace(placeholder, name)
    for placeholder, attribute in placeholders.values.items():
        ((_, value),) = attribute.items()
        text = text.replace(placeholder, str(value))
    return text


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (ALWAYS, None),
        (Exists("a"), "attribute_exists(a)"),
        (Absent("a"), "attribute_not_exists(a)"),
        (equals("a", "x"), "a = x"),
        (Compare("a", "<=", 5), "a <= 5"),
        (Compare("a", "<>", 5), "(attribute_type(a, N) AND a <> 5)"),
        (Not(equals("a", 1)), "(NOT a = 1)"),
        (
            all_of(equals("a", 1), any_of(Exists("b"), Absent("c"))),
            "(a = 1 AND (attribute_exists(b) OR attribute_not_exists(c)))",
        ),
        (NEVER, "(NOT (attribute_exists(pk) OR attribute_not_exists(pk)))"),
    ],
    ids=repr,
)
def test_a_condition_on_a_table_without_ttl(condition: Condition, expected: str | None) -> None:
    assert text(condition) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (ALWAYS, None),
        (Absent("pk"), "(ends < 100 OR attribute_not_exists(pk))"),
        (Not(equals("a", 1)), "(ends < 100 OR (NOT a = 1))"),
        (Exists("pk"), "((NOT ends < 100) AND attribute_exists(pk))"),
        (equals("a", 1), "((NOT ends < 100) AND a = 1)"),
    ],
    ids=repr,
)
def test_an_expired_item_meets_what_an_absent_one_meets(condition: Condition, expected: str | None) -> None:
    assert text(condition, EXPIRING) == expected


def test_an_update_never_builds_on_what_an_expired_item_left() -> None:
    assert text(ALWAYS, EXPIRING, live_only=True) == "(NOT ends < 100)"
    assert text(Absent("a"), EXPIRING, live_only=True) == "((NOT ends < 100) AND attribute_not_exists(a))"


def test_a_name_has_one_placeholder_and_a_value_one_for_each_use() -> None:
    placeholders = Placeholders()
    rendered = guarded(all_of(equals("a", 1), Not(equals("a", 1))), PLAIN, 0, placeholders)

    assert rendered == "(#n0 = :v0 AND (NOT #n0 = :v1))"
    assert placeholders.names == {"#n0": "a"}
    assert placeholders.values == {":v0": {"N": "1"}, ":v1": {"N": "1"}}


def test_a_value_that_cannot_be_stored_is_rejected_before_anything_is_sent() -> None:
    with pytest.raises(ItemRejected):
        text(equals("a", float("nan")))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ((Set("a", 1),), "SET a = 1"),
        ((SetIfAbsent("a", 1),), "SET a = if_not_exists(a, 1)"),
        ((Add("a", -1),), "ADD a -1"),
        ((Remove("a"),), "REMOVE a"),
        (
            (Remove("d"), Set("a", 1), Add("c", 2), SetIfAbsent("b", 3), Remove("e")),
            "REMOVE d, e SET a = 1, b = if_not_exists(b, 3) ADD c 2",
        ),
    ],
    ids=repr,
)
def test_an_update(changes: tuple[Change, ...], expected: str) -> None:
    placeholders = Placeholders()
    assert filled_in(render_update(changes, placeholders), placeholders) == expected


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        (None, "pk = p"),
        (SortEquals("a"), "pk = p AND sk = a"),
        (SortPrefix("a"), "pk = p AND begins_with(sk, a)"),
        (SortPrefix(""), "pk = p"),
        (SortBetween("a", "b"), "pk = p AND sk BETWEEN a AND b"),
        (SortBetween("a", "a"), "pk = p AND sk BETWEEN a AND a"),
        (SortBetween("", "b"), "pk = p AND sk <= b"),
        (SortEquals(""), None),
        (SortBetween("b", "a"), None),
        (SortBetween("", ""), None),
        # As UTF-16, which Python does not compare by, the order would be the other way round.
        (SortBetween("\uffff", "\U00010000"), "pk = p AND sk BETWEEN \uffff AND \U00010000"),
    ],
    ids=repr,
)
def test_a_key_condition_or_none_where_no_key_can_meet_it(
    sort: SortCondition | None, expected: str | None
) -> None:
    placeholders = Placeholders()
    rendered = render_key_condition(Query(PLAIN, "p", sort), placeholders)
    assert (rendered and filled_in(rendered, placeholders)) == expected


def test_no_key_is_empty() -> None:
    assert render_key_condition(Query(PLAIN, ""), Placeholders()) is None


def test_asking_an_index_without_a_sort_key_for_one_is_a_defect() -> None:
    with pytest.raises(ValueError, match="no sort key"):
        render_key_condition(Query(PLAIN, "p", SortEquals("a"), index="by_owner"), Placeholders())
