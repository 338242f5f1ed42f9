from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.clock import ManualClock

from crossdock.delivery.limits import RateLimit, RateLimiter, Slots, parse_rate_limit
from crossdock.kit.errors import InvalidInput

# --- settings ----------------------------------------------------------------------------------------


def test_no_limit_is_no_limit() -> None:
    assert parse_rate_limit(None) is None


@pytest.mark.parametrize(("requests", "per_seconds"), [(1, 1), (1_000_000, 86_400), (5, 1.5)])
def test_a_limit_is_read(requests: int, per_seconds: float) -> None:
    raw = {"requests": requests, "per_seconds": per_seconds}
    assert parse_rate_limit(raw) == RateLimit(requests, per_seconds)


@pytest.mark.parametrize(
    ("raw", "place", "code"),
    [
        (5, "rate_limit", "wrong_type"),
        ({}, "rate_limit.requests", "required"),
        ({"requests": 5}, "rate_limit.per_seconds", "required"),
        ({"requests": 0, "per_seconds": 1}, "rate_limit.requests", "out_of_range"),
        ({"requests": 1.5, "per_seconds": 1}, "rate_limit.requests", "wrong_type"),
        ({"requests": "5", "per_seconds": 1}, "rate_limit.requests", "wrong_type"),
        ({"requests": True, "per_seconds": 1}, "rate_limit.requests", "wrong_type"),
        ({"requests": 1_000_001, "per_seconds": 1}, "rate_limit.requests", "out_of_range"),
        ({"requests": 1, "per_seconds": 0.5}, "rate_limit.per_seconds", "out_of_range"),
        ({"requests": 1, "per_seconds": 86_401}, "rate_limit.per_seconds", "out_of_range"),
        ({"requests": 1, "per_seconds": math.nan}, "rate_limit.per_seconds", "out_of_range"),
        ({"requests": 1, "per_seconds": 1, "burst": 2}, "rate_limit.burst", "unknown_field"),
    ],
)
def test_a_limit_that_is_wrong_is_refused_naming_the_place(raw: object, place: str, code: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_rate_limit(raw)
    assert [(problem.field, problem.code) for problem in caught.value.fields] == [(place, code)]


# --- rate --------------------------------------------------------------------------------------------

THREE_A_MINUTE = RateLimit(3, 60)


def test_all_of_a_limit_may_begin_together_and_no_more(clock: ManualClock) -> None:
    limiter: RateLimiter[str] = RateLimiter(clock)
    assert [limiter.try_acquire("a", THREE_A_MINUTE) for _ in range(5)] == [True] * 3 + [False] * 2


def test_there_is_room_again_when_the_first_ones_have_left_the_period(clock: ManualClock) -> None:
    limiter: RateLimiter[str] = RateLimiter(clock)
    for _ in range(3):
        assert limiter.try_acquire("a", THREE_A_MINUTE)
        clock.advance(seconds=10)
    clock.advance(ms=29_999)
    assert not limiter.try_acquire("a", THREE_A_MINUTE)
    clock.advance(ms=1)
    assert limiter.try_acquire("a", THREE_A_MINUTE)
    assert not limiter.try_acquire("a", THREE_A_MINUTE)


def test_a_burst_counts_until_the_last_of_it_has_left_the_period(clock: ManualClock) -> None:
    limiter: RateLimiter[str] = RateLimiter(clock)
    for _ in range(3):
        assert limiter.try_acquire("a", THREE_A_MINUTE)
        clock.advance(ms=500)
    clock.advance(ms=59_499)
    assert [limiter.try_acquire("a", THREE_A_MINUTE) for _ in range(2)] == [False, False]
    clock.advance(ms=1)
    assert [limiter.try_acquire("a", THREE_A_MINUTE) for _ in range(4)] == [True] * 3 + [False]


def test_keys_do_not_share_a_limit(clock: ManualClock) -> None:
    limiter: RateLimiter[str] = RateLimiter(clock)
    for _ in range(3):
        limiter.try_acquire("a", THREE_A_MINUTE)
    assert limiter.try_acquire("b", THREE_A_MINUTE)


def test_a_limit_that_changes_counts_what_began_before(clock: ManualClock) -> None:
    limiter: RateLimiter[str] = RateLimiter(clock)
    for _ in range(3):
        limiter.try_acquire("a", THREE_A_MINUTE)
    assert limiter.try_acquire("a", RateLimit(4, 60))
    assert not limiter.try_acquire("a", RateLimit(2, 60))


def test_a_wall_clock_that_jumps_changes_nothing(clock: ManualClock) -> None:
    limiter: RateLimiter[str] = RateLimiter(clock)
    for _ in range(3):
        limiter.try_acquire("a", THREE_A_MINUTE)
    clock.set_wall_clock(clock.now_ms() + 3_600_000)
    assert not limiter.try_acquire("a", THREE_A_MINUTE)


def test_an_unknown_key_and_one_with_room_are_ready_now(clock: ManualClock) -> None:
    limiter: RateLimiter[str] = RateLimiter(clock)
    assert limiter.ready_at_ms("a", THREE_A_MINUTE) == clock.now_ms()
    limiter.try_acquire("a", THREE_A_MINUTE)
    assert limiter.ready_at_ms("a", THREE_A_MINUTE) == clock.now_ms()


def test_a_limit_lowered_waits_until_enough_have_left(clock: ManualClock) -> None:
    limiter: RateLimiter[str] = RateLimiter(clock)
    for _ in range(3):
        limiter.try_acquire("a", THREE_A_MINUTE)
        clock.advance(seconds=10)
    assert limiter.ready_at_ms("a", RateLimit(1, 60)) == clock.now_ms() + 50_000


LIMITS = st.builds(
    RateLimit, st.integers(1, 9) | st.integers(10, 60), st.sampled_from([1.0, 7.5, 60.0, 3600.0])
)
STEPS_MS = st.lists(st.sampled_from([0, 0, 0, 1, 7, 49, 50, 51, 333, 1000, 60_000]), max_size=300)


@given(LIMITS, STEPS_MS)
def test_never_more_than_the_limit_begin_within_any_period(limit: RateLimit, steps_ms: list[int]) -> None:
    clock = ManualClock()
    limiter: RateLimiter[str] = RateLimiter(clock)
    began_ms: list[int] = []
    for step_ms in steps_ms:
        clock.advance(ms=step_ms)
        if limiter.try_acquire("a", limit):
            began_ms.append(clock.now_ms())
    for position in range(len(began_ms) - limit.requests):
        apart_ms = began_ms[position + limit.requests] - began_ms[position]
        assert apart_ms >= limit.per_seconds * 1000 - 0.001


@given(LIMITS, STEPS_MS)
def test_a_key_is_ready_when_it_was_said_to_be_and_not_before(limit: RateLimit, steps_ms: list[int]) -> None:
    clock = ManualClock()
    limiter: RateLimiter[str] = RateLimiter(clock)
    for step_ms in steps_ms:
        clock.advance(ms=step_ms)
        ready_at_ms = limiter.ready_at_ms("a", limit)
        wait_ms = ready_at_ms - clock.now_ms()
        assert 0 <= wait_ms <= limit.per_seconds * 1000 + 1
        if limiter.try_acquire("a", limit):
            assert wait_ms == 0
        else:
            assert wait_ms > 0
            clock.advance(ms=wait_ms)
            assert limiter.try_acquire("a", limit)


@pytest.mark.parametrize(("requests", "per_seconds"), [(10, 1), (100, 60), (1000, 60), (5000, 3600)])
def test_steady_work_gets_nearly_all_of_its_limit(requests: int, per_seconds: int) -> None:
    clock = ManualClock()
    limiter: RateLimiter[str] = RateLimiter(clock)
    limit = RateLimit(requests, per_seconds)
    began, step_ms = 0, per_seconds * 1000 // requests // 2
    for _ in range(20 * requests):  # ten periods, asked twice as often as allowed
        clock.advance(ms=step_ms)
        began += limiter.try_acquire("a", limit)
    assert 0.94 * 10 * requests <= began <= 10.5 * requests


def test_what_is_idle_is_forgotten(clock: ManualClock) -> None:
    limiter: RateLimiter[int] = RateLimiter(clock)
    for key in range(100_000):
        limiter.try_acquire(key, RateLimit(1, 1))
        clock.advance(ms=1)
    assert len(limiter) <= 3000


def test_what_is_not_idle_is_kept_however_many_there_are(clock: ManualClock) -> None:
    limiter: RateLimiter[int] = RateLimiter(clock)
    limit = RateLimit(1, 60)
    assert all(limiter.try_acquire(key, limit) for key in range(10_000))
    assert not any(limiter.try_acquire(key, limit) for key in range(10_000))


# --- slots -------------------------------------------------------------------------------------------


def test_a_key_gets_its_share_and_no_more() -> None:
    slots: Slots[str] = Slots(total_max=10, key_max=4)
    assert [slots.try_acquire("a") for _ in range(5)] == [True] * 4 + [False]
    assert slots.try_acquire("b")


def test_all_keys_together_get_no_more_than_there_are() -> None:
    slots: Slots[int] = Slots(total_max=5, key_max=4)
    assert sum(slots.try_acquire(key) for key in range(10)) == 5


@pytest.mark.parametrize(("own_max", "got"), [(1, 1), (2, 2), (9, 4), (0, 0)])
def test_a_key_may_have_a_lower_limit_of_its_own(own_max: int, got: int) -> None:
    slots: Slots[str] = Slots(total_max=10, key_max=4)
    assert sum(slots.try_acquire("a", own_max) for _ in range(10)) == got


def test_a_slot_given_back_is_there_for_the_next() -> None:
    slots: Slots[str] = Slots(total_max=1, key_max=1)
    assert slots.try_acquire("a")
    assert not slots.try_acquire("b")
    slots.release("a")
    assert slots.try_acquire("b")


def test_more_is_never_given_back_than_was_taken() -> None:
    slots: Slots[str] = Slots(total_max=2, key_max=2)
    slots.try_acquire("a")
    slots.release("a")
    with pytest.raises(ValueError, match="no slot"):
        slots.release("a")
    assert slots.total == 0


@pytest.mark.parametrize(("total_max", "key_max"), [(0, 0), (1, 0), (1, 2)])
def test_limits_that_make_no_sense_are_refused(total_max: int, key_max: int) -> None:
    with pytest.raises(ValueError, match="slot"):
        Slots(total_max, key_max)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=100))
def test_the_counts_always_agree(steps: list[tuple[str, bool]]) -> None:
    slots: Slots[str] = Slots(total_max=5, key_max=3)
    held: list[str] = []
    for key, takes in steps:
        if takes and slots.try_acquire(key):
            held.append(key)
        elif not takes and key in held:
            slots.release(key)
            held.remove(key)
        assert slots.total == len(held) <= 5
        assert all(slots.taken(each) == held.count(each) <= 3 for each in "abc")
