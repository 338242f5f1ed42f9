"""Reshaping a message on its way to one connection: steps, applied in order.

    [{"move": {"from": "data.object", "to": "order"}}, {"set_headers": {"X-Kind": "order"}}]

A transform is declared, not programmed, and bounded: a message takes at most a fraction of a second and a few
tens of megabytes, or fails. A body in which no step changed anything is passed on byte for byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from crossdock.hooks.rules.match_limits import PROBLEMS_MAX, problem_of_size
from crossdock.hooks.rules.transform_draft import Draft
from crossdock.hooks.rules.transform_parsing import parse_step
from crossdock.hooks.rules.transform_steps import RemoveHeaders, SetHeaders, Step
from crossdock.hooks.rules.transform_work import StepFailed
from crossdock.kit.errors import CrossdockError, FieldProblem, InvalidInput

STEPS_MAX = 50


class TransformFailed(CrossdockError):
    """This message can't be transformed so; another one may."""

    def __init__(self, message: str) -> None:
        super().__init__("transform_failed", message)


@dataclass(frozen=True, slots=True)
class Message:
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Transform:
    steps: tuple[Step, ...] = ()

    def apply(self, message: Message) -> Message:
        """Raises TransformFailed."""
        draft = Draft(message.body, message.headers)
        where = "no step"
        try:
            for number, step in enumerate(self.steps, 1):
                if not isinstance(step, SetHeaders | RemoveHeaders):  # these can't fail
                    where = f"step {number} ({step.name})"
                step.apply(draft)
            return Message(*draft.finish())
        except StepFailed as failed:
            raise TransformFailed(f"{where}: {failed.detail}") from failed


def parse_transform(raw: Any, field: str = "transform") -> Transform:
    """Raises InvalidInput."""
    if not isinstance(raw, list):
        raise _invalid(FieldProblem(field, "wrong_type", 'An array of steps: [{"remove": ["a.b"]}].'))
    if len(raw) > STEPS_MAX:
        raise _invalid(FieldProblem(field, "too_many", f"At most {STEPS_MAX} steps."))
    if (problem := problem_of_size(raw, field)) is not None:
        raise _invalid(problem)
    problems: list[FieldProblem] = []
    steps = [parse_step(each, f"{field}[{index}]", problems) for index, each in enumerate(raw)]
    if problems:
        raise _invalid(*problems[:PROBLEMS_MAX])
    return Transform(tuple(step for step in steps if step is not None))


def _invalid(*problems: FieldProblem) -> InvalidInput:
    return InvalidInput("The transform is not valid.", *problems)
