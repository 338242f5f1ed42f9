"""Sources: `PK USER#{userId}, SK SRC#{sourceId}`, found by id through GSI3 (`SRCID#{sourceId}`).

A deleted source stays as its record, without its secrets: what came by it can still be told whose it was.
No update brings one back. `connectionCount` is how many live connections there are, changed in the
transaction that makes or ends one; `connectionsMade` only ever grows, so that whoever ends all of them can
tell that none was made meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping

from crossdock.engines.items.conditions import Absent, Compare, Condition, Exists, all_of, any_of, equals
from crossdock.engines.items.port import Add, Check, Item, Put, Query, Remove, Set, SortPrefix, Update, Value
from crossdock.hooks.model import CONNECTIONS_MAX, Source, Status
from crossdock.hooks.store.attributes import (
    differences,
    from_json_text,
    integer_of,
    is_live,
    json_text,
    present,
    secret_attributes,
    secrets_of,
    set_or_remove,
    text_of,
    unchanged,
)
from crossdock.hooks.store.tables import MAIN, source_key, user_key

_PREFIX = "SRC#"

# What is checked against one another when it is changed: none of them may have been changed meanwhile.
_SIGNING = ("provider", "signing", "signingSecret")


def secret_context(source_id: str) -> str:
    """What the source's secrets are sealed for."""
    return f"hooks.source:{source_id}:secret"


# --- the item --------------------------------------------------------------------------------------


def new_source(source: Source, signing_algorithm: str | None) -> Put:
    item: Item = {
        **source_key(source.user_id, source.source_id),
        "GSI3PK": f"SRCID#{source.source_id}",
        "GSI3SK": "SOURCE",
        "sourceId": source.source_id,
        "userId": source.user_id,
        "eventCount": source.event_count,
        "createdAt": source.created_at,
        "connectionCount": 0,
        "connectionsMade": 0,
        **present(_changeable(source)),
    }
    if signing_algorithm is not None:
        item["signingAlgorithm"] = signing_algorithm
    return Put(MAIN, item, Absent("PK"))


def owner_exists(user_id: str) -> Check:
    return Check(MAIN, user_key(user_id), Exists("PK"))


def _changeable(source: Source) -> dict[str, Value]:
    """Attributes that a change may touch; None: not stored."""
    return {
        "name": source.name,
        "provider": source.provider,
        "status": source.status.value,
        "signing": json_text(source.signing),
        "dedup": json_text(source.dedup),
        "response": json_text(source.response),
        **secret_attributes(source.secrets),
    }


def source_of(item: Mapping[str, Value]) -> Source:
    return Source(
        source_id=str(item["sourceId"]),
        user_id=str(item["userId"]),
        name=str(item["name"]),
        provider=str(item["provider"]),
        status=Status(str(item["status"])),
        created_at=str(item["createdAt"]),
        secrets=secrets_of(item),
        signing=from_json_text(item.get("signing")),
        dedup=from_json_text(item.get("dedup")),
        response=from_json_text(item.get("response")),
        event_count=integer_of(item, "eventCount"),
        last_event_at=text_of(item, "lastEventAt"),
    )


# --- finding ---------------------------------------------------------------------------------------


def source_by_id(source_id: str) -> Query:
    return Query(MAIN, f"SRCID#{source_id}", index="GSI3", limit=1)


def sources_of_user(user_id: str, limit: int, after: str | None) -> Query:
    """By id, deleted ones among them; `after`: the id that the page before ended at."""
    partition = source_key(user_id, "")["PK"]
    cursor = None if after is None else source_key(user_id, after)
    return Query(MAIN, partition, SortPrefix(_PREFIX), limit=limit, after=cursor)


# --- changing --------------------------------------------------------------------------------------


def source_changed(before: Source, after: Source, signing_algorithm: str | None = None) -> Update:
    """What differs, on condition that the source is live.

    A change of what says how it is signed needs `signing_algorithm`, and holds only if that is as in
    `before`.
    """
    old, new = _changeable(before), _changeable(after)
    changes = list(differences(old, new))
    condition: Condition = is_live()
    if any(old[name] != new[name] for name in _SIGNING):
        changes.append(set_or_remove("signingAlgorithm", signing_algorithm))
        condition = all_of(condition, *(unchanged(name, old[name]) for name in _SIGNING))
    return Update(MAIN, _key(before), tuple(changes), condition)


def source_deleted(source: Source, connections_made: int) -> Update:
    """On condition that no connection was made since `connections_made` was read."""
    changes = (
        Set("status", Status.DELETED.value),
        Set("connectionCount", 0),
        Remove("signingSecret"),
        Remove("previousSecrets"),
    )
    none_made: Condition = equals("connectionsMade", connections_made)
    if not connections_made:
        none_made = any_of(none_made, Absent("connectionsMade"))
    return Update(MAIN, _key(source), changes, all_of(is_live(), none_made))


def connections_made(item: Mapping[str, Value]) -> int:
    return integer_of(item, "connectionsMade")


def connection_counted(source: Source) -> Update:
    """One more, on condition that the source is live and has room for it."""
    room = any_of(Absent("connectionCount"), Compare("connectionCount", "<", CONNECTIONS_MAX))
    changes = (Add("connectionCount", 1), Add("connectionsMade", 1))
    return Update(MAIN, _key(source), changes, all_of(is_live(), room))


def connection_uncounted(user_id: str, source_id: str) -> Update:
    return Update(MAIN, source_key(user_id, source_id), (Add("connectionCount", -1),), Exists("PK"))


def _key(source: Source) -> dict[str, str]:
    return source_key(source.user_id, source.source_id)
