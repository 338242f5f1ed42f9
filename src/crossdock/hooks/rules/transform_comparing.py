"""How JMESPath compares values, with the work counted: they may stand for far more than they hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crossdock.hooks.rules.match_values import deeply_equal
from crossdock.hooks.rules.transform_work import Work


def is_false(value: Any) -> bool:
    return value is None or value is False or (isinstance(value, str | list | dict) and not value)


def equal(left: Any, right: Any, work: Work) -> bool:
    """As JMESPath has it: strictly, and however large the two would be as text."""
    return deeply_equal(left, right, _same, work.spend)


def _same(left: Any, right: Any) -> bool:
    return bool(left == right) and isinstance(left, bool) is isinstance(right, bool)


def _ordered(holds: Callable[[Any, Any], bool]) -> Callable[[Any, Any, Work], bool | None]:
    """Two numbers or two texts have an order; of anything else the answer is null."""

    def compare(left: Any, right: Any, work: Work) -> bool | None:
        if isinstance(left, str) and isinstance(right, str):
            work.compare(min(len(left), len(right)))
            return holds(left, right)
        return holds(left, right) if _is_number(left) and _is_number(right) else None

    return compare


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


COMPARISONS: dict[str, Callable[[Any, Any, Work], bool | None]] = {
    "eq": equal,
    "ne": lambda left, right, work: not equal(left, right, work),
    "lt": _ordered(lambda left, right: bool(left < right)),
    "lte": _ordered(lambda left, right: bool(left <= right)),
    "gt": _ordered(lambda left, right: bool(left > right)),
    "gte": _ordered(lambda left, right: bool(left >= right)),
}


def spend_on_order(work: Work, array: list[Any], comparisons: int) -> None:
    """Numbers and short texts are compared several times in a step; long texts take many."""
    longest = max((len(each) for each in array if isinstance(each, str)), default=0)
    work.spend(len(array) + comparisons // 8 + comparisons * (longest // 64) // 16)
