from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.delivery.decide import decide
from crossdock.delivery.model import (
    INTERRUPTED,
    CallResult,
    Decision,
    GaveUp,
    GaveUpReason,
    RetryAt,
    Succeeded,
)
from crossdock.delivery.schedule import RetryPolicy

NOW_MS = 1_735_732_800_000
POLICY = RetryPolicy((0, 10, 100))
DRAWN = st.floats(0, 1, exclude_max=True)

TIMED_OUT = CallResult(0, "", 30_000, "timeout: example.org did not answer in time.")
OWN = CallResult(0, "", 1, "own_network_failed: No connection to example.org.", own_fault=True)


def answered(status: int, retry_after_seconds: float | None = None) -> CallResult:
    return CallResult(status, "", 12, retry_after_seconds=retry_after_seconds)


def decided(
    result: CallResult, attempt: int = 1, *, drawn: float = 0, left_ms: int | None = None
) -> Decision:
    not_after_ms = None if left_ms is None else NOW_MS + left_ms
    return decide(result, attempt, POLICY, NOW_MS, lambda: drawn, not_after_ms=not_after_ms)


def retry(seconds: float, *, charged: bool = True) -> RetryAt:
    return RetryAt(NOW_MS + round(seconds * 1000), charged)


EXHAUSTED = GaveUp(GaveUpReason.ATTEMPTS_EXHAUSTED)
RETENTION = GaveUp(GaveUpReason.RETENTION)
GONE = GaveUp(GaveUpReason.GONE, pauses_destination=True)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 206, 299])
@pytest.mark.parametrize("attempt", [1, 3])
def test_every_2xx_succeeds(status: int, attempt: int) -> None:
    assert decided(answered(status), attempt, left_ms=-1) == Succeeded()


@pytest.mark.parametrize(
    "status", [0, 100, 199, 300, 301, 302, 304, 307, 308, 400, 401, 403, 404, 408, 409, 411]
)
@pytest.mark.parametrize(
    ("attempt", "decision"), [(1, retry(10)), (2, retry(100)), (3, EXHAUSTED), (4, EXHAUSTED)]
)
def test_every_other_answer_is_tried_again_until_the_attempts_are_used_up(
    status: int, attempt: int, decision: Decision
) -> None:
    assert decided(answered(status), attempt) == decision


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 599])
def test_a_server_in_trouble_is_tried_again(status: int) -> None:
    assert decided(answered(status)) == retry(10)


@pytest.mark.parametrize(("attempt", "decision"), [(1, retry(10)), (2, retry(100)), (3, EXHAUSTED)])
def test_a_call_without_an_answer_uses_up_an_attempt(attempt: int, decision: Decision) -> None:
    assert decided(TIMED_OUT, attempt) == decision


def test_a_success_that_broke_off_is_none() -> None:
    assert decided(CallResult(200, "", 1, "connection_lost: It hung up.")) == retry(10)


@pytest.mark.parametrize("attempt", [1, 2, 3])
@pytest.mark.parametrize("left_ms", [None, -1])
def test_410_gives_up_and_pauses_the_destination(attempt: int, left_ms: int | None) -> None:
    assert decided(answered(410), attempt, left_ms=left_ms) == GONE


@pytest.mark.parametrize("result", [OWN, INTERRUPTED])
@pytest.mark.parametrize("attempt", [1, 2, 3, 9])
@pytest.mark.parametrize(("drawn", "seconds"), [(0, 5), (0.5, 7.5)])
def test_our_own_fault_uses_up_no_attempt(
    result: CallResult, attempt: int, drawn: float, seconds: float
) -> None:
    assert decided(result, attempt, drawn=drawn) == retry(seconds, charged=False)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("asked_seconds", "drawn", "seconds"),
    [
        (0, 0, 10),
        (9, 0, 10),
        (15, 0, 15),
        (20, 0, 20),
        (21, 0, 20),
        (10**9, 0, 20),
        (0, 0.5, 10.5),
        (15, 0.5, 15.5),
        (20, 0.5, 20),
    ],
)
def test_retry_after_is_honoured_from_the_wait_of_the_policy_to_twice_that(
    status: int, asked_seconds: float, drawn: float, seconds: float
) -> None:
    assert decided(answered(status, asked_seconds), drawn=drawn) == retry(seconds)


@pytest.mark.parametrize("status", [302, 400, 404, 500])
def test_retry_after_means_nothing_beside_another_status(status: int) -> None:
    assert decided(answered(status, 15)) == retry(10)


def test_retry_after_gives_no_attempt_beyond_the_last() -> None:
    assert decided(answered(429, 15), 3) == EXHAUSTED


@pytest.mark.parametrize(
    ("result", "attempt", "left_ms", "decision"),
    [
        (TIMED_OUT, 1, 10_000, retry(10)),
        (TIMED_OUT, 1, 9_999, RETENTION),
        (TIMED_OUT, 1, -1, RETENTION),
        (TIMED_OUT, 3, -1, EXHAUSTED),
        (answered(503, 15), 1, 14_999, RETENTION),
        (OWN, 1, 5_000, retry(5, charged=False)),
        (OWN, 1, 4_999, RETENTION),
    ],
)
def test_nothing_is_planned_for_after_the_retention(
    result: CallResult, attempt: int, left_ms: int, decision: Decision
) -> None:
    assert decided(result, attempt, left_ms=left_ms) == decision


def test_jitter_counts_towards_the_retention() -> None:
    assert decided(TIMED_OUT, drawn=0.5, left_ms=10_499) == RETENTION


RESULTS = st.builds(
    CallResult,
    st.integers(0, 599),
    st.just(""),
    st.just(1),
    st.sampled_from([None, "timeout: It hangs."]),
    st.booleans(),
    st.none() | st.floats(0, 10**9),
)
POLICIES = st.builds(RetryPolicy, st.lists(st.floats(0, 86_400), min_size=1, max_size=8).map(tuple))


@given(RESULTS, POLICIES, st.integers(1, 10), DRAWN, st.none() | st.integers(-1000, 10**8))
def test_a_planned_attempt_is_never_early_never_beyond_twice_the_wait_and_never_too_late(
    result: CallResult, policy: RetryPolicy, attempt: int, drawn: float, left_ms: int | None
) -> None:
    not_after_ms = None if left_ms is None else NOW_MS + left_ms
    decision = decide(result, attempt, policy, NOW_MS, lambda: drawn, not_after_ms=not_after_ms)
    if isinstance(decision, RetryAt):
        assert decision.charged != result.own_fault
        base = 5 if result.own_fault else policy.base_delay_seconds(attempt + 1)
        assert base * 1000 <= decision.at_ms - NOW_MS <= 2 * base * 1000 + 1
        assert not_after_ms is None or decision.at_ms <= not_after_ms


@given(POLICIES, DRAWN)
def test_a_destination_that_always_fails_is_called_as_often_as_the_policy_says(
    policy: RetryPolicy, drawn: float
) -> None:
    now_ms, attempt = NOW_MS, 1
    while True:
        decision = decide(answered(500), attempt, policy, now_ms, lambda: drawn, not_after_ms=None)
        if not isinstance(decision, RetryAt):
            break
        now_ms, attempt = decision.at_ms, attempt + 1
    assert (decision, attempt) == (EXHAUSTED, policy.attempts_max)
