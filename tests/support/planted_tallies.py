"""Items with a fault in their tallies, each one that a backend could really have: see `planted`."""

from __future__ import annotations

from dataclasses import replace

from tests.support.passing_on import PassingOn

from crossdock.engines.items.conditions import ALWAYS
from crossdock.engines.items.port import (
    Add,
    Change,
    Check,
    Outcome,
    Refused,
    Set,
    Tally,
    Transaction,
    Update,
    Write,
    Written,
)


class CountsTwice(PassingOn):
    """As a backend would whose counting was repeated."""

    async def transact(self, writes: Transaction) -> Outcome:
        return await super().transact([*writes, *_tallies(writes)])


class CountsRefused(PassingOn):
    async def transact(self, writes: Transaction) -> Outcome:
        outcome = await super().transact(writes)
        if isinstance(outcome, Refused) and _tallies(writes):
            tallies = _tallies(writes)
            await super().transact([Check(tallies[0].table, tallies[0].key, ALWAYS), *tallies])
        return outcome


class CountsOneOfAnItem(PassingOn):
    """Of the tallies of one item the last one only."""

    async def transact(self, writes: Transaction) -> Outcome:
        last = {repr((each.table.name, each.key)): each for each in _tallies(writes)}
        return await super().transact([*_writes(writes), *last.values()])


class CountsWithoutAsking(PassingOn):
    async def transact(self, writes: Transaction) -> Outcome:
        unasked = [replace(each, when={}) for each in _tallies(writes)]
        return await super().transact([*_writes(writes), *unasked])


class CountsByPlainUpdates(PassingOn):
    """After the commit: makes items that are not there, and sets what is told last."""

    async def transact(self, writes: Transaction) -> Outcome:
        outcome = await super().transact(_writes(writes))
        for each in _tallies(writes) if isinstance(outcome, Written) else []:
            changes: list[Change] = [Add(name, amount) for name, amount in each.add.items()]
            changes += [Set(name, text) for name, text in each.latest.items()]
            await super().single(Update(each.table, each.key, tuple(changes)))
        return outcome


class LosesTalliesThatMeet(PassingOn):
    """Reads, adds, writes: what another adds in between is overwritten."""

    async def transact(self, writes: Transaction) -> Outcome:
        outcome = await super().transact(_writes(writes))
        for each in _tallies(writes) if isinstance(outcome, Written) else []:
            stored = await self.get(each.table, each.key) or {}
            sums = [Set(name, int(str(stored.get(name, 0))) + amount) for name, amount in each.add.items()]
            await super().single(Update(each.table, each.key, tuple(sums)))
        return outcome


def _writes(transaction: Transaction) -> list[Write]:
    return [each for each in transaction if not isinstance(each, Tally)]


def _tallies(transaction: Transaction) -> list[Tally]:
    return [each for each in transaction if isinstance(each, Tally)]
