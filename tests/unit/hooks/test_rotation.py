from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.hooks.model import HeldSecret
from crossdock.hooks.service.rotation import PREVIOUS_MAX, ends_of_previous, rotated

NOW_MS = 1_735_732_800_000


def test_the_one_that_is_replaced_stays_good_for_the_grace() -> None:
    secrets = rotated((HeldSecret("old"),), HeldSecret("new"), 60, NOW_MS)
    assert secrets == (HeldSecret("new"), HeldSecret("old", NOW_MS + 60_000))


def test_without_grace_it_ends_at_once() -> None:
    assert rotated((HeldSecret("old"),), HeldSecret("new"), 0, NOW_MS) == (HeldSecret("new"),)


def test_the_first_secret_replaces_none() -> None:
    assert rotated((), HeldSecret("new"), 60, NOW_MS) == (HeldSecret("new"),)


@pytest.mark.parametrize(("until_ms", "stays"), [(NOW_MS - 1, False), (NOW_MS, False), (NOW_MS + 1, True)])
def test_earlier_ones_stay_until_their_own_time(until_ms: int, stays: bool) -> None:
    earlier = HeldSecret("earlier", until_ms)
    secrets = rotated((HeldSecret("old"), earlier), HeldSecret("new"), 60, NOW_MS)
    assert (earlier in secrets) is stays


@given(st.lists(st.integers(0, 604_800), max_size=20))
def test_however_often_it_is_done_five_earlier_ones_are_kept_newest_first(graces: list[int]) -> None:
    secrets: tuple[HeldSecret, ...] = ()
    for number, grace_seconds in enumerate(graces):
        secrets = rotated(secrets, HeldSecret(str(number)), grace_seconds, NOW_MS)
    assert len(secrets) <= 1 + PREVIOUS_MAX
    numbers = [int(held.sealed) for held in secrets]
    assert numbers == sorted(numbers, reverse=True)
    good = [number for number, grace_seconds in enumerate(graces[1:]) if grace_seconds]
    assert numbers[1:] == good[::-1][:PREVIOUS_MAX]


def test_the_ends_are_told_of_those_that_are_still_good() -> None:
    secrets = (HeldSecret("now"), HeldSecret("a", NOW_MS + 60_000), HeldSecret("b", NOW_MS))
    assert ends_of_previous(secrets, NOW_MS) == ["2025-01-01T12:01:00Z"]
