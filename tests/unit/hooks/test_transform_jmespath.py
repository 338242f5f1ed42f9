from __future__ import annotations

import time
import tracemalloc
import warnings
from typing import Any

import jmespath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.hooks.rules.transform_functions import FUNCTIONS
from crossdock.hooks.rules.transform_jmespath import compile_expression
from crossdock.hooks.rules.transform_syntax import ExpressionProblem
from crossdock.hooks.rules.transform_work import WORK_MAX, StepFailed, Work, encode

ORDER: Any = {
    "id": "o1",
    "total": 12.5,
    "paid": True,
    "note": None,
    "zero": 0,
    "empty": {"text": "", "list": [], "object": {}},
    "customer": {"name": "Zoë", "tags": ["new", "vip"]},
    "items": [
        {"sku": "b", "n": 2, "price": 5, "tags": [["x"], ["y", "z"]]},
        {"sku": "a", "n": 1, "price": 2.5, "tags": []},
        {"sku": "c", "n": 3},
    ],
    "matrix": [[1, 2], [3, [4]], 5],
    "numbers": [3, 1.5, -2],
    "strings": ["b", "é", "a"],
    "mixed": [1, "1", None, True, [1], {"a": 1}],
    "two words": 1,
}


def evaluate(expression: str, value: Any = ORDER) -> Any:
    return compile_expression(expression)(value, Work())


# --- what expressions give ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "expression",
    [
        *("id", "gone", "customer.name", "customer.gone.deeper", "id.deeper", '"two words"', "@", "@.id"),
        *(
            "items[0]",
            "items[-1].sku",
            "items[9]",
            "id[0]",
            "items[0:2].sku",
            "items[::-1].sku",
            "items[:-1]",
        ),
        *(
            "items[5:1]",
            "items[1:][0]",
            "id[1:]",
            "matrix[0][1]",
            "items[*].sku",
            "items[*].price",
            "items[].sku",
        ),
        *(
            "items[*].tags[]",
            "items[*].tags[][]",
            "items[].tags | [0]",
            "matrix[]",
            "matrix[][]",
            "customer.*",
        ),
        *("*.name", "*.*", "empty.*", "items[*].[sku, n]", "items[*].{s: sku, t: tags[0]}", "[id, gone]"),
        *("{a: id, b: {c: total}}", "gone.{a: id}", "gone.[a]", "items[?n > `1`].sku", "items[?price].sku"),
        *(
            "items[?sku == 'a' || n == `3`].n",
            "items[?!(n == `2`)].sku",
            "items[?tags && n]",
            "id[?a]",
            "items[?@]",
        ),
        *(
            "`5`",
            "'raw'",
            "'it\\'s'",
            '`{"a": [1, null]}`',
            '`"so"`',
            "id || gone",
            "gone || id",
            "zero || id",
        ),
        *(
            "empty.text || id",
            "empty.list || id",
            "empty.object || id",
            "note || paid",
            "id && total",
            "note && id",
        ),
        *("!id", "!note", "!zero", "!empty.list", "id == 'o1'", "id != 'o1'", "mixed[0] == mixed[1]"),
        *("mixed[0] == mixed[3]", "mixed[4] == `[1]`", 'mixed[5] == `{"a": 1}`', "items[0] == items[1]"),
        *(
            "total > `12`",
            "total >= `12.5`",
            "total < zero",
            "id < 'p'",
            "note < zero",
            "paid > zero",
            "items < zero",
        ),
        *("items | [0] | sku", "items[*].sku | [0]", "(items[*].tags)[0]", "items[*].sku | length(@)"),
        *(
            "abs(`-3`)",
            "ceil(total)",
            "floor(`-1.5`)",
            "sum(numbers)",
            "sum(`[]`)",
            "avg(numbers)",
            "avg(`[]`)",
        ),
        *("max(numbers)", "min(strings)", "max(`[]`)", "sort(numbers)", "sort(strings)", "sort(`[]`)"),
        *(
            "sort_by(items, &n)[*].sku",
            "sort_by(items, &sku)[0].n",
            "max_by(items, &n).sku",
            "min_by(items, &n).sku",
        ),
        *(
            "max_by(`[]`, &n)",
            "sort_by(`[]`, &n)",
            "map(&price, items)",
            "map(&[0], matrix)",
            "reverse(numbers)",
        ),
        *(
            "reverse(id)",
            "join('-', strings)",
            "join('', `[]`)",
            "length(id)",
            "length(items)",
            "length(customer)",
        ),
        *("keys(customer)", "values(customer)", 'merge(customer, empty, `{"name": 1}`)', "contains(id, 'o')"),
        *(
            "contains(mixed, `null`)",
            "contains(mixed, '1')",
            "contains(mixed, `[1]`)",
            "contains(strings, 'z')",
        ),
        *("starts_with(id, 'o')", "ends_with(id, 'o')", "not_null(note, gone, id)", "not_null(note)"),
        *("to_array(id)", "to_array(items)", "to_string(id)", "to_string(items)", "to_string(total)"),
        *("to_number('5')", "to_number('-1.5e2')", "to_number('x')", "to_number(paid)", "to_number(total)"),
        *("to_number(note)", "mixed[*].type(@)", "type(note)", "type(total)", "length(keys(@)) > `3`"),
    ],
)
def test_an_expression_gives_what_the_reference_implementation_gives(expression: str) -> None:
    assert encode(evaluate(expression)) == encode(jmespath.search(expression, ORDER))


def test_every_function_of_the_specification_is_known() -> None:
    # let/in and the rest of the community edition are no part of it.
    assert FUNCTIONS.keys() == jmespath.functions.Functions.FUNCTION_TABLE.keys()


names = st.sampled_from(["a", "b", "c"])
documents = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=3),
    max_leaves=15,
)
expressions = st.recursive(
    names
    | st.sampled_from(["@", "*", "[*]", "[]", "[0]", "[-1]", "[1:]", "[::2]", "`1`", "'a'", "`[]`", "`{}`"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["a", "*", "[a, b]", "{c: b}"])).map(
            lambda two: f"{two[0]}.{two[1]}"
        ),
        st.tuples(inner, st.sampled_from(["[*]", "[]", "[0]", "[:1]", "[?a]", "[?@ == `1`].b"])).map("".join),
        st.tuples(inner, st.sampled_from([" | ", " || ", " && ", " == ", " != "]), inner).map("".join),
        inner.map(lambda one: f"!({one})"),
        inner.map(lambda one: f"[{one}, a]"),
        inner.map(lambda one: f"{{a: {one}}}"),
        st.tuples(st.sampled_from(["type", "to_array", "not_null"]), inner).map(
            lambda two: f"{two[0]}({two[1]})"
        ),
    ),
    max_leaves=6,
)


@given(expressions, documents)
def test_any_expression_agrees_with_the_reference_implementation(expression: str, document: Any) -> None:
    try:
        expected = jmespath.search(expression, document)
    except jmespath.exceptions.JMESPathError:
        with pytest.raises(ExpressionProblem):
            compile_expression(expression)
        return
    assert encode(evaluate(expression, document)) == encode(expected)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("id < total", None),
        ("total < id", None),
        ("contains(id, `1`)", False),
        ("mixed[4:5] == `[[true]]`", False),
        ("to_number('1_000')", None),
        ("to_number('nan')", None),
        ("to_number('1e999')", None),
        ("to_number('٣')", None),
        ("to_string(customer.tags[0:1])", '["new"]'),
        ("to_string(strings)", '["b","é","a"]'),
    ],
)
def test_what_the_reference_implementation_gets_wrong_is_as_specified(expression: str, value: Any) -> None:
    assert evaluate(expression) == value


def test_the_value_is_never_changed() -> None:
    before = encode(ORDER)
    evaluate("[sort(numbers), reverse(items), merge(customer, empty), items[], keys(@), map(&n, items)]")
    assert encode(ORDER) == before


# --- what is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("", "can't be empty"),
        ("a.", "ends too early"),
        ("a[", "ends too early"),
        ("[a, ", "ends too early"),
        ("{a: ", "ends too early"),
        ("a b", "At character 3, b"),
        ("a..b", "At character 3, .b"),
        ("a]", "At character 2, ]"),
        ("a[b]", "At character 3, b]"),
        ("a = b", "At character 3, = b"),
        ("a ^ b", "At character 3, ^ b"),
        ("'open", "At character 1, 'open"),
        ('"open', 'At character 1, "open'),
        ("`open", "At character 1, `open"),
        ("-", "At character 1, -"),
        ("a[1:2:3:4]", "At character 8, :4]"),
        ("a.`1`", "At character 3, `1`"),
        ('"a"(b)', "At character 1"),
        ("`so`", "At character 1: between backticks is JSON"),
        ("a || ``", "At character 6: between backticks is JSON"),
        ("`NaN`", "At character 1: between backticks is JSON"),
        ("`1e999`", "At character 1: between backticks is JSON"),
        ('`"\\ud800"`', "At character 1: between backticks is JSON"),
        ('"\\ud800"', "At character 1: a name in double quotes"),
        ('{"\\x": a}', "At character 2: a name in double quotes"),
        ("`" + "[" * 40 + "]" * 40 + "`", "At character 1: the literal is too large."),
        ("`" + "[" * 900 + "]" * 900 + "`", "At character 1: the literal is too large."),
        ("a[::0]", "The step of a slice can't be 0."),
        ("lower(a)", "There is no function lower()."),
        ("length()", "length() takes 1 arguments, not 0."),
        ("length(a, b)", "length() takes 1 arguments, not 2."),
        ("merge()", "merge() takes at least 1 arguments, not 0."),
        ("sort_by(a, b)", "sort_by() takes an expression such as &name."),
        ("length(&a)", "An & stands only before an argument"),
        ("&a", "An & stands only before an argument"),
        ("[&a]", "An & stands only before an argument"),
        ("x" * 4_097, "at most 4 KB"),
        ("'" + "é" * 2_100 + "'", "at most 4 KB"),
        ("(" * 65 + "a" + ")" * 65, "nested at most 64 deep"),
        ("(" * 2_000 + "a" + ")" * 2_000, "nested at most 64 deep"),
        ("[" * 65 + "a" + "]" * 65, "nested at most 64 deep"),
        ("!" * 65 + "a", "nested at most 64 deep"),
        ("!" * 4_000 + "a", "nested at most 64 deep"),
        ("|".join("a" * 66), "nested at most 64 deep"),
        ("@" + ".*" * 1_000, "nested at most 64 deep"),
    ],
)
def test_a_wrong_expression_is_refused_with_the_reason(expression: str, problem: str) -> None:
    with pytest.raises(ExpressionProblem) as refusal:
        compile_expression(expression)
    assert problem in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 64 + "id" + ")" * 64,
        "|".join(["@"] * 63),
        "!" * 63 + "id",
        "@" + ".*" * 60,
        "map(&" * 30 + "@" + ", @)" * 30,
        "[" + ",".join(["@"] * 2_000) + "] | length(@)",
        "'" + "(" * 200 + "'",
        ".".join(["a"] * 2_000),
    ],
)
@pytest.mark.parametrize("frames", [0, 450])
def test_the_largest_expressions_are_good_however_much_stack_is_left(expression: str, frames: int) -> None:
    def under(frames: int) -> Any:
        return under(frames - 1) if frames else evaluate(expression, [[]])

    under(frames)


@given(st.text("ab@[]{}()*.,:|&!?=<>`'\"\\ 019-", max_size=12) | st.text(max_size=6))
def test_any_text_is_an_expression_or_refused_as_one(text: str) -> None:
    try:
        expression = compile_expression(text)
    except ExpressionProblem as problem:
        assert str(problem).endswith((".", "`.", ")"))
        return
    try:
        encode(expression(ORDER, Work()))
    except StepFailed as failed:
        assert failed.detail


def test_expressions_of_users_are_not_kept_by_the_parser() -> None:
    compile_expression("kept_by_nobody")
    assert jmespath.parser.Parser._CACHE == {}


# --- what fails with a value -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "detail"),
    [
        ("length(total)", "length() takes text or an array or an object as argument 1, not a number."),
        ("abs(id)", "abs() takes a number as argument 1, not text."),
        ("abs(gone)", "abs() takes a number as argument 1, not null."),
        ("sum(strings)", "sum() takes an array of numbers as argument 1, not an array."),
        ("sum(mixed)", "sum() takes an array of numbers as argument 1, not an array."),
        ("max(mixed)", "max() takes an array of numbers or an array of texts as argument 1, not an array."),
        ("join(id, numbers)", "join() takes an array of texts as argument 2, not an array."),
        ("join(`1`, strings)", "join() takes text as argument 1, not a number."),
        ("merge(customer, id)", "merge() takes an object as argument 2, not text."),
        ("sort_by(items, &price)", "sort_by() needs a number of every element, or a text of every element."),
        ("max_by(mixed, &@)", "max_by() needs a number of every element, or a text of every element."),
        ("min_by(items, &tags)", "min_by() needs a number of every element, or a text of every element."),
        ("contains(total, `1`)", "contains() takes text or an array as argument 1, not a number."),
        ("sum(`[1e308, 1e308]`)", "sum() gives a number that is too large."),
        ("avg(`[" + "9" * 400 + ", 0.5]`)", "avg() gives a number that is too large."),
    ],
)
def test_a_function_fails_on_what_it_does_not_take(expression: str, detail: str) -> None:
    with pytest.raises(StepFailed) as failed:
        evaluate(expression)
    assert failed.value.detail == detail


# --- bounds ------------------------------------------------------------------------------------------

ROWS = [{"id": number} for number in range(13_000)]
LONG = {"a": "x" * 120_000 + "a", "b": "x" * 120_000 + "é"}
WIDE = {f"k{number}": number for number in range(13_000)}
DEEP = [[[["x"] * 10] * 10] * 10] * 20


def piped(expression: str, times: int) -> str:
    return "|".join([expression] * times)


def many(expression: str, times: int) -> str:
    return f"[{','.join([expression] * times)}]"


DOUBLED_TWICE = f"{{a: {piped('[@, @]', 30)}, b: {piped('[@, @]', 30)}}}"

HOSTILE = [
    (piped("[@,@,@,@]", 50), [1]),
    (piped("{a:@,b:@,c:@}", 40) + ".*" * 12, [1]),
    (piped("[@,@,@]", 40) + "[][][][][][][][][][][][]", [1]),
    (piped("[@,@][]", 50), ROWS),
    (piped("join('', [@, @])", 50), "x" * 250_000),
    (piped("to_string([@])", 50), '"'),
    (piped("[@,@]", 40) + "|to_string(@)", [1]),
    (many("to_string(@)", 300), ROWS),
    (DOUBLED_TWICE + "|a == b", [1]),
    (DOUBLED_TWICE + "|contains([a], b)", [1]),
    (DOUBLED_TWICE + "|a != b", [1]),
    ("[a, b]|" + piped("[@,@][]", 12) + "|sort(@)", LONG),
    ("[a, b]|" + piped("[@,@][]", 14) + "|max(@)", LONG),
    ("[a, b]|" + piped("[@,@][]", 12) + "|sort_by(@, &@)", LONG),
    (f"{many('@', 200)}|[].{many('a < b', 100)}", LONG),
    (many("merge(@, @)", 300), WIDE),
    (many("keys(@)", 300), WIDE),
    (many("values(@)", 300), WIDE),
    (many("reverse(@)", 300), ROWS),
    (many("[::-1]", 500), ROWS),
    (many("[].id", 300), ROWS),
    (many("[?id]", 300), ROWS),
    (many("map(&id, @)", 300), ROWS),
    (many("sort_by(@, &id)", 200), ROWS),
    (many("max_by(@, &id)", 200), ROWS),
    (many("[][][][]", 300), DEEP),
    ("[*].[@,@,@,@,@,@][]|[*].[@,@,@,@,@,@][]", ROWS),
    (f"{many('@', 200)}|[].{many('contains(a, b)', 100)}", LONG),
    (f"[*].{{{'k' * 3_000}: `1`}}", ROWS),
    (f"{many('@', 1_000)}|[*].{many('@', 50)}", int("9" * 4_300)),
]


@pytest.mark.parametrize(("expression", "value"), HOSTILE)
def test_a_hostile_expression_ends_soon_with_little_memory(expression: str, value: Any) -> None:
    compiled = compile_expression(expression)
    begin = time.process_time()
    with pytest.raises(StepFailed, match=r"200,000 steps|512 KB"):
        encode(compiled(value, Work()))
    assert time.process_time() - begin < 1.0
    tracemalloc.start()
    try:
        with pytest.raises(StepFailed):
            encode(compiled(value, Work()))
        assert tracemalloc.get_traced_memory()[1] < 32 * 1024 * 1024
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("expression", "value", "steps_min"),
    [
        ("[*]", [1] * 1_000, 1_000),
        ("*", {str(n): n for n in range(1_000)}, 1_000),
        ("[?a]", [1] * 1_000, 1_000),
        ("[]", [[1] * 1_000], 2_000),
        ("[]", [1] * 1_000, 2_000),
        ("[::2]", [1] * 2_000, 2_000),
        ("[@, @, @]", 1, 4),
        ("keys(@)", {str(n): n for n in range(1_000)}, 1_000),
        ("values(@)", {str(n): n for n in range(1_000)}, 1_000),
        ("merge(@, @)", {str(n): n for n in range(1_000)}, 2_000),
        ("map(&@, @)", [1] * 1_000, 2_000),
        ("reverse(@)", [1] * 1_000, 1_000),
        ("reverse(@)", "x" * 16_000, 1_000),
        ("sum(@)", [1] * 1_000, 1_000),
        ("max(@)", [1] * 1_000, 2_000),
        ("sort(@)", [1] * 1_000, 3_000),
        ("sort(@)", ["x" * 10_240] * 100, 7_000),
        ("max_by(@, &a)", [{"a": 1}] * 1_000, 3_000),
        ("sort_by(@, &a)", [{"a": 1}] * 1_000, 4_000),
        ("join('', @)", ["x" * 160] * 100, 1_000),
        ('join(`"' + "-" * 160 + '"`, @)', [""] * 100, 1_000),
        ("to_string(@)", ["x"] * 4_000, 1_000),
        ("to_number(@)", "x" * 102_400, 100),
        ("contains(@, 'y')", "x" * 102_400, 100),
        ("contains(@, 'y')", ["x"] * 1_000, 1_000),
        ("starts_with(@, @)", "x" * 102_400, 100),
        ("ends_with(@, @)", "x" * 102_400, 100),
        ("a < b", {"a": "x" * 102_400, "b": "y" * 102_400}, 100),
        ("a == b", {"a": ["x"] * 1_000, "b": ["x"] * 1_000}, 1_000),
        ("a == b", {"a": "x" * 102_400, "b": "x" * 102_399 + "x"}, 100),
    ],
)
def test_what_is_looked_at_or_made_is_paid_for(expression: str, value: Any, steps_min: int) -> None:
    work = Work()
    compile_expression(expression)(value, work)
    assert WORK_MAX - work.left >= steps_min


def test_a_failure_says_nothing_of_the_size_of_what_it_could_not_take() -> None:
    with pytest.raises(StepFailed) as failed:
        evaluate(f"abs({piped('[@, @]', 60)})", [1])
    assert str(failed.value) == "abs() takes a number as argument 1, not an array."


@pytest.mark.parametrize(
    "expression",
    [
        "[*].{id: id, next: id}",
        "sort_by(@, &id)[-1]",
        "[?id > `5`] | length(@)",
        "[*].id | sum(@)",
        "reverse(@)[0]",
    ],
)
def test_a_large_body_is_reshaped_within_the_budget(expression: str) -> None:
    rows = ROWS[:10_000]
    assert encode(evaluate(expression, rows)) == encode(jmespath.search(expression, rows))


def test_nothing_warns_of_a_literal_that_is_no_json() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ExpressionProblem):
            compile_expression("`\ufeff1`")
