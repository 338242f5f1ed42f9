"""Logins: a key is exchanged for a cookie, and what the key may do, the cookie may."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import msgspec

from crossdock.access import store
from crossdock.access.model import Session, StartedSession
from crossdock.access.resolvers import KeyResolver, SessionResolver
from crossdock.access.rules import moment
from crossdock.access.settings import AccessSettings
from crossdock.engines.sql.target import Connection, Pool
from crossdock.http.idempotency import IdempotentRequest, Once, Stored
from crossdock.http.idempotency_sql import SqlIdempotency
from crossdock.http.principals import Principal
from crossdock.kit.clock import Clock
from crossdock.kit.errors import NotFound, Unauthenticated
from crossdock.kit.ids import Random, is_uuid4, uuid4
from crossdock.kit.logging import MASK

_STARTED = Stored(StartedSession, secrets=("cookie",))


class SessionService:
    def __init__(
        self,
        pool: Pool,
        idempotency: SqlIdempotency,
        *,
        keys: KeyResolver,
        sessions: SessionResolver,
        settings: AccessSettings,
        clock: Clock,
        random: Random,
    ) -> None:
        self._pool = pool
        self._idempotency = idempotency
        self._keys = keys
        self._sessions = sessions
        self._lifetime = timedelta(hours=settings.session_hours)
        self._clock = clock
        self._random = random

    async def principal_of(self, api_key: str) -> Principal:
        """Whose key this is. Raises Unauthenticated."""
        principal = await self._keys.resolve(api_key)
        if principal is None:
            raise _not_valid()
        return principal

    async def start(self, principal: Principal, request: IdempotentRequest | None) -> Once[StartedSession]:
        now = moment(self._clock.now_ms())

        async def insert(connection: Connection) -> StartedSession:
            session_id = uuid4(self._random)
            session = await store.insert_session(
                connection, session_id, UUID(principal.id), now, now + self._lifetime
            )
            if session is None:
                raise _not_valid()
            return StartedSession(**msgspec.structs.asdict(session), cookie=str(session_id))

        return await self._idempotency.once(request, _STARTED, insert)

    async def current(self, cookie: str | None) -> Session:
        session = None
        if cookie is not None and is_uuid4(cookie):
            session = await store.session(self._pool, UUID(cookie), moment(self._clock.now_ms()))
        if session is None:
            raise NotFound("session_not_found", "This request was not made with a session.")
        return session

    async def end(self, cookie: str | None) -> None:
        if cookie is None or not is_uuid4(cookie):
            raise NotFound("session_not_found", "This request was not made with a session.")
        await store.delete_session(self._pool, UUID(cookie))
        self._sessions.forget()

    async def delete_expired(self) -> int:
        return await store.delete_expired_sessions(self._pool, moment(self._clock.now_ms()))


def without_cookie(started: StartedSession) -> tuple[Session, str | None]:
    """The part that may be shown, and the cookie; None when it was masked in a late repeat."""
    fields = msgspec.structs.asdict(started)
    cookie = fields.pop("cookie")
    return Session(**fields), None if cookie == MASK else cookie


def _not_valid() -> Unauthenticated:
    return Unauthenticated("invalid_credential", "The key is not valid, or not any more.")
