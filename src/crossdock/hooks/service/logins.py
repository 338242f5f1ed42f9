"""Logins: an e-mail address and a password become a token for a day.

- Who may not log in learns nothing: a wrong password and an unknown address are one answer, after the same
  reads and the same hashing.
- Ten wrong passwords for an address in 15 minutes, and it is not listened to until they are over (429).
- Stored is SHA-256 of the token. It stops working after 24 hours, at a logout, and when the user's password
  is changed.
"""

from __future__ import annotations

from dataclasses import dataclass

from crossdock.engines.items.port import Items, Refused
from crossdock.hooks.accounts_model import SESSION_SECONDS, StartedSession
from crossdock.hooks.rules.passwords import GuessLimit
from crossdock.hooks.service.passwords import PasswordHasher
from crossdock.hooks.service.principals import (
    ALL,
    HOOKS_USER,
    SESSION_PREFIX,
    SessionResolver,
    new_token,
    session_hash_of,
    token_hash,
)
from crossdock.hooks.service.users import Users
from crossdock.hooks.store import credentials as store
from crossdock.http.idempotency import IdempotentRequest, Once, Stored
from crossdock.http.idempotency_items import Effect, ItemsIdempotency
from crossdock.http.principals import Principal
from crossdock.kit.clock import Clock, rfc3339
from crossdock.kit.errors import CrossdockError, Forbidden, Unauthenticated
from crossdock.kit.ids import Random

_STARTED = Stored(StartedSession, secrets=("token",))


@dataclass(frozen=True, slots=True)
class Proven:
    """A user who has shown who it is."""

    user_id: str
    session_epoch: int

    @property
    def principal(self) -> Principal:
        """Whose repeats a login's Idempotency-Key is told apart by: there is no credential yet."""
        return Principal(HOOKS_USER, self.user_id, self.user_id, ALL)


class Logins:
    def __init__(
        self,
        items: Items,
        idempotency: ItemsIdempotency,
        users: Users,
        hasher: PasswordHasher,
        sessions: SessionResolver,
        *,
        clock: Clock,
        random: Random,
    ) -> None:
        self._items = items
        self._idempotency = idempotency
        self._users = users
        self._hasher = hasher
        self._sessions = sessions
        self._clock = clock
        self._random = random
        self._guesses = GuessLimit(clock)

    async def prove(self, email: str, password: str) -> Proven:
        """Raises Unauthenticated, TooManyRequests, or Unavailable when too many want to know."""
        address = email.lower()
        mark = self._guesses.begin(address)
        try:
            login = await self._users.login_of_email(email)
            stored_hash = None if login is None else login.password_hash
            is_right = await self._hasher.matches(password, stored_hash)
        except CrossdockError:
            self._guesses.withdraw(address, mark)
            raise
        if login is None or not is_right:
            raise Unauthenticated("invalid_login", "The e-mail address or the password is wrong.")
        self._guesses.withdraw(address, mark)
        return Proven(login.user_id, login.session_epoch)

    async def start(self, proven: Proven, request: IdempotentRequest | None = None) -> Once[StartedSession]:
        """`request`: of a login with a password."""

        async def prepare() -> Effect[StartedSession]:
            now_ms = self._clock.now_ms()
            expires_at = now_ms // 1000 + SESSION_SECONDS
            token = new_token(SESSION_PREFIX, self._random)
            session = store.Session(proven.user_id, proven.session_epoch, expires_at)
            started = StartedSession(token, rfc3339(expires_at * 1000))
            return Effect(started, [store.new_session(token_hash(token), session, now_ms)])

        once = await self._idempotency.once(await self._hasher.guarded(request), _STARTED, prepare)
        assert not isinstance(once, Refused), "a fresh token was taken"
        return once

    async def end(self, principal: Principal) -> None:
        """The session that the request came with."""
        session_hash = session_hash_of(principal)
        if session_hash is None:
            raise Forbidden("not_a_session", "Only a login can be ended. A key is deleted instead.")
        await self._items.transact([store.session_ended(session_hash)])
        self._sessions.forget(session_hash)
