"""Tallies: checked, added up, and turned into the changes of one update an item. Pure, but for a warning.

Adding up is what makes them cheap: however many transactions of a group tallied an item, it is written once.
Every attribute is counted by itself, so that it makes no difference which tallies are added up together.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from crossdock.engines.items.apply import Place, changed, place_of
from crossdock.engines.items.limits import (
    check_key,
    check_keys,
    check_transaction_size,
    check_value,
    encode_item,
    is_storable_number,
    may_hold_odd_text,
)
from crossdock.engines.items.port import Add, Change, Item, ItemRejected, Set, Table, Tally, Value, Write
from crossdock.kit.logging import fields

TALLIES_BYTES_MAX = 64 * 1024
ATTRIBUTES_MAX = 20
AMOUNT_MAX = 10**38 - 1

_encode = msgspec.json.Encoder(enc_hook=dict).encode  # a mapping that is no dict becomes one

log = logging.getLogger("crossdock.items")

When: TypeAlias = tuple[tuple[str, str], ...]
"""The attributes of a tally's `when` and their values, sorted."""


@dataclass(frozen=True, slots=True)
class Sum:
    """What tallies come to."""

    add: dict[str, int]
    latest: dict[str, str]

    def include(self, add: Mapping[str, int], latest: Mapping[str, str], times: int = 1) -> None:
        for name, amount in add.items():
            self.add[name] = self.add.get(name, 0) + amount * times
        for name, text in latest.items():
            # Texts compare by code point, which is the order of their UTF-8 bytes, too.
            if text >= self.latest.get(name, ""):
                self.latest[name] = text


Sums: TypeAlias = Mapping[When, Sum]
"""Of one item: what its tallies come to, by what they ask for."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What the tallies of an item do to it as it stands."""

    changes: tuple[Change, ...] = ()
    held: tuple[When, ...] = ()
    """What was asked for and found: the changes rest on it."""
    refused: tuple[str, ...] = ()
    """Attributes that can't take what was tallied."""


# --- before anything is sent -----------------------------------------------------------------------


def divided(transaction: Sequence[Write | Tally]) -> tuple[tuple[Write, ...], tuple[Tally, ...]]:
    """Its writes and the tallies after them; not checked, either of them. Raises ItemRejected."""
    check_transaction_size(len(transaction))
    writes = tuple([each for each in transaction if not isinstance(each, Tally)])
    tallies = tuple([each for each in transaction[len(writes) :] if isinstance(each, Tally)])
    if not writes:
        raise ItemRejected("A transaction has at least one write besides its tallies.")
    if len(writes) + len(tallies) != len(transaction):
        raise ItemRejected("A transaction's tallies come after its writes.")
    return writes, tallies


def tallies_bytes(tallies: Iterable[Tally]) -> int:
    """Their size as JSON, after every check. Raises ItemRejected."""
    size = sum([len(each.encoded or _encoded(each)) for each in tallies])
    if size > TALLIES_BYTES_MAX:
        raise ItemRejected(f"A transaction's tallies are larger than {TALLIES_BYTES_MAX} bytes together.")
    return size


def encode_tallies(tallies: Sequence[Tally]) -> bytes:
    """As JSON, after every check. Raises ItemRejected."""
    tallies_bytes(tallies)
    return b"[" + b",".join([each.encoded or _encoded(each) for each in tallies]) + b"]"


def _encoded(tally: Tally) -> bytes:
    _check_attributes(tally)
    try:
        encoded = _encode((tally.table.name, tally.key, tally.add, tally.latest, tally.when))
    except UnicodeEncodeError as error:
        raise ItemRejected("A text is not valid Unicode (a lone surrogate).") from error
    if may_hold_odd_text(encoded):
        check_value({**tally.add, **tally.latest, **tally.when})
    object.__setattr__(tally, "encoded", encoded)
    return encoded


def _check_attributes(tally: Tally) -> None:
    table, key = tally.table, tally.key
    check_key(table, key)
    names = [*tally.add, *tally.latest, *tally.when]
    if len({*names, *key}) < len(names) + len(key) or any(map(names.__contains__, table.wide)):
        raise ItemRejected("A tally names an attribute twice, or one of the key, or a wide one.")
    if len(names) > ATTRIBUTES_MAX:
        raise ItemRejected(f"A tally names more than {ATTRIBUTES_MAX} attributes.")
    for amount in tally.add.values():
        if type(amount) is not int or abs(amount) > AMOUNT_MAX:
            raise ItemRejected("A tally adds whole numbers of at most 38 digits.")
    for texts in (tally.latest, tally.when):
        for text in texts.values():
            if type(text) is not str:
                raise ItemRejected("A tally's `latest` and `when` are texts.")
    for index in table.indexes:
        if index.partition in names or index.sort in names:
            # Says so of a number, of an empty text and of one that is too long.
            check_keys(table, {**key, **tally.add, **tally.latest})


# --- when they are counted -------------------------------------------------------------------------


def summed(tallies: Iterable[Tally]) -> dict[Place, dict[When, Sum]]:
    listed = list(tallies)
    identities = [*map(id, listed)]
    times = Counter(identities)
    sums: dict[Place, dict[When, Sum]] = {}
    for identity, tally in dict(zip(identities, listed, strict=True)).items():
        when = tuple(sorted(tally.when.items())) if tally.when else ()
        by_when = sums.setdefault(place_of(tally), {})
        total = by_when.get(when)
        if total is None:
            total = by_when[when] = Sum({}, {})
        total.include(tally.add, tally.latest, times[identity])
    return sums


def counted(table: Table, item: Item | None, sums: Sums, hidden_bytes: int = 0) -> Counted:
    """`item` as a reader sees it, without wide attributes of `hidden_bytes`."""
    if item is None:
        return Counted()
    held = tuple(when for when in sums if all(item.get(name) == text for name, text in when))
    total = Sum({}, {})
    for when in held:
        total.include(sums[when].add, sums[when].latest)
    changes: list[Change] = []
    refused: list[str] = []
    for name, amount in total.add.items():
        if _can_take(item.get(name, 0), amount):
            changes.append(Add(name, amount))
        else:
            refused.append(name)
    added = {change.attribute for change in changes}
    for name, text in total.latest.items():
        stored = item.get(name, "")
        if name in added or not isinstance(stored, str):
            refused.append(name)
        elif name not in item or stored < text:
            changes.append(Set(name, text))
    try:
        encode_item(table, changed(item, {}, changes), hidden_bytes)
    except ItemRejected:
        return Counted((), held, (*refused, *(change.attribute for change in changes)))
    return Counted(tuple(changes), held, tuple(refused))


def warn_of_refused(table: Table, key: Sequence[str], attributes: Sequence[str]) -> None:
    log.warning(
        "what was tallied can't be counted: the item holds something else there, or is full",
        extra=fields(table=table.name, primary_key=list(key), attributes=list(attributes)),
    )


def _can_take(stored: Value, amount: int) -> bool:
    if isinstance(stored, bool) or not isinstance(stored, (int, float)):
        return False
    return is_storable_number(stored + amount)
