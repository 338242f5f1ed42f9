"""What a transform may spend, counted rather than timed: an evaluator cannot be interrupted.

`Work` bounds time and memory of everything a transform does between reading a body and writing the next one:
a step of it is at most about a microsecond, or about a hundred bytes made. Values are shared, never copied
deeply, so a small structure may stand for a huge text (`[@, @] | [@, @] | …`): `encode` finds that out by
counting, before a byte is written.
"""

from __future__ import annotations

from typing import Any

import msgspec

WORK_MAX = 200_000
INPUT_BYTES_MAX = 256 * 1024
OUTPUT_BYTES_MAX = 512 * 1024
NESTING_MAX = 256

_COMPARED_PER_STEP = 1024
_MADE_PER_STEP = 16
_COPIED_PER_STEP = 4


class StepFailed(Exception):
    """Why a step can't be done with this message, in a sentence for people."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class Work:
    """Each method raises StepFailed when the budget is used up."""

    __slots__ = ("left",)

    def __init__(self, steps_max: int = WORK_MAX) -> None:
        self.left = steps_max

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise StepFailed(f"This body takes more than {WORK_MAX:,} steps of work.")

    def copy(self, entries: int) -> None:
        """An object or array is copied, as far as its own entries go."""
        self.spend(1 + entries // _COPIED_PER_STEP)

    def compare(self, characters: int) -> None:
        """A text is compared or searched."""
        self.spend(1 + characters // _COMPARED_PER_STEP)

    def make(self, characters: int) -> None:
        """A text is made."""
        self.spend(1 + characters // _MADE_PER_STEP)


def encode(document: Any, bytes_max: int = OUTPUT_BYTES_MAX) -> bytes:
    """As JSON. Raises StepFailed if that has too many bytes or is nested too deeply."""
    _check_size(document, bytes_max)
    try:
        encoded = msgspec.json.encode(document)
    except ValueError as error:
        raise StepFailed("The result has a number with thousands of digits.") from error
    if len(encoded) > bytes_max:
        raise _too_large(bytes_max)
    return encoded


def _check_size(document: Any, bytes_max: int) -> None:
    """Counts no more bytes than the JSON has, at least a twelfth of them, and looks at `bytes_max` values."""
    size = 0
    below = [iter((document,))]
    while below:
        for value in below[-1]:
            size += _own_bytes(value)
            if size > bytes_max:
                raise _too_large(bytes_max)
            if isinstance(value, dict | list):
                if len(below) > NESTING_MAX:
                    raise StepFailed(f"The result is nested more than {NESTING_MAX} deep.")
                below.append(iter(value.values() if isinstance(value, dict) else value))
                break
        else:
            below.pop()


def _own_bytes(value: Any) -> int:
    """At least so many bytes are the value's own, besides what is in it."""
    if isinstance(value, str):
        return len(value) + 2
    if isinstance(value, dict):
        return sum(map(len, value)) + 3 * len(value) + 2
    if isinstance(value, int) and not isinstance(value, bool):
        return max(1, value.bit_length() * 3 // 10)
    return 2


def _too_large(bytes_max: int) -> StepFailed:
    return StepFailed(f"The result has more than {bytes_max // 1024} KB.")
