"""Passwords: which are taken, how they are kept, how many wrong ones are listened to."""

from __future__ import annotations

import asyncio
import os
import threading
import time

import bcrypt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.clock import ManualClock

from crossdock.hooks.rules.passwords import (
    COST,
    FAILURES_MAX,
    FAILURES_SECONDS,
    GuessLimit,
    check_password,
    hash_password,
    is_password,
    nobodys_hash,
    stretched,
)
from crossdock.hooks.service.passwords import AT_ONCE, WAITING_MAX, PasswordHasher
from crossdock.http.idempotency import IdempotentRequest
from crossdock.kit.errors import InvalidInput, TooManyRequests, Unavailable

QUICK = 4


@pytest.mark.parametrize("password", ["x" * 8, "x" * 72, "ä" * 4, "ä" * 36, "🐎🐎"])
def test_a_password_of_8_to_72_bytes_is_one(password: str) -> None:
    check_password(password)


@pytest.mark.parametrize("password", ["", "x" * 7, "x" * 73, "ä" * 37, "🐎"])
def test_any_other_is_refused_and_not_repeated(password: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_password(password)
    assert [(each.field, each.code) for each in refused.value.fields] == [("password", "wrong_length")]
    assert not password or password not in str(refused.value)


@settings(max_examples=30, deadline=None)
@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=18))
def test_a_hash_is_bcrypts_and_fits_its_password_only(password: str) -> None:
    stored = hash_password(password, QUICK, os.urandom)
    assert bcrypt.checkpw(password.encode(), stored.encode())
    assert is_password(password, stored)
    assert not is_password(password + "x", stored)
    assert not is_password(password[:-1], stored)


def test_hashes_have_the_cost_that_was_asked_for_and_are_never_the_same() -> None:
    assert COST == 12
    first, second = (hash_password("password", 5, os.urandom) for _ in range(2))
    assert first.startswith("$2b$05$")
    assert first != second


def test_what_bcrypt_would_cut_off_counts() -> None:
    stored = hash_password("x" * 72, QUICK, os.urandom)
    assert is_password("x" * 72, stored)
    assert not is_password("x" * 73, stored)
    assert not is_password("x" * 1000, stored)


@settings(max_examples=30, deadline=None)
@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=100))
def test_nobodys_hash_fits_nothing_and_costs_the_same(password: str) -> None:
    assert nobodys_hash(QUICK).startswith("$2b$04$")
    assert not is_password(password, nobodys_hash(QUICK))


def test_a_stretched_digest_is_always_the_same_and_depends_on_text_and_salt() -> None:
    digest = stretched("a" * 64, QUICK, "scope")
    assert digest == stretched("a" * 64, QUICK, "scope")
    assert digest.startswith("$2b$04$")
    others = {stretched("a" * 63 + "b", QUICK, "scope"), stretched("a" * 64, QUICK, "other")}
    assert len({digest, *others}) == 3


# --- guesses ---------------------------------------------------------------------------------------


def test_the_eleventh_guess_in_15_minutes_is_refused_until_the_first_is_that_old(clock: ManualClock) -> None:
    limit = GuessLimit(clock)
    for _ in range(FAILURES_MAX):
        limit.begin("a")
        clock.advance(seconds=1)
    with pytest.raises(TooManyRequests) as refused:
        limit.begin("a")
    assert refused.value.retry_after_seconds == FAILURES_SECONDS - FAILURES_MAX
    limit.begin("b")
    clock.advance(seconds=FAILURES_SECONDS - FAILURES_MAX)
    limit.begin("a")
    with pytest.raises(TooManyRequests):
        limit.begin("a")


def test_a_refused_guess_makes_the_wait_no_longer(clock: ManualClock) -> None:
    limit = GuessLimit(clock)
    for _ in range(FAILURES_MAX):
        limit.begin("a")
    for _ in range(3):
        clock.advance(seconds=100)
        with pytest.raises(TooManyRequests):
            limit.begin("a")
    clock.advance(seconds=FAILURES_SECONDS - 300)
    limit.begin("a")


def test_a_withdrawn_guess_is_none(clock: ManualClock) -> None:
    limit = GuessLimit(clock)
    for _ in range(3 * FAILURES_MAX):
        limit.withdraw("a", limit.begin("a"))
    marks = [limit.begin("a") for _ in range(FAILURES_MAX)]
    limit.withdraw("a", marks[0])
    limit.withdraw("b", marks[1])
    limit.begin("a")
    with pytest.raises(TooManyRequests):
        limit.begin("a")


def test_so_many_addresses_are_watched_and_no_more(clock: ManualClock) -> None:
    limit = GuessLimit(clock, capacity=3)
    for _ in range(FAILURES_MAX):
        for email in "abc":
            limit.begin(email)
    limit.begin("d")  # the one guessed at the longest ago is forgotten
    limit.begin("a")
    with pytest.raises(TooManyRequests):
        limit.begin("c")


# --- beside the event loop -------------------------------------------------------------------------


class Gate:
    """Randomness that is not there yet: whoever makes a salt waits in its thread."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.waiting = threading.Semaphore(0)

    def random(self, count: int) -> bytes:
        self.waiting.release()
        assert self.opened.wait(10)
        return os.urandom(count)


async def test_two_hash_at_once_some_wait_and_more_are_told_to_come_back() -> None:
    gate = Gate()
    hasher = PasswordHasher(gate.random, QUICK)
    tasks = [asyncio.create_task(hasher.hash("password")) for _ in range(AT_ONCE + WAITING_MAX)]
    for _ in range(AT_ONCE):
        await asyncio.to_thread(gate.waiting.acquire)
    assert not gate.waiting.acquire(blocking=False)
    with pytest.raises(Unavailable) as refused:
        await hasher.hash("password")
    assert (refused.value.code, refused.value.retry_after_seconds) == ("logins_busy", 1)
    gate.opened.set()
    assert len(set(await asyncio.gather(*tasks))) == AT_ONCE + WAITING_MAX
    assert await hasher.matches("password", await hasher.hash("password"))


async def test_a_caller_that_gives_up_frees_no_processor_that_is_still_at_work() -> None:
    gate = Gate()
    hasher = PasswordHasher(gate.random, QUICK)
    tasks = [asyncio.create_task(hasher.hash("password")) for _ in range(AT_ONCE)]
    for _ in range(AT_ONCE):
        await asyncio.to_thread(gate.waiting.acquire)
    for task in tasks:
        task.cancel()
    assert [type(each) for each in await asyncio.gather(*tasks, return_exceptions=True)] == [
        asyncio.CancelledError
    ] * AT_ONCE
    another = asyncio.create_task(hasher.hash("password"))
    assert not await asyncio.to_thread(gate.waiting.acquire, timeout=0.1)
    gate.opened.set()
    assert (await another).startswith("$2b$")


async def test_without_a_stored_hash_no_password_matches() -> None:
    hasher = PasswordHasher(os.urandom, QUICK)
    assert not await hasher.matches("password", None)
    assert await hasher.matches("password", hash_password("password", QUICK, os.urandom))


async def test_it_takes_as_long_to_say_no_without_a_hash_as_with_one() -> None:
    hasher = PasswordHasher(os.urandom, 9)
    stored = await hasher.hash("password")

    async def seconds(password_hash: str | None) -> float:
        """The shortest of some: whatever else the machine does only makes it longer."""
        found = []
        for _ in range(5):
            began = time.perf_counter()
            assert not await hasher.matches("wrong", password_hash)
            found.append(time.perf_counter() - began)
        return min(found)

    # A step of the cost is a factor of two, so anything near is the same cost.
    assert 0.6 < await seconds(None) / await seconds(stored) < 1.7


async def test_a_request_with_a_password_is_told_apart_by_a_slow_digest() -> None:
    hasher = PasswordHasher(os.urandom, QUICK)
    request = IdempotentRequest("scope", "a" * 64)
    guarded = await hasher.guarded(request)
    assert guarded is not None
    assert guarded.scope == "scope"
    assert guarded.request_sha256.startswith("$2b$04$")
    assert await hasher.guarded(request) == guarded
    assert await hasher.guarded(None) is None
