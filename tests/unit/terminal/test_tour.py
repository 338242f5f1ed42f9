from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest
from tests.support.clock import ManualClock

from crossdock.terminal.failures import CommandFailed
from crossdock.terminal.tour import Step, Unexpected, expect, expect_refusal, walk


def say(text: str) -> Callable[[], str]:
    return lambda: text


def fail(error: Exception) -> Callable[[], str]:
    def act() -> str:
        raise error

    return act


def outcomes(*steps: Step) -> list[tuple[str, str, bool]]:
    return [(each.step.name, each.came, each.ok) for each in walk(steps, ManualClock())]


def test_each_step_tells_what_came() -> None:
    assert outcomes(Step("a", "", say("one")), Step("b", "", say("two"))) == [
        ("a", "one", True),
        ("b", "two", True),
    ]


@pytest.mark.parametrize(
    "error", [Unexpected("3, not 4"), CommandFailed("no such device"), KeyError("data"), TypeError("None")]
)
def test_a_failed_step_does_not_keep_the_others_from_being_made(error: Exception) -> None:
    first, second = outcomes(Step("a", "", fail(error)), Step("b", "", say("fine")))
    assert not first[2]
    assert second == ("b", "fine", True)


def test_after_an_essential_step_failed_only_cleaning_up_is_tried() -> None:
    found = outcomes(
        Step("a", "", fail(Unexpected("x")), essential=True),
        Step("b", "", say("made")),
        Step("c", "", say("cleaned"), cleans_up=True),
    )
    assert [ok for _, _, ok in found] == [False, False, True]
    assert "not tried" in found[1][1]


def test_whoever_stops_watching_still_has_everything_cleaned_up() -> None:
    made: list[str] = []

    def note(text: str) -> Callable[[], str]:
        def act() -> str:
            made.append(text)
            return text

        return act

    steps = [
        Step("a", "", note("a")),
        Step("b", "", note("b")),
        Step("c", "", note("c"), cleans_up=True),
        Step("d", "", note("d"), cleans_up=True),
    ]
    with closing(walk(steps, ManualClock())) as walked:
        next(walked)
    assert made == ["a", "c", "d"]


def test_a_refusal_that_was_waited_for_is_what_came() -> None:
    refusal = CommandFailed("gone", code="device_not_found", status=404)
    assert expect_refusal("device_not_found", fail(refusal)) == "404 device_not_found"


def test_another_refusal_or_none_is_a_failure() -> None:
    with pytest.raises(CommandFailed):
        expect_refusal("device_not_found", fail(CommandFailed("no", code="forbidden", status=403)))
    with pytest.raises(Unexpected):
        expect_refusal("device_not_found", say("fine"))


def test_what_differs_is_told_with_both_values() -> None:
    expect(1, 1, "count")
    with pytest.raises(Unexpected, match="count: 1, not 2"):
        expect(1, 2, "count")
