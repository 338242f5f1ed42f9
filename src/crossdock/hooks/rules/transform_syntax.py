"""JMESPath as text to a syntax tree, by the parser of the `jmespath` package.

Whether an expression is good depends on its text alone, never on how much stack the caller has left: what was
accepted when it was configured is accepted when it is used. So nesting is bounded well below what recursion
could take. Literals and quoted names must be JSON to the letter.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import msgspec
from jmespath.exceptions import JMESPathError
from jmespath.parser import Parser

from crossdock.hooks.rules.match_limits import problem_of_size

EXPRESSION_BYTES_MAX = 4 * 1024
EXPRESSION_NESTING_MAX = 64

Node: TypeAlias = dict[str, Any]
"""`type`, `value` where it has one, and `children`."""


class ExpressionProblem(ValueError):
    """Why a text is no expression that we evaluate, in a sentence."""


def parse_expression(text: str) -> Node:
    """Raises ExpressionProblem."""
    if len(text.encode()) > EXPRESSION_BYTES_MAX:
        raise ExpressionProblem(f"An expression has at most {EXPRESSION_BYTES_MAX // 1024} KB.")
    _check_tokens(text)
    node = _parse(text)
    _check_nesting(node)
    return node


def _parse(text: str) -> Node:
    try:
        parsed: Node = Parser().parse(text).parsed
    except JMESPathError as error:
        raise ExpressionProblem(_sentence(error, text)) from error
    except RecursionError as error:
        raise _too_deep() from error
    except (LookupError, TypeError, ValueError) as error:
        # The parser trips over some texts that end early.
        raise ExpressionProblem("It is not JMESPath.") from error
    finally:
        # It keeps what it parsed, hundreds of them, for callers that ask again and again; we don't.
        Parser.purge()
    return parsed


def _sentence(error: JMESPathError, text: str) -> str:
    position = getattr(error, "lex_position", None)
    if position is None:
        return "An expression can't be empty."
    reason = getattr(error, "message", None) or getattr(error, "msg", None) or "invalid"
    if position >= len(text):
        return f"The expression ends too early ({_one_line(reason)})."
    return f"At character {position + 1}, {_one_line(text[position : position + 20])}: {_one_line(reason)}."


def _one_line(text: str) -> str:
    return " ".join(text.split())


# --- what the parser would let pass -------------------------------------------------------------------

_NO_JSON = object()

_TOKENS = re.compile(
    r"""(?P<name>"(?:\\.|[^"\\])*")|'(?:\\.|[^'\\])*'|`(?P<literal>(?:\\.|[^`\\])*)`|(?P<open>[\[({])|[\])}]""",
    re.DOTALL,
)


def _check_tokens(text: str) -> None:
    depth = 0
    for token in _TOKENS.finditer(text):
        where = f"At character {token.start() + 1}"
        if token["literal"] is not None:
            _check_literal(token["literal"].replace("\\`", "`"), where)
        elif token["name"] is not None:
            if _json_of(token["name"]) is _NO_JSON:
                raise ExpressionProblem(f"{where}: a name in double quotes is written as JSON writes text.")
        elif token[0][0] != "'":
            depth += 1 if token["open"] else -1
            if depth > EXPRESSION_NESTING_MAX:
                raise _too_deep()


def _check_literal(literal: str, where: str) -> None:
    value = _json_of(literal)
    if value is _NO_JSON:
        raise ExpressionProblem(f"{where}: between backticks is JSON; text is written 'so' or `\"so\"`.")
    if (problem := problem_of_size(value, "")) is not None:
        raise ExpressionProblem(f"{where}: the literal is too large. {problem.detail}")


def _json_of(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return _NO_JSON


def _check_nesting(root: Node) -> None:
    below = [iter((root,))]
    while below:
        for node in below[-1]:
            if len(below) > EXPRESSION_NESTING_MAX:
                raise _too_deep()
            if node["type"] != "slice":
                below.append(iter(node["children"]))
                break
        else:
            below.pop()


def _too_deep() -> ExpressionProblem:
    return ExpressionProblem(f"An expression is nested at most {EXPRESSION_NESTING_MAX} deep (pipes count).")
