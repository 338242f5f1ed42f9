"""Who asks of the hooks slice: from an API key (`fh_…`) or a login (`fhs_…`) to a principal.

- What a credential was resolved to is kept for four seconds, so a deleted key and an ended session stop
  working within five on every node, and at once on the one that ended them.
- An unknown key is kept for one second, and only after half a second of asking an index that may lag.
- What does not look like one of ours is refused without asking anybody.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from crossdock.engines.items.port import Item, Items
from crossdock.hooks.accounts_model import USER_ID_PATTERN
from crossdock.hooks.model import KeyPermission
from crossdock.hooks.store import accounts as account_store
from crossdock.hooks.store import credentials as store
from crossdock.hooks.store.tables import MAIN, session_key, user_key
from crossdock.http.principals import Principal, require
from crossdock.kit.clock import Clock
from crossdock.kit.errors import FieldProblem, InvalidInput, NotFound, Unavailable
from crossdock.kit.ids import Random
from crossdock.kit.ttl_cache import TtlCache

KEY_PREFIX = "fh_"
SESSION_PREFIX = "fhs_"
HOOKS_USER = "hooks_user"

READ, WRITE, ADMIN = "hooks:read", "hooks:write", "hooks:admin"
USERS = "hooks:users"
"""The operator's alone."""
ALL = frozenset({READ, WRITE, ADMIN})
PERMISSIONS: dict[KeyPermission, frozenset[str]] = {
    KeyPermission.READ: frozenset({READ}),
    KeyPermission.WRITE: frozenset({READ, WRITE}),
    KeyPermission.ADMIN: ALL,
}

CACHED_SECONDS = 4.0
UNKNOWN_CACHED_SECONDS = 1.0
CACHE_CAPACITY = 10_000
INDEX_POLL_SECONDS = 0.1
INDEX_POLLS = 5
"""After the first look: an index lags half a second at most."""

_TOKEN_BYTES = 32
_TOKEN = re.compile(r"fhs?_[A-Za-z0-9_-]{43}")
_USER_ID = re.compile(USER_ID_PATTERN)
_SESSION_ID_PREFIX = "ses_"


def new_token(prefix: str, random: Random) -> str:
    """256 random bits, so a plain hash of it can't be searched."""
    return prefix + base64.urlsafe_b64encode(random(_TOKEN_BYTES)).decode("ascii").rstrip("=")


def token_hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


# --- whose things ----------------------------------------------------------------------------------


def user_of(principal: Principal, user_id: str | None) -> str:
    """Whose things the request is about. A hooks user's own; the operator says whose.

    Raises NotFound for somebody else's, as if there were no such user.
    """
    if principal.kind == HOOKS_USER:
        own = str(principal.tenant)
        if user_id not in (None, own):
            raise no_user()
        return own
    require(principal, USERS)
    if user_id is None:
        problem = FieldProblem("user_id", "required", "The operator says whose: user_id=usr_….")
        raise InvalidInput("The request needs a user.", problem)
    return checked_user_id(user_id)


def checked_user_id(user_id: str) -> str:
    """What can't be one is not there; a store need not be asked."""
    if _USER_ID.match(user_id) is None:
        raise no_user()
    return user_id


def no_user() -> NotFound:
    return NotFound("user_not_found", "There is no such user.")


# --- keys ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _KnownKey:
    principal: Principal
    last_used_ms: int | None


class KeyResolver:
    """Also notes when a key was used, every five minutes at most, as far as this process knows."""

    def __init__(self, items: Items, clock: Clock) -> None:
        self._items = items
        self._clock = clock
        self._known: TtlCache[str, _KnownKey] = TtlCache(
            clock,
            capacity=CACHE_CAPACITY,
            ttl_seconds=CACHED_SECONDS,
            negative_ttl_seconds=UNKNOWN_CACHED_SECONDS,
        )

    async def resolve(self, credential: str) -> Principal | None:
        if not _is_token(credential, KEY_PREFIX):
            return None
        known = await self._known.get_or_fill(token_hash(credential), self._find)
        if known is None:
            return None
        await self._note_use(known)
        return known.principal

    def forget(self, key_hash: str) -> None:
        """The key was deleted."""
        self._known.invalidate(key_hash)

    async def _find(self, key_hash: str) -> _KnownKey | None:
        item = await self._by_hash(key_hash)
        if item is None:
            return None
        key = store.key_of(item)
        principal = Principal(HOOKS_USER, key.key_id, key.user_id, PERMISSIONS[key.permissions])
        return _KnownKey(principal, store.last_used_ms(key))

    async def _by_hash(self, key_hash: str) -> Item | None:
        """The index says which key it is, the table whether it still is. A new one may not be in it yet."""
        found: Sequence[Item] = (await self._items.query(store.key_by_hash(key_hash))).items
        for _ in range(INDEX_POLLS):
            if found:
                break
            await asyncio.sleep(INDEX_POLL_SECONDS)
            found = (await self._items.query(store.key_by_hash(key_hash))).items
        return await self._items.get(MAIN, MAIN.key_of(found[0])) if found else None

    async def _note_use(self, known: _KnownKey) -> None:
        now_ms = self._clock.now_ms()
        if known.last_used_ms is not None and now_ms - known.last_used_ms < store.LAST_USED_EVERY_MS:
            return
        known.last_used_ms = now_ms
        used = store.key_used(str(known.principal.tenant), known.principal.id, now_ms)
        with suppress(Unavailable):  # the key is good; a later use is noted
            await self._items.transact([used])


# --- sessions --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _LiveSession:
    principal: Principal
    expires_at: int


class SessionResolver:
    def __init__(self, items: Items, clock: Clock) -> None:
        self._items = items
        self._clock = clock
        self._live: TtlCache[str, _LiveSession] = TtlCache(
            clock,
            capacity=CACHE_CAPACITY,
            ttl_seconds=CACHED_SECONDS,
            negative_ttl_seconds=UNKNOWN_CACHED_SECONDS,
        )

    async def resolve(self, credential: str) -> Principal | None:
        if not _is_token(credential, SESSION_PREFIX):
            return None
        live = await self._live.get_or_fill(token_hash(credential), self._read)
        if live is None or live.expires_at <= self._clock.now_ms() // 1000:
            return None
        return live.principal

    def forget(self, session_hash: str) -> None:
        """The session was ended."""
        self._live.invalidate(session_hash)

    def forget_all(self) -> None:
        """All sessions of somebody were ended. That is rare, so everybody's are read again."""
        self._live.invalidate_all()

    async def _read(self, session_hash: str) -> _LiveSession | None:
        item = await self._items.get(MAIN, session_key(session_hash))
        if item is None:
            return None
        session = store.session_of(item)
        user = await self._items.get(MAIN, user_key(session.user_id))
        if user is None or account_store.login_of(user).session_epoch != session.epoch:
            return None
        principal = Principal(HOOKS_USER, _SESSION_ID_PREFIX + session_hash, session.user_id, ALL)
        return _LiveSession(principal, session.expires_at)


def session_hash_of(principal: Principal) -> str | None:
    """None: the credential is no session."""
    if principal.kind != HOOKS_USER or not principal.id.startswith(_SESSION_ID_PREFIX):
        return None
    return principal.id.removeprefix(_SESSION_ID_PREFIX)


def _is_token(credential: str, prefix: str) -> bool:
    return credential.startswith(prefix) and _TOKEN.fullmatch(credential) is not None
