"""How large a filter or a transform may be as it is configured, checked before anything else looks at it.

What passes is JSON: it can be walked recursively, and none of its texts or numbers surprises an encoder.
"""

from __future__ import annotations

from typing import Any

import msgspec

from crossdock.kit.errors import FieldProblem

CONFIGURED_BYTES_MAX = 64 * 1024
CONFIGURED_NESTING_MAX = 32
CONFIGURED_VALUES_MAX = 2_000
PROBLEMS_MAX = 20
"""More than a person mends at once."""


def problem_of_size(raw: Any, field: str) -> FieldProblem | None:
    below = [iter((raw,))]
    values = 0
    while below:
        for value in below[-1]:
            values += 1
            if values > CONFIGURED_VALUES_MAX:
                detail = f"At most {CONFIGURED_VALUES_MAX} values, names not counted."
                return FieldProblem(field, "too_many", detail)
            if isinstance(value, dict) and not all(isinstance(name, str) for name in value):
                return FieldProblem(field, "wrong_type", "Names are text.")
            if isinstance(value, dict | list):
                if len(below) > CONFIGURED_NESTING_MAX:
                    detail = f"Objects and arrays may be nested {CONFIGURED_NESTING_MAX} deep."
                    return FieldProblem(field, "too_deep", detail)
                below.append(iter(value.values() if isinstance(value, dict) else value))
                break
            if not (value is None or isinstance(value, str | int | float)):
                return FieldProblem(field, "wrong_type", "Only what JSON has.")
        else:
            below.pop()
    return _problem_of_bytes(raw, field)


def _problem_of_bytes(raw: Any, field: str) -> FieldProblem | None:
    try:
        size = len(msgspec.json.encode(raw))
    except (TypeError, ValueError, msgspec.MsgspecError):
        detail = "Only what JSON has: text without lone surrogates, numbers without thousands of digits."
        return FieldProblem(field, "wrong_type", detail)
    if size > CONFIGURED_BYTES_MAX:
        return FieldProblem(field, "too_large", f"At most {CONFIGURED_BYTES_MAX // 1024} KB as JSON.")
    return None
