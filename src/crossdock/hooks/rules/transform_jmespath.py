"""JMESPath, compiled to closures that count their work.

The evaluator of the `jmespath` package can't be bounded: results share what they are made of, so that few
visits build a value of any size, and its comparisons and error messages walk through all of it. Here every
node, and every element that a node looks at or makes, is paid for from `Work`. Functions and the number of
their arguments are known when an expression is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from crossdock.hooks.rules.transform_comparing import COMPARISONS, is_false
from crossdock.hooks.rules.transform_functions import FUNCTIONS, Evaluate, call
from crossdock.hooks.rules.transform_kinds import Kind
from crossdock.hooks.rules.transform_syntax import ExpressionProblem, Node, parse_expression
from crossdock.hooks.rules.transform_work import Work


def compile_expression(text: str) -> Evaluate:
    """Raises ExpressionProblem. What it gives raises StepFailed."""
    return _compile(parse_expression(text))


def _compile(node: Node) -> Evaluate:
    if node["type"] == "expref":
        raise ExpressionProblem("An & stands only before an argument of sort_by, max_by, min_by or map.")
    return _COMPILERS[node["type"]](node)


_Compiler: TypeAlias = Callable[[Node], Evaluate]


# --- names and literals ------------------------------------------------------------------------------


def _current(node: Node) -> Evaluate:
    def evaluate(value: Any, work: Work) -> Any:
        work.spend(1)
        return value

    return evaluate


def _literal(node: Node) -> Evaluate:
    literal = node["value"]

    def evaluate(value: Any, work: Work) -> Any:
        work.spend(1)
        return literal

    return evaluate


def _field(node: Node) -> Evaluate:
    name = node["value"]

    def evaluate(value: Any, work: Work) -> Any:
        work.spend(1)
        return value.get(name) if isinstance(value, dict) else None

    return evaluate


def _index(node: Node) -> Evaluate:
    index = node["value"]

    def evaluate(value: Any, work: Work) -> Any:
        work.spend(1)
        is_there = isinstance(value, list) and -len(value) <= index < len(value)
        return value[index] if is_there else None

    return evaluate


def _slice(node: Node) -> Evaluate:
    if node["children"][2] == 0:
        raise ExpressionProblem("The step of a slice can't be 0.")
    bounds = slice(*node["children"])

    def evaluate(value: Any, work: Work) -> Any:
        work.spend(1)
        if not isinstance(value, list):
            return None
        work.spend(len(range(*bounds.indices(len(value)))))
        return value[bounds]

    return evaluate


# --- one after the other -----------------------------------------------------------------------------


def _sequence(node: Node) -> Evaluate:
    parts = [_compile(child) for child in node["children"]]

    def evaluate(value: Any, work: Work) -> Any:
        for part in parts:
            value = part(value, work)
        return value

    return evaluate


# --- projections -------------------------------------------------------------------------------------


def _projection(node: Node) -> Evaluate:
    base, each = map(_compile, node["children"])

    def evaluate(value: Any, work: Work) -> Any:
        elements = base(value, work)
        return _projected(elements, each, work) if isinstance(elements, list) else None

    return evaluate


def _value_projection(node: Node) -> Evaluate:
    base, each = map(_compile, node["children"])

    def evaluate(value: Any, work: Work) -> Any:
        holder = base(value, work)
        return _projected(holder.values(), each, work) if isinstance(holder, dict) else None

    return evaluate


def _filter_projection(node: Node) -> Evaluate:
    base, each, condition = map(_compile, node["children"])

    def evaluate(value: Any, work: Work) -> Any:
        elements = base(value, work)
        if not isinstance(elements, list):
            return None
        chosen = (element for element in elements if not is_false(condition(element, work)))
        return _projected(chosen, each, work)

    return evaluate


def _projected(elements: Any, each: Evaluate, work: Work) -> list[Any]:
    found = (each(element, work) for element in elements)
    return [value for value in found if value is not None]


def _flatten(node: Node) -> Evaluate:
    [base] = map(_compile, node["children"])

    def evaluate(value: Any, work: Work) -> Any:
        elements = base(value, work)
        if not isinstance(elements, list):
            return None
        flat: list[Any] = []
        for element in elements:
            inner = element if isinstance(element, list) else [element]
            work.spend(1 + len(inner))
            flat += inner
        return flat

    return evaluate


# --- new arrays and objects --------------------------------------------------------------------------


def _multi_select_list(node: Node) -> Evaluate:
    parts = [_compile(child) for child in node["children"]]

    def evaluate(value: Any, work: Work) -> Any:
        work.spend(1)
        return None if value is None else [part(value, work) for part in parts]

    return evaluate


def _multi_select_dict(node: Node) -> Evaluate:
    parts = {pair["value"]: _compile(pair["children"][0]) for pair in node["children"]}

    def evaluate(value: Any, work: Work) -> Any:
        work.spend(1)
        return None if value is None else {name: part(value, work) for name, part in parts.items()}

    return evaluate


# --- logic -------------------------------------------------------------------------------------------


def _or(node: Node) -> Evaluate:
    left, right = map(_compile, node["children"])

    def evaluate(value: Any, work: Work) -> Any:
        found = left(value, work)
        return right(value, work) if is_false(found) else found

    return evaluate


def _and(node: Node) -> Evaluate:
    left, right = map(_compile, node["children"])

    def evaluate(value: Any, work: Work) -> Any:
        found = left(value, work)
        return found if is_false(found) else right(value, work)

    return evaluate


def _not(node: Node) -> Evaluate:
    [inner] = map(_compile, node["children"])

    def evaluate(value: Any, work: Work) -> Any:
        return is_false(inner(value, work))

    return evaluate


def _comparator(node: Node) -> Evaluate:
    compare = COMPARISONS[node["value"]]
    left, right = map(_compile, node["children"])

    def evaluate(value: Any, work: Work) -> Any:
        return compare(left(value, work), right(value, work), work)

    return evaluate


# --- functions ---------------------------------------------------------------------------------------


def _function(node: Node) -> Evaluate:
    name, children = node["value"], node["children"]
    function = FUNCTIONS.get(name)
    if function is None:
        raise ExpressionProblem(f"There is no function {name}(). Known are {', '.join(FUNCTIONS)}.")
    if not function.takes(len(children)):
        least = "at least " if function.is_variadic else ""
        wanted = f"{least}{len(function.parameters)}"
        raise ExpressionProblem(f"{name}() takes {wanted} arguments, not {len(children)}.")
    arguments = [_argument(name, function.parameter(i), child) for i, child in enumerate(children)]

    def evaluate(value: Any, work: Work) -> Any:
        work.spend(1)
        return call(name, [argument(value, work) for argument in arguments], work)

    return evaluate


def _argument(name: str, wanted: Kind, child: Node) -> Evaluate:
    if wanted is not Kind.EXPRESSION:
        return _compile(child)
    if child["type"] != "expref":
        raise ExpressionProblem(f"{name}() takes an expression such as &name.")
    expression = _compile(child["children"][0])
    return lambda value, work: expression


_COMPILERS: dict[str, _Compiler] = {
    "and_expression": _and,
    "comparator": _comparator,
    "current": _current,
    "field": _field,
    "filter_projection": _filter_projection,
    "flatten": _flatten,
    "function_expression": _function,
    "identity": _current,
    "index": _index,
    "index_expression": _sequence,
    "literal": _literal,
    "multi_select_dict": _multi_select_dict,
    "multi_select_list": _multi_select_list,
    "not_expression": _not,
    "or_expression": _or,
    "pipe": _sequence,
    "projection": _projection,
    "slice": _slice,
    "subexpression": _sequence,
    "value_projection": _value_projection,
}
