"""Guards: the items that say whose a unique value is, written in the user's own transactions.

An index may lag, so it can neither refuse a second user with one e-mail address nor say who logs in: what is
unique has an item of its own, put only if absent. A value that changes moves its guard in one transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

from crossdock.engines.items.conditions import Absent, any_of, equals
from crossdock.engines.items.port import Delete, Item, Put, Refused, Value, Write
from crossdock.hooks.store.tables import MAIN, guard_key

GuardKind: TypeAlias = Literal["EMAIL", "GITHUB", "GOOGLE", "STRIPE"]

_KINDS: dict[str, GuardKind] = {kind: kind for kind in get_args(GuardKind)}


def email_guard_key(email: str) -> dict[str, str]:
    return guard_key("EMAIL", email.lower())


def guard(key: Mapping[str, str], user_id: str) -> Put:
    item: Item = {**key, "userId": user_id}
    return Put(MAIN, item, Absent("PK"))


def moved(old: dict[str, str] | None, new: dict[str, str] | None, user_id: str) -> list[Write]:
    """The writes that give up the old value and take the new one; none if they are the same."""
    if old == new:
        return []
    writes: list[Write] = []
    if old is not None:
        writes.append(Delete(MAIN, old, any_of(Absent("PK"), equals("userId", user_id))))
    if new is not None:
        writes.append(guard(new, user_id))
    return writes


def taken(refused: Refused) -> GuardKind | None:
    """The kind of value that somebody else has; None: the transaction was refused for another reason."""
    for failure in refused.failures:
        if failure.current is not None and failure.current["SK"] == "UNIQUE":
            return _KINDS[str(failure.current["PK"]).partition("#")[0]]
    return None


def holder_of(item: Mapping[str, Value]) -> str:
    return str(item["userId"])
