"""What the operators of a filter ask of a value and an operand. Of types they are not for, all say no."""

from __future__ import annotations

from typing import Any

from crossdock.hooks.rules.match_values import deeply_equal, equal_to, loosely_equal, order
from crossdock.hooks.rules.matching import Run


def is_equal(value: Any, operand: Any, run: Run) -> bool:
    return deeply_equal(value, operand, loosely_equal, run.spend)


def is_not_equal(value: Any, operand: Any, run: Run) -> bool:
    return not is_equal(value, operand, run)


def is_greater(value: Any, operand: Any, run: Run) -> bool:
    found = order(value, operand)
    return found is not None and found > 0


def is_greater_or_equal(value: Any, operand: Any, run: Run) -> bool:
    found = order(value, operand)
    return found is not None and found >= 0


def is_less(value: Any, operand: Any, run: Run) -> bool:
    found = order(value, operand)
    return found is not None and found < 0


def is_less_or_equal(value: Any, operand: Any, run: Run) -> bool:
    found = order(value, operand)
    return found is not None and found <= 0


def is_in(value: Any, operand: Any, run: Run) -> bool:
    return _membership(value, operand, run) is True


def is_not_in(value: Any, operand: Any, run: Run) -> bool:
    return _membership(value, operand, run) is False


def _membership(value: Any, operand: Any, run: Run) -> bool | None:
    """Is a primitive among the operand's, a text within the text, the operand an element of the array?
    None: neither can be asked of these two."""
    if isinstance(operand, list):
        return None if isinstance(value, dict | list) else _has(operand, value, run)
    if isinstance(operand, dict):
        return None
    if isinstance(value, list):
        return _has(value, operand, run)
    if isinstance(value, str) and isinstance(operand, str):
        return operand in value
    return None


def _has(array: list[Any], primitive: Any, run: Run) -> bool:
    run.spend(len(array))
    equals = equal_to(primitive)
    return any(equals(element) for element in array)


def starts_with(value: Any, operand: Any, run: Run) -> bool:
    return isinstance(value, str) and value.startswith(_texts(operand, run))


def ends_with(value: Any, operand: Any, run: Run) -> bool:
    return isinstance(value, str) and value.endswith(_texts(operand, run))


def _texts(operand: Any, run: Run) -> tuple[str, ...]:
    each = operand if isinstance(operand, list) else [operand]
    run.spend(len(each))
    return tuple(text for text in each if isinstance(text, str))
