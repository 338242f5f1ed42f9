from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.delivery.breaker import (
    HEALTHY,
    Allowed,
    BreakerPolicy,
    BreakerState,
    NotBefore,
    Phase,
    after,
    allow,
    gives_up,
    phase,
)

NOW_MS = 1_735_732_800_000
DAY_MS = 86_400_000
PROBE_MS = 90_000


def failing(times: int, state: BreakerState = HEALTHY, at_ms: int = NOW_MS) -> BreakerState:
    for _ in range(times):
        state = after(state, False, at_ms, lambda: 0)
    return state


def claimed(state: BreakerState, now_ms: int) -> BreakerState:
    """The state with a probe on its way."""
    permission = allow(state, now_ms)
    assert isinstance(permission, Allowed)
    assert permission.claim is not None
    return permission.claim


def test_a_healthy_destination_is_called_without_a_write() -> None:
    assert allow(HEALTHY, NOW_MS) == Allowed(claim=None)
    assert after(HEALTHY, True, NOW_MS, lambda: 0) is HEALTHY


def test_a_state_with_nothing_to_forget_is_given_back_as_it_is() -> None:
    stored = msgspec.json.decode(msgspec.json.encode(HEALTHY), type=BreakerState)
    assert after(stored, True, NOW_MS, lambda: 0) is stored
    assert msgspec.json.encode(HEALTHY) == b"{}"


@pytest.mark.parametrize("failures", range(1, 10))
def test_nine_failures_in_a_row_leave_it_closed(failures: int) -> None:
    state = failing(failures)
    assert state.consecutive_failures == failures
    assert phase(state, NOW_MS) is Phase.CLOSED
    assert allow(state, NOW_MS) == Allowed(claim=None)


def test_the_tenth_failure_in_a_row_opens_it() -> None:
    state = failing(10)
    assert phase(state, NOW_MS) is Phase.OPEN
    assert allow(state, NOW_MS) == NotBefore(NOW_MS + 30_000)
    assert allow(state, NOW_MS + 29_999) == NotBefore(NOW_MS + 30_000)
    assert state.opened_at_ms == NOW_MS


def test_a_success_in_between_starts_the_count_anew() -> None:
    state = after(failing(9), True, NOW_MS, lambda: 0)
    assert state == HEALTHY
    assert phase(failing(9, state), NOW_MS) is Phase.CLOSED


def test_the_pause_over_one_probe_goes_and_nothing_else() -> None:
    state, now_ms = failing(10), NOW_MS + 30_000
    assert phase(state, now_ms) is Phase.HALF_OPEN
    probing = claimed(state, now_ms)
    assert allow(probing, now_ms) == NotBefore(now_ms + PROBE_MS)
    assert allow(probing, now_ms + PROBE_MS - 1) == NotBefore(now_ms + PROBE_MS)


def test_a_probe_that_succeeds_closes_it() -> None:
    probing = claimed(failing(10), NOW_MS + 30_000)
    assert after(probing, True, NOW_MS + 31_000, lambda: 0) == HEALTHY


def test_a_probe_that_is_lost_makes_room_for_another() -> None:
    probing = claimed(failing(10), NOW_MS + 30_000)
    assert claimed(probing, NOW_MS + 30_000 + PROBE_MS).probing_until_ms == NOW_MS + 30_000 + 2 * PROBE_MS


def test_each_failed_probe_doubles_the_pause_up_to_ten_minutes() -> None:
    state, pauses_ms = failing(10), []
    for _ in range(8):
        assert state.open_until_ms is not None
        assert state.opened_at_ms is not None
        pauses_ms.append(state.open_until_ms - state.opened_at_ms)
        began_ms = state.open_until_ms
        state = after(claimed(state, began_ms), False, began_ms + 500, lambda: 0)
    assert [ms // 1000 for ms in pauses_ms] == [30, 60, 120, 240, 480, 600, 600, 600]


def test_after_a_success_pauses_begin_short_again() -> None:
    state = failing(1, failing(10), NOW_MS + 30_000)
    recovered = after(state, True, NOW_MS + 40_000, lambda: 0)
    assert allow(failing(10, recovered, NOW_MS + 50_000), NOW_MS + 50_000) == NotBefore(NOW_MS + 80_000)


def test_jitter_only_lengthens_a_pause_by_a_tenth_at_most() -> None:
    state = after(failing(9), False, NOW_MS, lambda: 0.999_999)
    assert state.open_until_ms == NOW_MS + 33_000


def test_late_results_of_calls_begun_before_neither_prolong_nor_shorten_the_pause() -> None:
    state = failing(10)
    assert failing(50, state, NOW_MS + 29_999) is state


def test_a_late_success_closes_it() -> None:
    assert after(failing(10), True, NOW_MS + 1, lambda: 0) == HEALTHY


def test_a_policy_of_ones_own_is_followed() -> None:
    policy = BreakerPolicy(failures_max=2, probe_ms=1000)
    state = after(HEALTHY, False, NOW_MS, lambda: 0, policy)
    state = after(state, False, NOW_MS, lambda: 0, policy)
    permission = allow(state, NOW_MS + 30_000, policy)
    assert isinstance(permission, Allowed)
    assert permission.claim is not None
    assert permission.claim.probing_until_ms == NOW_MS + 31_000


# --- giving up ---------------------------------------------------------------------------------------


def failing_every(hours: float, days: float) -> tuple[BreakerState, int]:
    """The state after failures at that pace, and when the last was."""
    state, at_ms = HEALTHY, NOW_MS
    while at_ms <= NOW_MS + days * DAY_MS:
        state, last_ms = after(state, False, at_ms, lambda: 0), at_ms
        at_ms += round(hours * 3_600_000)
    return state, last_ms


@pytest.mark.parametrize(
    ("hours", "days", "expected"),
    [
        (1, 4.9, False),
        (1, 5, True),
        (10, 4.9, False),
        (10, 5.2, True),
        (24, 9, True),
        (49, 60, False),  # nothing was sent for two days each time
    ],
)
def test_it_gives_up_after_five_days_of_nothing_but_failures(
    hours: float, days: float, expected: bool
) -> None:
    state, last_ms = failing_every(hours, days)
    assert gives_up(state, last_ms) is expected


def test_one_success_starts_the_five_days_anew() -> None:
    state, last_ms = failing_every(1, 4.5)
    state = after(state, True, last_ms, lambda: 0)
    assert not gives_up(failing(20, state, last_ms + 1), last_ms + DAY_MS)


def test_a_few_failures_give_nothing_up_however_long_ago() -> None:
    assert not gives_up(failing(9), NOW_MS + 400 * DAY_MS)


def test_a_healthy_destination_is_never_given_up() -> None:
    assert not gives_up(HEALTHY, NOW_MS)


# --- whatever happens --------------------------------------------------------------------------------

STEPS = st.lists(
    st.tuples(st.integers(0, 2_000_000), st.sampled_from(["fails", "fails", "fails", "succeeds", "asks"])),
    max_size=80,
)
DRAWN = st.floats(0, 1, exclude_max=True)


@given(STEPS, DRAWN)
def test_until_a_success_its_pauses_only_move_forward_and_probes_go_one_at_a_time(
    steps: list[tuple[int, str]], drawn: float
) -> None:
    state, now_ms, lost_at_ms = HEALTHY, NOW_MS, 0
    for wait_ms, step in steps:
        now_ms += wait_ms
        before = state
        if step == "asks":
            permission = allow(state, now_ms)
            if isinstance(permission, NotBefore):
                assert now_ms < permission.at_ms <= now_ms + 660_000
            elif permission.claim is not None:
                assert phase(state, now_ms) is Phase.HALF_OPEN
                assert now_ms >= lost_at_ms
                state, lost_at_ms = permission.claim, now_ms + PROBE_MS
            else:
                assert phase(state, now_ms) is Phase.CLOSED
        elif step == "succeeds":
            state, lost_at_ms = after(state, True, now_ms, lambda: drawn), 0
            assert state == HEALTHY
        else:
            state = after(state, False, now_ms, lambda: drawn)
            assert state.consecutive_failures >= before.consecutive_failures
            assert (state.open_until_ms or 0) >= (before.open_until_ms or 0)
            lost_at_ms = state.probing_until_ms or 0
        assert msgspec.json.decode(msgspec.json.encode(state), type=BreakerState) == state


@given(st.integers(1, 5000), DRAWN)
def test_a_dead_destination_is_called_less_than_once_a_minute_in_the_long_run(
    wait_ms: int, drawn: float
) -> None:
    """Whoever asks as often as they like gets ten calls, then a probe per pause."""
    state, now_ms, calls = HEALTHY, NOW_MS, 0
    for _ in range(300):
        permission = allow(state, now_ms)
        if isinstance(permission, NotBefore):
            now_ms = permission.at_ms
            continue
        state = permission.claim or state
        now_ms, calls = now_ms + wait_ms, calls + 1
        state = after(state, False, now_ms, lambda: drawn)
    assert calls - 10 <= (now_ms - NOW_MS) / 60_000
