"""The Items suite fails on a backend with a fault: each planted one is caught by a test that is named here.

The named tests pass on the honest backends (the suite itself says so); here they must fail on their fault.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial

import pytest
from tests.contract.items import (
    backends,
    test_concurrency,
    test_conditions,
    test_expiry,
    test_get,
    test_indexes,
    test_limits,
    test_many_transactions,
    test_on_expired,
    test_paging,
    test_put_and_delete,
    test_query,
    test_tallies,
    test_transact,
    test_update,
    test_values,
)
from tests.contract.items.harness import Harness, ShiftedClock
from tests.contract.items.tables import Tables
from tests.support import planted, planted_tallies
from tests.support.dynamodb_local import DynamoDBLocal, EngineMissing
from tests.support.engines import missing_engine
from tests.support.passing_on import PassingOn
from tests.support.postgres import TestPostgres

from crossdock.engines.items.port import ExpiryHandler, Items, SortBetween, Table

Suite = Callable[[Harness], Awaitable[None]]
Fault = Callable[[Items], Items]
TellingFault = Callable[[Items, ExpiryHandler], ExpiryHandler]


def tells_honestly(items: Items, handler: ExpiryHandler) -> ExpiryHandler:
    return handler


class FaultyHarness:
    """An honest harness with a fault in everything that comes out of it."""

    def __init__(
        self, honest: Harness, fault: Fault = PassingOn, telling_fault: TellingFault = tells_honestly
    ) -> None:
        self._honest = honest
        self._fault = fault
        self._telling_fault = telling_fault
        self.name = honest.name
        self.items = fault(honest.items)
        self.expiry_patience_seconds = 12.0

    @property
    def tables(self) -> Tables:
        return self._honest.tables

    @property
    def clock(self) -> ShiftedClock:
        return self._honest.clock

    async def another(self) -> Items:
        return self._fault(await self._honest.another())

    def telling(self, table: Table, handler: ExpiryHandler) -> AbstractAsyncContextManager[None]:
        return self._honest.telling(table, self._telling_fault(self._honest.items, handler))

    async def settle(self) -> None:
        await self._honest.settle()

    def counting(self) -> AbstractAsyncContextManager[None]:
        return self._honest.counting()


@dataclass(frozen=True, slots=True)
class Planted:
    fault: Fault
    caught_by: tuple[Suite, ...]


CAUGHT = [
    Planted(
        planted.IgnoresConditions,
        (
            test_put_and_delete.test_put_if_absent_refuses_an_item_that_is_there_and_says_how_it_stands,
            test_put_and_delete.test_a_delete_whose_condition_fails_leaves_the_item,
            test_update.test_an_update_whose_condition_fails_changes_nothing,
            test_conditions.test_conditions_nest,
            partial(test_transact.test_one_failed_condition_leaves_everything_as_it_was, failing=2),
            partial(test_concurrency.test_of_fifty_concurrent_puts_if_absent_one_wins, writers=1),
        ),
    ),
    Planted(
        planted.IgnoresChecks,
        (
            test_transact.test_a_check_on_an_item_that_is_there_or_not_decides,
            partial(
                test_concurrency.test_two_transactions_that_each_need_the_other_item_absent_never_both_win,
                writers=2,
            ),
        ),
    ),
    Planted(
        planted.JudgesBeforeItWrites,
        (
            partial(test_concurrency.test_of_fifty_concurrent_puts_if_absent_one_wins, writers=1),
            test_concurrency.test_optimistic_version_loops_lose_no_change,
            test_concurrency.test_a_check_on_an_item_that_is_there_holds_until_the_commit,
            partial(
                test_concurrency.test_two_transactions_that_each_need_the_other_item_absent_never_both_win,
                writers=1,
            ),
        ),
    ),
    Planted(
        planted.TellsOneFailureOnly,
        (test_transact.test_a_refusal_names_every_failed_position_with_its_item_as_it_stands,),
    ),
    Planted(
        planted.TellsWideAttributes,
        (test_put_and_delete.test_wide_attributes_are_left_out_of_a_refusal,),
    ),
    Planted(
        planted.AddsOncePerGroup,
        (
            test_many_transactions.test_three_adds_of_one_key_in_one_call_all_count,
            partial(test_concurrency.test_fifty_concurrent_adds_of_one_key_all_count, writers=1),
        ),
    ),
    Planted(
        planted.WritesHalfATransaction,
        (
            partial(test_transact.test_one_failed_condition_leaves_everything_as_it_was, failing=3),
            test_transact.test_the_last_of_a_hundred_conditions_can_refuse_them_all,
        ),
    ),
    Planted(
        planted.LetsOneSpoilTheOthers,
        (test_many_transactions.test_a_rejected_item_harms_no_neighbour,),
    ),
    Planted(
        planted.OverwritesWhatIsThere,
        (partial(test_update.test_set_if_absent_leaves_what_is_there, stored=""),),
    ),
    Planted(planted.MergesPuts, (test_put_and_delete.test_put_replaces_the_whole_item,)),
    Planted(
        planted.KeepsTheFirstOfMany,
        (partial(test_many_transactions.test_of_several_writes_of_one_key_the_last_one_wins, between=0),),
    ),
    Planted(planted.WritesTwentyFive, (test_many_transactions.test_write_many_writes_them_all,)),
    Planted(
        planted.KeepsNoLimits,
        (
            test_limits.test_an_item_over_400_kb_is_rejected,
            partial(test_limits.test_a_number_out_of_range_is_rejected, number=float("nan")),
            partial(test_transact.test_no_write_or_more_than_a_hundred_are_rejected, count=101),
            partial(test_transact.test_an_item_named_twice_is_rejected, second="update"),
        ),
    ),
    Planted(planted.ReadsEachKeyOnce, (test_get.test_get_many_answers_a_key_as_often_as_it_is_named,)),
    Planted(planted.RoundsNumbers, (partial(test_values.test_a_number_keeps_its_value, number=2**53 + 1),)),
    Planted(
        planted.SkipsOneAfterEachPage,
        (
            partial(test_paging.test_pages_hold_every_item_once_in_order, limit=3, descending=False),
            partial(
                test_paging.test_index_pages_hold_every_item_once, index="by_owner", limit=5, descending=True
            ),
        ),
    ),
    Planted(
        planted.PromisesMoreThanThereIs,
        (partial(test_paging.test_a_page_that_ends_with_the_last_item_has_no_cursor, limit=3),),
    ),
    Planted(
        planted.OrdersByUtf16,
        (test_query.test_items_come_in_utf8_byte_order, test_query.test_descending_is_the_reverse),
    ),
    Planted(
        planted.LeavesOutTheUpperEnd,
        (
            partial(
                test_query.test_a_sort_condition_selects,
                condition=SortBetween("a", "a\uffff"),
                expected=["a", "a%", "a_", "ab", "abc", "a\uffff"],
            ),
        ),
    ),
    Planted(
        planted.ForgetsUpdatesInIndexes,
        (
            test_indexes.test_an_update_moves_an_item_within_the_index,
            test_indexes.test_an_item_leaves_an_index_when_an_update_removes_the_key,
            test_indexes.test_an_item_enters_an_index_when_an_update_gives_it_the_key,
        ),
    ),
    Planted(
        planted.ShowsExpiredItems,
        (
            test_expiry.test_an_item_is_there_until_its_time_and_then_absent,
            test_expiry.test_an_item_put_with_a_time_long_past_is_absent_at_once,
        ),
    ),
    Planted(
        planted.RefusesOnExpiredItems,
        (test_expiry.test_put_if_absent_takes_the_place_of_an_expired_item,),
    ),
    Planted(
        planted.AddsToExpiredItems,
        (test_expiry.test_an_update_of_an_expired_item_that_sets_no_time_makes_one_without,),
    ),
    Planted(
        planted_tallies.CountsTwice,
        (
            test_tallies.test_a_tally_adds_to_what_is_there_and_to_what_is_not,
            test_tallies.test_two_hundred_transactions_at_once_over_three_counters_are_counted_exactly,
            test_tallies.test_of_the_same_put_if_absent_many_times_over_one_counts,
        ),
    ),
    Planted(
        planted_tallies.CountsRefused,
        (
            partial(
                test_tallies.test_a_refused_transaction_counts_nothing_and_names_its_failures_as_without,
                kind="put",
            ),
            test_tallies.test_of_the_same_put_if_absent_many_times_over_one_counts,
        ),
    ),
    Planted(
        planted_tallies.CountsOneOfAnItem,
        (test_tallies.test_tallies_of_one_item_in_one_transaction_all_count,),
    ),
    Planted(
        planted_tallies.CountsWithoutAsking,
        (
            partial(
                test_tallies.test_a_tally_counts_only_while_the_item_has_the_values_it_asks_for,
                when={"nowhere": ""},
                counts=False,
            ),
        ),
    ),
    Planted(
        planted_tallies.CountsByPlainUpdates,
        (
            test_tallies.test_a_tally_of_an_item_that_is_not_there_is_dropped_and_makes_none,
            test_tallies.test_a_tally_of_an_item_that_its_transaction_deletes_is_dropped,
            test_tallies.test_a_tally_of_an_expired_item_is_dropped,
            partial(
                test_tallies.test_the_latest_text_only_moves_forward,
                stored=None,
                told=["b", "a"],
                expected="b",
            ),
        ),
    ),
    Planted(
        planted_tallies.LosesTalliesThatMeet,
        (test_tallies.test_two_hundred_transactions_at_once_over_three_counters_are_counted_exactly,),
    ),
]

TELLING_CAUGHT: list[tuple[TellingFault, Suite]] = [
    (
        planted.ForgetsFailedHandlers,
        test_on_expired.test_a_handler_that_fails_is_told_again_under_the_same_id,
    ),
    (
        planted.NamesEachTellingAnew,
        test_on_expired.test_a_handler_that_fails_is_told_again_under_the_same_id,
    ),
    (
        planted.ForgetsWhatWasOverwritten,
        partial(test_on_expired.test_an_expired_item_that_a_write_got_to_first_is_told_too, by="put"),
    ),
]


def name_of(value: object) -> str:
    inner = value.func if isinstance(value, partial) else value
    return str(getattr(inner, "__name__", inner))


@pytest.fixture(scope="module")
async def postgres_backend(postgres: TestPostgres) -> AsyncIterator[Harness]:
    async with backends.open_postgres(postgres) as harness:
        yield harness


@pytest.fixture(scope="module")
async def dynamodb_backend(postgres: TestPostgres) -> AsyncIterator[Harness]:
    engine = DynamoDBLocal()
    try:
        engine.start()
    except EngineMissing as missing:
        missing_engine("DynamoDB Local", str(missing))
    try:
        async with backends.open_dynamodb(engine.endpoint, postgres) as harness:
            yield harness
    finally:
        engine.stop()


@pytest.fixture(
    scope="module",
    params=["postgres_backend", pytest.param("dynamodb_backend", marks=pytest.mark.dynamodb)],
    ids=["postgres", "dynamodb"],
)
def honest(request: pytest.FixtureRequest) -> Harness:
    found: Harness = request.getfixturevalue(request.param)
    return found


async def assert_fails(suite: Suite, harness: Harness) -> None:
    try:
        await suite(harness)
    except (AssertionError, pytest.fail.Exception):
        return
    finally:
        harness.clock.reset()
    pytest.fail(f"{name_of(suite)} does not notice the fault")


@pytest.mark.parametrize(
    ("fault", "suite"),
    [
        pytest.param(case.fault, suite, id=f"{name_of(case.fault)}-{name_of(suite)}")
        for case in CAUGHT
        for suite in case.caught_by
    ],
)
async def test_a_planted_fault_is_caught(honest: Harness, fault: Fault, suite: Suite) -> None:
    await assert_fails(suite, FaultyHarness(honest, fault))


@pytest.mark.parametrize(("fault", "suite"), TELLING_CAUGHT, ids=name_of)
async def test_a_fault_in_telling_what_expired_is_caught(
    honest: Harness, fault: TellingFault, suite: Suite
) -> None:
    await assert_fails(suite, FaultyHarness(honest, telling_fault=fault))


async def test_the_wrapper_alone_is_no_fault(honest: Harness) -> None:
    """Else the faults might be caught for what carries them."""
    suites = [suite for case in CAUGHT for suite in case.caught_by]
    suites += [suite for _, suite in TELLING_CAUGHT]
    for suite in suites:
        try:
            await suite(FaultyHarness(honest))
        finally:
            honest.clock.reset()
