"""The Items port: DynamoDB's data model in a small typed interface, kept by two backends.

Guarantees, the same on `postgres` and `dynamodb` (tests/contract/items runs every one on both):

- `get`, `get_many` and table queries are strongly consistent. Index queries may lag behind writes: an index
  yields keys; decide on the item read by its primary key.
- An item whose TTL has passed is absent, for reads and for conditions, whether or not it was deleted yet.
- A write returns after its commit is durable. `Written` means committed, `Refused` means a condition did not
  hold and nothing was written. A commit whose outcome is unknown raises `OutcomeUnknown`.
- `transact` is all or nothing. `transact_many` is many independent ones, executed together for speed, each
  with an outcome of its own. Writes of one key in one call take effect in the order given.
- The tallies of a committed transaction are counted exactly once, whatever is repeated or killed; those of a
  refused one never. They can be read with the commit on `postgres`, and within seconds of it on `dynamodb`,
  where a background role counts them.
- Limits are DynamoDB's on both backends (see limits.py); what breaks one raises `ItemRejected` before
  anything is sent, and harms no neighbour.

When the engine is away, every call raises `Unavailable`; nothing is buffered for later.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Protocol, TypeAlias

from crossdock.engines.items.conditions import ALWAYS, Condition
from crossdock.engines.leases import Leases
from crossdock.kit.errors import CrossdockError, Unavailable

Value: TypeAlias = "bool | int | float | str | list[Value] | dict[str, Value] | None"
Item: TypeAlias = dict[str, Value]
Key: TypeAlias = Mapping[str, str]


class ItemRejected(CrossdockError):
    """The item breaks a limit that every backend keeps (size, key length, number range, U+0000)."""

    def __init__(self, message: str) -> None:
        super().__init__("item_rejected", message)


class OutcomeUnknown(Unavailable):
    """The connection broke while committing: it may have happened. Never answered as success."""

    def __init__(self, internal: str = "") -> None:
        super().__init__(
            "outcome_unknown", "The write may or may not have happened; try again.", internal=internal
        )


# --- what a slice declares -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Index:
    """A global secondary index. An item without its key attributes is not in it (sparse)."""

    name: str
    partition: str
    sort: str | None = None
    projection: Literal["all", "keys"] = "all"


PARTITION_KEY_BYTES_MAX = 2048
SORT_KEY_BYTES_MAX = 1024


@dataclass(frozen=True)
class Table:
    """A declared table. All key attributes are strings.

    `wide` names attributes that a status update should not rewrite (an event's body); they are left out of
    `Refused.failures` and of `Written.item`. `stream` makes expired items reach `on_expired` handlers.
    """

    name: str
    partition: str
    sort: str | None = None
    indexes: tuple[Index, ...] = ()
    ttl: str | None = None
    stream: bool = False
    wide: tuple[str, ...] = ()
    point_in_time_recovery: bool = False

    @cached_property
    def limited_keys(self) -> tuple[tuple[str, int, bool], ...]:
        """Attributes that are keys, of the table (these it must have) or of an index: with their limits."""
        own = [(self.partition, PARTITION_KEY_BYTES_MAX, True)]
        if self.sort is not None:
            own.append((self.sort, SORT_KEY_BYTES_MAX, True))
        for index in self.indexes:
            own.append((index.partition, PARTITION_KEY_BYTES_MAX, False))
            if index.sort is not None:
                own.append((index.sort, SORT_KEY_BYTES_MAX, False))
        return tuple(own)

    @cached_property
    def key_attributes(self) -> tuple[str, ...]:
        return (self.partition,) if self.sort is None else (self.partition, self.sort)

    def key_of(self, item: Mapping[str, Value]) -> dict[str, str]:
        return {name: str(item[name]) for name in self.key_attributes}

    def index(self, name: str) -> Index:
        return next(index for index in self.indexes if index.name == name)


# --- writes ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Put:
    """Write the whole item, in place of any that is there."""

    table: Table
    item: Item
    condition: Condition = ALWAYS


@dataclass(frozen=True, slots=True)
class Set:
    attribute: str
    value: Value


@dataclass(frozen=True, slots=True)
class SetIfAbsent:
    attribute: str
    value: Value


@dataclass(frozen=True, slots=True)
class Add:
    """Add to a number; a missing attribute counts as 0. Adding to anything else is `ItemRejected`."""

    attribute: str
    amount: int | float


@dataclass(frozen=True, slots=True)
class Remove:
    attribute: str


Change: TypeAlias = Set | SetIfAbsent | Add | Remove


@dataclass(frozen=True, slots=True)
class Update:
    """Change top-level attributes, each at most once; not key attributes.

    Creates the item if it is absent and the condition holds.
    """

    table: Table
    key: Key
    changes: tuple[Change, ...]
    condition: Condition = ALWAYS


@dataclass(frozen=True, slots=True)
class Delete:
    table: Table
    key: Key
    condition: Condition = ALWAYS


@dataclass(frozen=True, slots=True)
class Check:
    """Only in a transaction: the condition must hold, nothing is written."""

    table: Table
    key: Key
    condition: Condition


Write: TypeAlias = Put | Update | Delete | Check


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts into an item that every transaction may count into, without their getting in each other's way.

    Numbers in `add` are added (a missing attribute counts as 0); a text in `latest` is set where none is
    stored or a smaller one, in byte order. A tally is dropped if its item is absent when it is counted, or
    lacks one of the values in `when`. An attribute stays as it is if it holds no number (`add`) or no text
    (`latest`), or would become more than can be stored: a warning is logged, and the other attributes count.

    Tallies of one item are counted in no particular order, so none should change what another's `when` asks
    for. `add`, `latest` and `when` name up to 20 attributes, all different, none of them a key attribute or a
    wide one; what is added to is not an index's either.
    """

    table: Table
    key: Key
    add: Mapping[str, int]
    latest: Mapping[str, str] = field(default_factory=dict)
    when: Mapping[str, str] = field(default_factory=dict)
    encoded: bytes | None = field(default=None, init=False, repr=False, compare=False)
    """Kept by `tallies` once it was checked: who counts the same again and again does best with one object.

    So the mappings of a tally that was sent are not to be changed.
    """


Transaction: TypeAlias = Sequence[Write | Tally]
"""At least one write, then any tallies; together at most 100, the tallies at most 64 KB of JSON.

No item is named by two writes. Tallies may name one as often as they like, a written one too.
"""


@dataclass(frozen=True, slots=True)
class Written:
    """Committed. `item`: the new state after a single `update`, the old one after a single `delete`."""

    item: Item | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """A condition that did not hold: which write of the transaction, and the item as it stood."""

    position: int
    current: Item | None


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing was written; `failures` names every write whose condition did not hold, at least one."""

    failures: tuple[Failure, ...]

    @property
    def current(self) -> Item | None:
        return self.failures[0].current


Outcome: TypeAlias = Written | Refused


# --- queries ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SortEquals:
    value: str


@dataclass(frozen=True, slots=True)
class SortPrefix:
    prefix: str


@dataclass(frozen=True, slots=True)
class SortBetween:
    """Inclusive at both ends, compared as UTF-8 bytes."""

    low: str
    high: str


SortCondition: TypeAlias = SortEquals | SortPrefix | SortBetween

Cursor: TypeAlias = dict[str, str]
"""The key attributes (of the table, and of the index where one was queried) of the last item yielded."""


@dataclass(frozen=True, slots=True)
class Query:
    table: Table
    partition: str
    sort: SortCondition | None = None
    index: str | None = None
    descending: bool = False
    limit: int = 50
    after: Cursor | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Up to `limit` items. `cursor` is None exactly when nothing follows."""

    items: list[Item]
    cursor: Cursor | None


@dataclass(frozen=True, slots=True)
class JsonPage:
    """A page whose items are still JSON text, as stored: for answers that pass them on unread."""

    items: list[bytes]
    cursor: Cursor | None


# --- expiry ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Expired:
    """An item whose TTL passed. `event_id` is the same each time the same expiry is told."""

    event_id: str
    table: Table
    item: Item = field(compare=False)


ExpiryHandler: TypeAlias = Callable[[Sequence[Expired]], Awaitable[None]]


class Items(Protocol):
    async def get(self, table: Table, key: Key) -> Item | None: ...

    async def get_many(self, table: Table, keys: Sequence[Key]) -> list[Item | None]:
        """As many answers as keys, in their order; a key may be named twice."""

    async def query(self, query: Query) -> Page: ...

    async def query_json(self, query: Query) -> JsonPage:
        """`query` without parsing; table queries and `all` indexes only. Wide attributes are included."""

    async def put(self, table: Table, item: Item, condition: Condition = ALWAYS) -> Outcome: ...

    async def update(
        self, table: Table, key: Key, *changes: Change, condition: Condition = ALWAYS
    ) -> Outcome: ...

    async def delete(self, table: Table, key: Key, condition: Condition = ALWAYS) -> Outcome: ...

    async def transact(self, writes: Transaction) -> Outcome:
        """All of it or nothing, and its tallies with it."""

    async def transact_many(self, transactions: Sequence[Transaction]) -> list[Outcome | CrossdockError]:
        """An outcome each, in order; an error is returned in its place and fails no other."""

    async def write_many(self, table: Table, items: Sequence[Item]) -> None:
        """Unconditional puts, any number, not atomic together; for one key the last one wins."""

    def on_expired(self, table: Table, handler: ExpiryHandler) -> None:
        """At least once per expired item of a `stream` table; told again until the handler returns."""

    async def close(self) -> None:
        """Finish what was accepted, then let go of the engine."""


class ItemsEngine(Items, Protocol):
    """What the composition root holds; slices see `Items`."""

    async def run_expiry(self, leases: Leases) -> None:
        """The background role that sweeps, or reads streams, and tells the handlers: until cancelled."""

    async def run_tallies(self, leases: Leases) -> None:
        """The background role that counts what was tallied, on any number of nodes: until cancelled."""
