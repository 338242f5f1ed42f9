"""What a user is known by: API keys (`SK KEY#{keyId}`) and sessions (`PK SESSION#{sha256}`).

A key is found by its hash through GSI2, which may lag; a session by its primary key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from crossdock.engines.items.conditions import Absent, Compare, Exists, all_of, any_of
from crossdock.engines.items.port import Add, Delete, Item, Put, Query, Set, SortPrefix, Update, Value, Write
from crossdock.hooks.accounts_model import KEYS_MAX
from crossdock.hooks.model import ApiKey, KeyPermission
from crossdock.hooks.store.attributes import integer_of, text_of
from crossdock.hooks.store.tables import MAIN, api_key_key, session_key, user_key
from crossdock.kit.clock import ms_from_rfc3339, rfc3339

LAST_USED_EVERY_MS = 300_000

_PREFIX = "KEY#"

# --- keys ------------------------------------------------------------------------------------------


def new_key(key: ApiKey, key_hash: str) -> list[Write]:
    """Refused where the user (first of the writes) is not there or has as many keys as it may."""
    item: Item = {
        **api_key_key(key.user_id, key.key_id),
        "GSI2PK": _hash_partition(key_hash),
        "GSI2SK": "KEY",
        "keyId": key.key_id,
        "userId": key.user_id,
        "name": key.name,
        "keyHash": key_hash,
        "keyPrefix": key.key_prefix,
        "permissions": key.permissions.value,
        "createdAt": key.created_at,
    }
    room = any_of(Absent("keyCount"), Compare("keyCount", "<", KEYS_MAX))
    counted = Update(MAIN, user_key(key.user_id), (Add("keyCount", 1),), all_of(Exists("PK"), room))
    return [counted, Put(MAIN, item, Absent("PK"))]


def key_deleted(user_id: str, key_id: str) -> list[Write]:
    return [
        Delete(MAIN, api_key_key(user_id, key_id), Exists("PK")),
        Update(MAIN, user_key(user_id), (Add("keyCount", -1),), Exists("PK")),
    ]


def keys_of_user(user_id: str) -> Query:
    """All of them: there are never more than a page holds."""
    return Query(MAIN, user_key(user_id)["PK"], SortPrefix(_PREFIX), limit=KEYS_MAX)


def key_by_hash(key_hash: str) -> Query:
    return Query(MAIN, _hash_partition(key_hash), index="GSI2", limit=1)


def _hash_partition(key_hash: str) -> str:
    return f"KEYHASH#{key_hash}"


def key_used(user_id: str, key_id: str, now_ms: int) -> Update:
    long_ago = Compare("lastUsedAt", "<=", rfc3339(now_ms - LAST_USED_EVERY_MS))
    condition = all_of(Exists("PK"), any_of(Absent("lastUsedAt"), long_ago))
    changes = (Set("lastUsedAt", rfc3339(now_ms)),)
    return Update(MAIN, api_key_key(user_id, key_id), changes, condition)


def key_of(item: Mapping[str, Value]) -> ApiKey:
    return ApiKey(
        key_id=str(item["keyId"]),
        user_id=str(item["userId"]),
        name=str(item["name"]),
        key_prefix=str(item["keyPrefix"]),
        permissions=KeyPermission(str(item["permissions"])),
        created_at=str(item["createdAt"]),
        last_used_at=text_of(item, "lastUsedAt"),
    )


def hash_of(item: Mapping[str, Value]) -> str:
    return str(item["keyHash"])


def last_used_ms(key: ApiKey) -> int | None:
    return None if key.last_used_at is None else ms_from_rfc3339(key.last_used_at)


# --- sessions --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Session:
    user_id: str
    epoch: int
    """Good while the user's is the same."""
    expires_at: int
    """Seconds since 1970."""


def new_session(token_sha256: str, session: Session, now_ms: int) -> Put:
    item: Item = {
        **session_key(token_sha256),
        "userId": session.user_id,
        "sessionEpoch": session.epoch,
        "createdAt": rfc3339(now_ms),
        "expiresAt": session.expires_at,
    }
    return Put(MAIN, item, Absent("PK"))


def session_ended(token_sha256: str) -> Delete:
    return Delete(MAIN, session_key(token_sha256))


def session_of(item: Mapping[str, Value]) -> Session:
    return Session(str(item["userId"]), integer_of(item, "sessionEpoch"), integer_of(item, "expiresAt"))
